"""A study in a folder: finished fits are kept, a killed run goes on, a failure stays alone."""

from dataclasses import replace

import pytest
import xarray as xr

import ardvark as av
from ardvark.common.validate import InputError
from ardvark.inference import read, save
from ardvark.inference.comparison import study
from ardvark.inference.comparison.table import Comparison
from ardvark.inference.methods import registry, run
from ardvark.inference.target.backend import FitFailed
from ardvark.inference.target.sampling import Sampling
from tests.inference.comparison.quick import Prior, registered

METHODS = {"prior": {}, "other": {}}
SMALL = Sampling(draws=8, chains=2, seed=1)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Two methods that take no time, and one figure: a study keeps whatever there is."""
    registered(monkeypatch, Prior, type("Other", (Prior,), {"NAME": "other"}))
    monkeypatch.setattr(Comparison, "pictures", lambda self: {"forest": self._picture("forest")})


@pytest.fixture
def problem(dataset):
    return av.problem("sparse_probit", dataset)


def fails(error):
    def fit(*args, **kwargs):
        raise error

    return fit


def test_finished_fits_are_used_again(problem, tmp_path, monkeypatch, capsys):
    first = study.run(problem, METHODS, tmp_path, replace(SMALL, progressbar=True))
    told = capsys.readouterr().err.splitlines()
    assert [line.split()[0] for line in told] == ["prior", "other"]  # a line each
    assert sorted(p.name for p in tmp_path.iterdir()) == ["other.nc", "prior.nc"]
    monkeypatch.setattr(run, "compute", fails(AssertionError("computed again")))
    again = study.run(problem, METHODS, tmp_path, SMALL)
    for name in METHODS:
        assert again[name].attrs["status"] == "finished"
        assert again[name].identical(first[name])


def test_a_fit_that_did_not_converge_is_used_again(problem, tmp_path, monkeypatch):
    """It has draws, and another run with the same settings would be no better."""
    fit = registry.BACKENDS["other"].fit

    def slow(*args):
        return replace(fit(*args), status="not_converged", reason="it still rises")

    with monkeypatch.context() as patch:
        patch.setattr(registry.BACKENDS["other"], "fit", staticmethod(slow))
        first = study.run(problem, {"other": {}}, tmp_path, SMALL)["other"]
    monkeypatch.setattr(run, "compute", fails(AssertionError("computed again")))
    again = study.run(problem, {"other": {}}, tmp_path, SMALL)["other"]
    assert (again.attrs["status"], again.attrs["reason"]) == ("not_converged", "it still rises")
    assert again.identical(first)


def test_another_request_or_form_is_computed_again(problem, dataset, tmp_path):
    """Equal fingerprints, so one folder; but `lp` and the variables are those of the form.

    What makes another request: tests/inference/methods/test_request.py.
    """
    study.run(problem, {"prior": {}}, tmp_path, replace(SMALL, seed=2))
    study.run(problem, {"prior": {}}, tmp_path, SMALL)
    assert read(tmp_path / "prior.nc").attrs["seed"] == 1
    other = av.problem("sparse_probit", dataset, parametrization="marginal")
    assert other.fingerprint == problem.fingerprint
    fit = study.run(other, {"prior": {}}, tmp_path, SMALL)["prior"]
    assert fit.attrs["form"] == other.form != problem.form


def test_a_damaged_file_is_seen(problem, tmp_path):
    path = tmp_path / "prior.nc"
    tree = study.run(problem, {"prior": {}}, tmp_path, SMALL)["prior"]
    whole = path.read_bytes()
    at = whole.index(tree["posterior"]["eta"].values.tobytes()[:64]) + 9  # one bit of one number
    damages = {
        **{str(size): whole[:size] for size in (0, 100, len(whole) // 2, len(whole) - 1)},
        "text": b"<html></html>",
        "one bit": whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :],
    }
    for contents in damages.values():
        path.write_bytes(contents)
        with pytest.raises(InputError, match=r"prior\.nc cannot be read: it is truncated, damaged"):
            read(path)
    xr.Dataset({"temperature": ("time", [1.0])}).to_netcdf(path, engine="h5netcdf")
    with pytest.raises(InputError, match=r"prior\.nc contains no fit"):
        read(path)


def test_a_damaged_file_is_kept_and_computed_again(problem, tmp_path, caplog):
    first = study.run(problem, METHODS, tmp_path, SMALL)
    bytes_then = (tmp_path / "prior.nc").read_bytes()[:5000]
    (tmp_path / "prior.nc").write_bytes(bytes_then)

    left = study.load_fits(tmp_path, problem)  # what `ardvark panel` reads: the others
    assert list(left) == ["other"]
    assert "left out" in caplog.text

    again = study.run(problem, METHODS, tmp_path, SMALL)
    assert (tmp_path / "prior.nc.aside").read_bytes() == bytes_then
    assert again["other"].identical(first["other"])
    seconds = {"seconds_run": 0.0, "seconds_compile": 0.0}
    for tree in (first["prior"], again["prior"]):
        tree.attrs |= seconds
    assert again["prior"].identical(first["prior"])
    assert set(study.load_fits(tmp_path, problem)) == set(METHODS)


def test_what_is_no_fit_by_this_method_is_never_overwritten(problem, dataset, tmp_path, caplog):
    """Draws of one's own under a method's name; then a fit of another problem; twice."""
    tree = study.run(problem, {"prior": {}}, tmp_path, SMALL)["prior"]
    own = av.adopt(problem, {"eta": tree["posterior"]["eta"].values})
    other = av.problem("sparse_probit", dataset, gamma1=2.0)
    for n, (kept, asked) in enumerate([(own, problem), (tree, other)]):
        save(kept, tmp_path / "prior.nc")
        fit = study.run(asked, {"prior": {}}, tmp_path, SMALL)["prior"]
        assert fit.attrs["fingerprint"] == asked.fingerprint
        assert read(tmp_path / f"prior.nc.aside{n or ''}").identical(kept)
    assert "contains a fit by adopted. It was renamed to prior.nc.aside, and" in caplog.text
    assert "this is a fit of another problem" in caplog.text


def test_adopted_draws_in_the_folder_are_shown(problem, tmp_path):
    tree = study.run(problem, {"prior": {}}, tmp_path, SMALL)["prior"]
    save(av.adopt(problem, {"eta": tree["posterior"]["eta"].values}), tmp_path / "mine.nc")
    fits = study.load_fits(tmp_path, problem)
    assert list(fits) == ["prior", "mine"]
    table = study.summarise(tmp_path, problem, fits, progressbar=False).table
    assert (table["error_eta"] >= 0.0).any()
    forest = {f"forest.{end}" for end in ("png", "pdf", "svg")}
    kept = {"scorecard.csv", "distances.csv", *forest, "report.html"}
    assert (tmp_path / "forest.svg").read_text().startswith("<?xml")
    assert (tmp_path / "forest.pdf").read_bytes().startswith(b"%PDF")
    assert {path.name for path in tmp_path.iterdir()} == {"prior.nc", "mine.nc", *kept}


def test_a_fit_that_xarray_wrote_is_read(problem, tmp_path):
    """Its file has no checksums."""
    tree = study.run(problem, {"prior": {}}, tmp_path, SMALL)["prior"]
    tree.to_netcdf(tmp_path / "plain.nc", engine="h5netcdf")
    assert read(tmp_path / "plain.nc").equals(tree)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read(tmp_path / "none.nc")


def test_one_failure_loses_nothing_and_is_tried_again(problem, tmp_path, monkeypatch, caplog):
    """A bug; and what `fit` itself turns into a failed fit, with the request it answers."""
    av.inference.register_backend(type("Third", (Prior,), {"NAME": "third"}))
    methods = {**METHODS, "third": {}}
    with monkeypatch.context() as patch:
        for name, error in (("other", ZeroDivisionError("a bug")), ("third", FitFailed("no mode"))):
            patch.setattr(registry.BACKENDS[name], "fit", fails(error))
        fits = study.run(problem, methods, tmp_path, SMALL)
    status = {name: tree.attrs["status"] for name, tree in fits.items()}
    assert status == {"prior": "finished", "other": "failed", "third": "failed"}
    reasons = {name: tree.attrs["reason"] for name, tree in fits.items()}
    assert reasons == {"prior": "", "other": "ZeroDivisionError: a bug", "third": "no mode"}
    assert "other" in caplog.text
    table = study.summarise(tmp_path, problem, fits, progressbar=False).table
    assert table["status"].to_dict() == status
    assert read(tmp_path / "other.nc").attrs["status"] == "failed"
    again = study.run(problem, methods, tmp_path, SMALL)
    assert {tree.attrs["status"] for tree in again.values()} == {"finished"}


def test_a_method_that_does_not_apply_is_refused_before_anything_runs(dataset, tmp_path):
    problem = av.problem("rfvm", dataset, latent_noise="none")
    with pytest.raises(InputError, match="'rfvm_vb' does not apply"):
        study.run(problem, {"prior": {}, "paper": {}}, tmp_path / "out", SMALL)
    with pytest.raises(TypeError, match="no option 'fail_withou'"):
        study.run(problem, {"prior": {"fail_withou": "2"}}, tmp_path / "out", SMALL)
    assert not (tmp_path / "out").exists()


def test_a_folder_belongs_to_one_problem(problem, tmp_path):
    study.write_settings(tmp_path, {"fingerprint": "one", "command": "ardvark compare a b"})
    with pytest.raises(InputError, match=r"another problem \(ardvark compare a b\)"):
        study.write_settings(tmp_path, {"fingerprint": "two", "command": ""})
    assert study.read_settings(tmp_path)["fingerprint"] == "one"
    with pytest.raises(InputError, match=r"no fit yet: .* To go on: ardvark compare a b"):
        study.load_fits(tmp_path, problem)
    other = xr.DataTree.from_dict({"/posterior": xr.Dataset()})
    other.attrs = {"kind": "mcmc", "fingerprint": "one"}
    save(other, tmp_path / "exact.nc")
    with pytest.raises(InputError, match="contains no fit of this problem"):
        study.load_fits(tmp_path, problem)
    with pytest.raises(InputError, match="contains no study"):
        study.read_settings(tmp_path / "elsewhere")
