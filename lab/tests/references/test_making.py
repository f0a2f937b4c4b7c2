"""Reference posteriors: what a file holds, to whom it belongs, made, checked, exported."""

import dataclasses
import json
import re
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray as xr

import ardvark as av
from ardvark.common.validate import InputError
from ardvark.inference.fits import datatree
from ardvark.inference.fits.selection import select
from ardvark.inference.methods import registry
from ardvark.inference.references import references
from ardvark.inference.target.backend import Result
from lab import problems
from lab.references import bar as reference_bar
from lab.references import declared as runs
from lab.references import making, posteriordb, stan_twin
from lab.references.declared import REFERENCES, Reference
from tests.inference.comparison.quick import Prior
from tests.support import ALARM, rng, seed

N, D = 9, 4
MADE = {"reference": "tiny", "command": "python -m lab.references make tiny", "note": ""}


def tiny(model="rfvm", **hypers):
    generator = rng(0)
    X = generator.normal(size=(N, D))
    return av.problem(model, (X, np.arange(N) % 2), **hypers)


def sampled(problem, draws=200, number=1):
    """Draws of the prior as a Markov chain's fit: what is stored of a fit asks nothing more."""
    generator = rng(number)
    points = [problem.simulate(generator) for _ in range(4 * draws)]
    kept = [n for n in points[0] if n in problem.sizes and problem.spec.dims.get(n) != ("obs",)]
    arrays = {n: np.stack([p[n] for p in points]) for n in ("eta", *kept)}
    arrays = {n: v.reshape(4, draws, *v.shape[1:]) for n, v in arrays.items()}
    attrs = {
        "method": "nuts", "kind": "mcmc", "status": "finished", "reason": "", "draws": draws,
        "chains": 4, "seed": number, "options": "{}", "versions": "{}", "seconds_run": 1.0,
        "fingerprint": problem.fingerprint, "form": problem.form, "model": problem.spec.name,
        "hypers": datatree.as_json(dataclasses.asdict(problem.hypers)),
        "fixed": " ".join(problem.spec.fixed), "masked": " ".join(problem.spec.masked),
    }  # fmt: skip
    lp = {"lp": generator.normal(size=(4, draws))}
    result = Result(posterior=arrays, sample_stats=lp)
    tree = datatree.assemble(result, model=None, problem=problem, attrs=attrs)
    tree["selection"] = xr.DataTree(select(problem, tree))
    return tree


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the reference "tiny" of a tiny problem, the only one there is."""
    declared = {"tiny": Reference(model="rfvm", data="digits38", method="nuts", draws=200)}
    for place in (runs, making):
        monkeypatch.setattr(place, "REFERENCES", declared)
    problem = tiny()
    making.write(making.condensed(problem, sampled(problem), MADE), tmp_path / "tiny.nc")
    return tmp_path


# --- what is stored -------------------------------------------------------------------------------


def test_numbers_are_rounded_to_the_nearest():
    x = np.concatenate([rng(2).standard_cauchy(1000), [0.0, 1.0, -3.0, 1e-20]])
    found = making.rounded(x, bits=7)
    assert (np.abs(found - x) <= 2.0**-8 * np.abs(x) * (1 + 1e-6)).all()
    np.testing.assert_array_equal(making.rounded(found, bits=7), found)
    words = found.astype(np.float32).view(np.uint32)
    assert not (words & np.uint32(0xFFFF)).any()  # 23 - 7 zeros: they compress


@pytest.mark.parametrize("model", ["rfvm", "pfcvm", "rvm", "sparse_probit", "fsklr"])
def test_a_fit_comes_back(model, tmp_path, monkeypatch):
    """The weights to eight bits, eta from them; all that the whole run said is kept exactly."""
    monkeypatch.setattr(making, "NUMBERS", 50 * D)
    monkeypatch.setattr(making, "FEWEST", 40)
    problem = tiny(model)
    whole = sampled(problem)
    making.write(making.condensed(problem, whole, MADE), tmp_path / "tiny.nc")
    found = references.opened(tmp_path / "tiny.nc", problem)
    thin = found.attrs["thin"]
    assert 1 < thin <= 20
    some = whole["posterior"].to_dataset().isel(draw=slice(thin - 1, None, thin))
    for name, values in found["posterior"].to_dataset().data_vars.items():
        exact = some[name].values
        if name == "eta":  # a sum of terms, each right to 2^-8
            size = np.abs(exact).max()
            np.testing.assert_allclose(values, exact, atol=0.03 * max(size, 1.0))
        else:
            np.testing.assert_allclose(values, exact, rtol=2.0**-8, atol=1e-30)
    eta = found["summary"]["eta"].sel(statistic="mean")
    # in single precision: an error of 0.4 % would be as large as that of 4000 draws
    mean = whole["posterior"]["eta"].mean(("chain", "draw"))
    np.testing.assert_allclose(eta, mean, rtol=2.0**-24, atol=1e-30)
    p = found["selection"]["p_active_feature"]
    np.testing.assert_allclose(p, whole["selection"]["p_active_feature"], rtol=2.0**-24)
    assert tuple(p["feature"].values) == tuple(problem.data.feature_names)
    # the diagnostics by which the run is judged are the worst of the summary
    for statistic, worst in (("rhat", np.nanmax), ("ess_bulk", np.nanmin), ("ess_tail", np.nanmin)):
        each = found["summary"].to_dataset().sel(statistic=statistic)
        values = np.concatenate([v.values.ravel() for v in each.values()])
        assert found.attrs[statistic] == pytest.approx(worst(values), rel=2.0**-23)
    rhat = found["summary"]["eta"].sel(statistic="rhat")
    assert found.attrs["rhat_eta"] == pytest.approx(rhat.values.max(), rel=2.0**-23)
    assert found.attrs["kind"] == "reference"
    assert av.selection_text(found)
    assert ("log_likelihood" in found.children) != problem.spec.labels_in_basis
    for name in ("prior_feature", "effect_feature", "effect_at_feature", "share_features"):
        np.testing.assert_allclose(
            found["selection"][name], whole["selection"][name], rtol=2.0**-23
        )


def test_a_file_without_effects_gets_them_from_its_draws(tmp_path):
    """Those of the draws that are stored; what the file says of all draws stays."""
    problem = tiny()
    stored = making.condensed(problem, sampled(problem), MADE)
    making.write(stored, tmp_path / "new.nc")
    whole = references.opened(tmp_path / "new.nc", problem)
    kept = ("p_active_", "mcse_", "active_", "n90_")
    old = stored["selection"].to_dataset()
    drop = [n for n in old.data_vars if not n.startswith(kept) or n.endswith("_group")]
    old = old.drop_vars([*drop, "quantile"])
    old.attrs = {k: v for k, v in old.attrs.items() if not k.startswith("prior")}
    stored["selection"] = xr.DataTree(old)
    making.write(stored, tmp_path / "old.nc")
    found = references.opened(tmp_path / "old.nc", problem)
    some = select(problem, found)
    for name in ("effect_feature", "effect_sd_sample", "effect_at_feature", "prior_feature"):
        np.testing.assert_array_equal(found["selection"][name], some[name])
    for name in ("p_active_feature", "active_features", "n90_samples"):
        np.testing.assert_array_equal(found["selection"][name], whole["selection"][name])
    assert found["selection"].attrs["prior_features"] == some.attrs["prior_features"]
    assert found["selection"].attrs["thin_features"] == whole["selection"].attrs["thin_features"]


def test_no_data_are_stored(folder):
    X = tiny().data.X
    with h5py.File(folder / "tiny.nc") as file:
        names = []
        file.visit(names.append)
        sizes = [file[n].shape for n in names if isinstance(file[n], h5py.Dataset)]
    assert not {"X", "Z", "y", "center", "scale"} & {n.rpartition("/")[2] for n in names}
    assert X.shape not in sizes


# --- to whom it belongs ---------------------------------------------------------------------------


def test_what_was_found_against_the_run_is_said_of_its_reference(tmp_path):
    """A few draws of a bad run look well; it is judged by all of them."""
    problem = tiny()
    tree = sampled(problem)
    tree["posterior"]["eta"][0] += 3.0
    stored = making.condensed(problem, tree, MADE)
    making.write(stored, tmp_path / "tiny.nc")
    found = references.opened(tmp_path / "tiny.nc", problem)
    fits = {"stored": found, "mode": av.fit(problem, "laplace", random_seed=0, progressbar=False)}
    text = av.compare(fits, reference="stored", problem=problem).text(full=True)
    assert "R-hat of eta[" in text
    assert "cannot be trusted" in text
    assert any(line.startswith("R-hat") for line in references.missed(stored.attrs))


# --- made, checked, exported ----------------------------------------------------------------------


def test_every_declared_reference_is_stored():
    paths = references.files()
    assert set(paths) == set(REFERENCES)
    for name, path in paths.items():
        attrs, declared = references.attributes(path), REFERENCES[name]
        assert (attrs["model"], attrs["data"]) == (declared.model, declared.data)
        assert (attrs["method"], attrs["draws"]) == (declared.method, declared.draws)
        assert attrs["seed"] == declared.seed
        assert json.loads(attrs["options"]).items() >= dict(declared.options).items()
        assert attrs["command"].endswith(f"reference make {name}")


class Chain(Prior):
    """Independent draws of the prior, that call themselves a Markov chain."""

    NAME, KIND = "chain", "mcmc"
    fits = 0
    shift = 0.0

    @classmethod
    def fit(cls, target, options, job):
        cls.fits += 1
        result = Prior.fit(target, options, job)
        result.posterior["bias"] = result.posterior["bias"] + cls.shift
        size = (job.chains, job.draws)
        result.sample_stats["lp"] = np.random.default_rng(job.seed).normal(size=size)
        return result


@pytest.fixture
def one(monkeypatch):
    """A reference that is made in no time; `Chain.fits` counts how often."""
    monkeypatch.setattr(registry, "BACKENDS", dict(registry.BACKENDS))
    av.inference.register_backend(Chain)
    monkeypatch.setattr(Chain, "fits", 0)
    declared = Reference(model="sparse_probit", data="digits38", method="chain", draws=100)
    for place in (runs, making):
        monkeypatch.setattr(place, "REFERENCES", {declared.name: declared})
    return declared


def test_references_are_made_as_pieces_of_work(one, tmp_path, monkeypatch):
    work = making.Making(tmp_path)
    made = dict(work.results([one.name]))
    assert made == {one.name: work.path(one.name).read_bytes()}
    assert dict(work.results([one.name])) == made
    assert Chain.fits == 1
    monkeypatch.setattr(Chain, "shift", "no number")
    failed = making.Making(tmp_path / "other")
    assert dict(failed.results([one.name]))[one.name].startswith("UFuncTypeError: ")
    assert not failed.path(one.name).exists()


@pytest.mark.slow
def test_made_alike_on_two_workers(tmp_path):
    name = "rfvm-digits38"
    made = dict(making.Making(tmp_path, one_core=True).results([name], av.Dask(workers=2)))
    assert (tmp_path / f"{name}.nc").read_bytes() == made[name]
    again = dict(making.Making(tmp_path).results([name]))  # it is stored, not made
    assert again == made


@pytest.mark.statistical
def test_made_once_and_checked_by_another_run(one, tmp_path, monkeypatch):
    """The bias has sd 1, so its mean is known to 0.05 of 400 draws: 1 is 14 standard errors."""
    monkeypatch.setattr(reference_bar, "ALARM", ALARM)
    first, again = tmp_path / "first", tmp_path / "again"
    path = making.make(one.name, first, seed=seed(3), progressbar=False)
    making.make(one.name, first, seed=seed(3), progressbar=False)
    assert Chain.fits == 1
    assert path.stat().st_size < 1e6
    assert "bulk ESS" in references.table(first).loc[one.name, "missed"]
    found = making.check([one.name], again, against=first, progressbar=False)[one.name]
    assert found["agrees"].all(), found
    rerun = references.files(again)[one.name]
    assert references.attributes(rerun)["seed"] == references.attributes(path)["seed"] + 1
    making.check([one.name], again, against=first, progressbar=False)
    assert Chain.fits == 2  # the rerun is kept
    monkeypatch.setattr(Chain, "shift", 1.0)
    found = making.check([one.name], tmp_path / "third", against=first, progressbar=False)
    assert not found[one.name].loc["mean of bias", "agrees"]
    with pytest.raises(InputError, match=r"unknown reference 'sparse_probit-digit'.*Did you mean"):
        making.make("sparse_probit-digit", first)
    with pytest.raises(InputError, match=r"is not in .*python -m lab\.references make"):
        making.check([one.name], again, against=tmp_path / "nothing")


def test_posteriordb(folder, monkeypatch):
    """Files where posteriordb has them; chains of named components; a model that can be built."""
    problem = tiny()
    monkeypatch.setattr(Reference, "problem", lambda self: problem)
    out = folder / "database"
    one = making.REFERENCES["tiny"]
    written = posteriordb.export(one, folder / "tiny.nc", out)
    assert all(path.exists() for path in written)
    posterior = json.loads((out / f"posteriors/{one.name}.json").read_text())
    assert posterior["dimensions"]["eta"] == N
    assert posterior["dimensions"]["bias"] == 1
    draws = out / "reference_posteriors/draws"
    how = json.loads(
        (draws / f"info/{posterior['reference_posterior_name']}.info.json").read_text()
    )
    names = how["diagnostics"]["diagnostic_information"]["names"]
    assert len(how["diagnostics"]["r_hat"]) == len(names)
    assert how["checks_made"]["nchains_is_gte_4"] is True
    with zipfile.ZipFile(draws / f"draws/{one.name}.json.zip") as file:
        chains = json.loads(file.read(f"{one.name}.json"))
    assert len(chains) == 4
    assert set(names) <= set(chains[0])
    tree = references.opened(folder / "tiny.nc", problem)
    np.testing.assert_array_equal(chains[2]["eta[2]"], tree["posterior"]["eta"][2, :, 1])
    with zipfile.ZipFile(out / "data/data/digits38.json.zip") as file:
        data = json.loads(file.read("digits38.json"))
    space: dict = {}
    exec((out / "models/pymc/rfvm.py").read_text(), space)
    free = [v.name for v in space["model"](data).free_RVs]
    assert free == [v.name for v in problem.model.free_RVs]
    info = json.loads((out / "models/info/rfvm.info.json").read_text())
    assert set(info["model_implementations"]) == {"pymc"}


def test_a_stan_program_has_the_variables_of_its_model():
    """Their densities are compared by `lab/references/stan_twin.py`, which needs Stan."""
    assert stan_twin.PROGRAM.exists()
    for path in posteriordb.STAN.iterdir():
        model = problems.problem(path.stem, np.eye(6, 2), np.arange(6) % 2).model
        block = re.search(r"^parameters \{(.*?)\}$", path.read_text(), re.DOTALL | re.MULTILINE)
        assert block is not None
        names = re.findall(r"(\w+);", block[1])
        assert names == [v.name for v in model.free_RVs]
        results = Path(__file__).parents[2] / "results"
        goals = json.loads((results / "stan_twin.json").read_text())["goals"]
        assert any(path.stem in goal["goal"] and goal["met"] for goal in goals)
