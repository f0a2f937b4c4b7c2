"""Leave-one-out: from draws where that is valid, and by refits that survive a kill."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import xarray as xr
from arviz_stats.base import array_stats

import ardvark as av
from ardvark.data import Dataset
from ardvark.inference import BACKENDS, fitting
from ardvark.inference.backend import FitFailed, Result
from ardvark.inference.comparison import leave_one_out as loo
from ardvark.models import ZOO
from ardvark.validate import InputError

SMALL = {"draws": 50, "chains": 2, "random_seed": 1, "processes": 1, "progressbar": False}
NUTS = {"draws": 500, "chains": 2, "processes": 1, "progressbar": False}


def same_rows(a, b):
    return a.drop(columns="seconds").equals(b.drop(columns="seconds"))


# --- from the draws of one fit --------------------------------------------------------------------


@pytest.fixture(scope="module")
def few(small_data):
    """A problem small enough to integrate by weighing prior draws, and its exact answer.

    p(y_n | the others) = 1 / E[1 / l_n], the mean over the posterior of l_n = p(y_n | draw): here
    over prior draws weighed by the likelihood, which share no code with PyMC or ArviZ.
    """
    problem = av.problem("rfvm", small_data(N=8, D=2, seed=3), latent_noise="none")
    rng = np.random.default_rng(1)
    draws = [problem.simulate(rng) for _ in range(60_000)]
    point = {k: np.stack([d[k] for d in draws]) for k in draws[0]}
    log_p = problem.log_likelihood(point)
    log_w = log_p.sum(axis=1, keepdims=True)
    log_w = log_w - np.log(np.exp(log_w).sum())
    weight = np.exp(log_w)
    assert 1 / (weight**2).sum() > 5000
    weighed = np.exp(log_w - log_p)  # w / l_n, (draws, N)
    mean = weighed.sum(axis=0)
    return problem, -np.log(mean), np.linalg.norm(weighed - weight * mean, axis=0) / mean


def test_from_a_chain_it_is_the_exact_answer_at_a_fixed_basis(few):
    problem, exact, error = few
    tree = av.fit(problem, "nuts", random_seed=2, progressbar=False)
    estimate = av.loo(problem, tree)
    assert (estimate.pareto_k < estimate.good_k).all()
    f = np.exp(-tree["log_likelihood"]["y"].values)
    error2 = array_stats.mcse(f, chain_axis=0, draw_axis=1, method="mean") / f.mean(axis=(0, 1))
    z = (estimate.elpd_i.values - exact) / np.hypot(error, error2)
    assert np.abs(z).max() < 4.0  # eight comparisons
    # it is no in-sample score, and the test would see one
    inside = np.log(np.exp(tree["log_likelihood"]["y"]).mean(("chain", "draw"))).values
    assert np.abs((inside - exact) / np.hypot(error, error2)).min() > 5.0


def test_from_an_approximation_its_draws_are_reweighed(few):
    """Laplace's draws alone give another number: reweighed by p / q as well, the exact one."""
    problem, exact, _ = few
    tree = av.fit(problem, "laplace", draws=4000, chains=2, random_seed=2, progressbar=False)
    estimate = av.loo(problem, tree)
    assert estimate.approx_posterior
    naive = loo._psis(
        xr.DataTree.from_dict(
            {
                "/posterior": tree["posterior"].to_dataset()[["eta"]],
                "/log_likelihood": tree["log_likelihood"].to_dataset(),
            }
        )
    )
    assert abs(estimate.elpd - exact.sum()) < 0.5 * abs(naive.elpd - exact.sum())


@pytest.mark.parametrize("name", ["pfcvm", "pcvm"])
def test_refused_where_labels_are_in_the_basis(name, dataset):
    with pytest.raises(InputError, match=rf"not valid for {name}: the label .* Use refit_loo"):
        av.loo(av.problem(name, dataset), xr.DataTree())


def test_every_model_with_labels_in_its_basis_says_so():
    assert {name for name, spec in ZOO.items() if spec.labels_in_basis} == {"pfcvm", "pcvm"}


def test_other_fits_it_cannot_use(problem, dataset, monkeypatch):
    monkeypatch.setattr(fitting, "BACKENDS", dict(BACKENDS))
    av.register_backend(_Prior)
    tree = av.fit(problem, "prior", draws=20, chains=2, random_seed=1)
    with pytest.raises(InputError, match=r"'prior' \(point\) gives none"):
        av.loo(problem, tree)
    with pytest.raises(InputError, match="this fit is of another problem"):
        av.loo(av.problem("rfvm", dataset, bias_sd=2.0), tree)
    outside = av.fit(problem, "paper", draws=20, chains=2, random_seed=1, progressbar=False)
    outside["sample_stats"]["lp"].values[0, 3] = -np.inf
    with pytest.raises(InputError, match="1 draws of 'rfvm_vb' lie outside"):
        av.loo(problem, outside)


def test_high_k_hats_are_a_message_not_a_python_warning(problem, caplog):
    tree = av.fit(problem, "paper", draws=500, chains=2, random_seed=1, progressbar=False)
    log_p, log_q = (tree["sample_stats"][k] for k in ("lp", "log_q"))
    tree["sample_stats"]["lp"] = log_q + 8.0 * (log_p - log_q)
    estimate = av.loo(problem, tree)
    high = int((estimate.pareto_k > estimate.good_k).sum())
    assert high > 0
    assert f"for {high} of 24 samples" in caplog.text


# --- a problem without one of its samples ---------------------------------------------------------


def test_without_a_sample(dataset):
    problem = av.problem("pfcvm", dataset, kernel="rbf")
    fold = loo.without(problem, 5)
    keep = np.arange(24) != 5
    assert fold.hypers == problem.hypers  # held as filled
    np.testing.assert_array_equal(fold.data.X, dataset.X[keep])
    np.testing.assert_array_equal(fold.y, dataset.y[keep])
    np.testing.assert_array_equal(fold.Z, fold.X)
    np.testing.assert_array_equal(fold.basis_labels, 2 * fold.y - 1)
    np.testing.assert_allclose(fold.X.mean(axis=0), 0.0, atol=1e-14)  # standardised anew
    np.testing.assert_allclose(fold.X.std(axis=0), 1.0)
    names = dataset.sample_names[:5] + dataset.sample_names[6:]
    assert fold.coords["obs"] == fold.coords["basis"] == names
    assert fold.model.coords["obs"] == names

    flat = loo.without(av.problem("rfvm", dataset, standardize=False), 5)
    np.testing.assert_array_equal(flat.X, dataset.X[keep])


def test_without_a_sample_and_another_basis(dataset):
    rows = av.problem("pfcvm", dataset, basis=[2, 5, 9])
    fold = loo.without(rows, 5)
    np.testing.assert_array_equal(fold.basis, dataset.X[[2, 9]])
    assert fold.basis_names == tuple(dataset.sample_names[j] for j in (2, 9))
    np.testing.assert_array_equal(fold.basis_labels, 2 * dataset.y[[2, 9]] - 1)
    assert len(loo.without(rows, 6).basis) == 3
    # centres that are not training rows stay, whatever the samples are called
    named = Dataset.from_arrays(
        dataset.X, dataset.y, sample_names=[f"centre_{j}" for j in range(24)]
    )
    own = av.problem("rfvm", named, basis=dataset.X[:4] + 1.0)
    assert len(loo.without(own, 2).basis) == 4


@pytest.mark.parametrize(
    ("name", "choice"),
    [(n, c) for n, s in ZOO.items() for c in (s.choices()[0], s.choices()[-1])],
    ids=lambda v: v if isinstance(v, str) else "-".join(v.values()),
)
def test_one_compiled_model_serves_every_fold(name, choice):
    """Nothing a density depends on is left behind: rebound, it is the fold's own density."""
    rng = np.random.default_rng(0)
    data = Dataset.from_arrays(rng.normal(size=(9, 3)), np.arange(9) % 2)
    problem = av.problem(name, data, **choice)
    models = {}
    first = loo.without(problem, 0)
    loo.share_model(first, models)
    compiled = first.model.compile_logp(mode="FAST_COMPILE")
    start = first.model.initial_point()
    point = {
        # all bits of a mask on, so that every input counts
        k: v + rng.normal(size=v.shape) if v.dtype.kind == "f" else np.ones_like(v)
        for k, v in start.items()
    }
    seen = [compiled(point)]
    for i in (1, 4):
        fold, fresh = loo.without(problem, i), loo.without(problem, i)
        loo.share_model(fold, models)
        assert fold.model is first.model
        assert len(models) == 1
        own = fresh.model.compile_logp(mode="FAST_COMPILE")
        np.testing.assert_allclose(compiled(point), own(point), rtol=1e-12)
        seen.append(compiled(point))
    assert len(np.unique(seen)) == 3


def test_what_is_not_data_has_a_model_of_its_own(dataset):
    models = {}
    rows = av.problem("rfvm", dataset, basis=[2, 5])
    for i in (2, 3, 5):
        loo.share_model(loo.without(rows, i), models)
    assert len(models) == 2  # two sizes of the basis
    models = {}
    same = [{}, {"sample_rate": 0.7}, {"basis_labels": np.ones(24)}]  # these are data
    other = [{"kernel": "rbf"}, {"bias_sd": 2.0}, {"sample_shape": 2.0}, {"kernel": "polynomial"}]
    for settings in (*same, *other, {"kernel": "polynomial", "degree": 3}):
        loo.share_model(av.problem("pfcvm", dataset, **settings), models)
    assert len(models) == 1 + 5


# --- refits ---------------------------------------------------------------------------------------


def test_the_table(problem, tmp_path):
    table = av.refit_loo(problem, "paper", folder=tmp_path, **SMALL)
    assert tuple(table.columns) == loo.COLUMNS
    assert tuple(table.index) == problem.data.sample_names
    assert table["y"].tolist() == problem.y.tolist()
    assert (table["status"] == "ok").all()
    p = table["probability"].to_numpy()
    np.testing.assert_allclose(
        table["log_score"], np.log(np.where(problem.y == 1, p, 1.0 - p)), rtol=1e-10
    )
    np.testing.assert_array_equal(table["correct"], (p > 0.5) == (problem.y == 1))
    assert table.attrs["elpd"] == pytest.approx(table["log_score"].sum())
    assert table.attrs["se"] == pytest.approx(24**0.5 * table["log_score"].std(ddof=0))
    assert table.attrs["accuracy"] == table["correct"].mean()
    assert table.attrs["not_ok"] == 0
    # a row is the fit of the problem without that sample, predicted as `predict` does
    seed = int(np.random.SeedSequence([1, 7]).generate_state(1)[0]) >> 1
    fold = loo.without(problem, 7)
    tree = av.fit(fold, "paper", draws=50, chains=2, random_seed=seed, progressbar=False)
    by_hand = av.predict(fold, tree, problem.data.X[7:8]).mean()
    assert p[7] == pytest.approx(float(by_hand), rel=1e-12)


def test_stored_refits_are_used_again(problem, tmp_path, monkeypatch, caplog):
    first = av.refit_loo(problem, "paper", folder=tmp_path, **SMALL)
    (tmp_path / "rfvm_vb-00004.json").write_text('{"cut sho')
    (tmp_path / "rfvm_vb-00009.json").unlink()
    done = []
    right = fitting.fit

    def counted(*args, **kwargs):
        done.append(1)
        return right(*args, **kwargs)

    monkeypatch.setattr(fitting, "fit", counted)
    again = av.refit_loo(problem, "paper", folder=tmp_path, **SMALL)
    assert len(done) == 2
    assert "rfvm_vb-00004.json cannot be read and is computed again" in caplog.text
    assert same_rows(first, again)
    assert len(list(tmp_path.iterdir())) == 24
    av.refit_loo(problem, "paper", folder=tmp_path, **{**SMALL, "draws": 40})
    assert len(done) == 2 + 24  # another request


def test_a_folder_belongs_to_one_problem(problem, dataset, tmp_path):
    av.refit_loo(problem, "paper", folder=tmp_path, **SMALL)
    other = av.problem("rfvm", dataset, bias_sd=2.0)
    with pytest.raises(InputError, match="holds refits of another problem"):
        av.refit_loo(other, "paper", folder=tmp_path, **SMALL)


def test_two_processes_give_the_table_of_one(problem, tmp_path):
    one = av.refit_loo(problem, "paper", folder=tmp_path / "one", **SMALL)
    settings = {**SMALL, "processes": 2}
    two = av.refit_loo(problem, "paper", folder=tmp_path / "two", **settings)
    assert same_rows(one, two)


def test_a_killed_run_goes_on_and_leaves_no_process(tmp_path):
    """Kill the caller alone once three refits are on disk; its processes must end by themselves."""
    out = tmp_path / "out"
    code = (
        "import ardvark as av, sys\n"
        "data = av.load('digits38').take(range(40))\n"
        "problem = av.problem('rfvm', data)\n"
        "settings = {'draws': 100, 'chains': 1, 'restarts': 1, 'progressbar': False}\n"
        "table = av.refit_loo(problem, 'paper', folder=sys.argv[1], **settings)\n"
        "print(table.attrs['accuracy'], len(table))\n"
    )
    command = [sys.executable, "-c", code, str(out)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, start_new_session=True, **quiet)
    deadline = time.monotonic() + 300
    while len(list(out.glob("*.json"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    while time.monotonic() < deadline:
        try:
            os.killpg(process.pid, 0)  # the group lives as long as one of its processes
        except ProcessLookupError:
            break
        time.sleep(0.05)
    else:
        pytest.fail("processes outlive their caller")
    stored = {p.name: p.stat().st_mtime_ns for p in out.glob("*.json")}
    assert 3 <= len(stored) < 40
    for name in stored:
        assert json.loads((out / name).read_text())["status"] == "ok"

    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    accuracy, rows = done.stdout.split()
    assert rows == "40"
    assert float(accuracy) > 0.8
    for name, written in stored.items():
        assert (out / name).stat().st_mtime_ns == written


class _Prior:
    """Draws of the prior, as a backend: quick, and right for every model."""

    NAME, KIND = "prior", "point"

    @dataclasses.dataclass(frozen=True)
    class Options:
        fail_without: str = ""

    @staticmethod
    def supports(target):
        return None

    @staticmethod
    def fit(target, options, job):
        problem = target.problem
        if options.fail_without and options.fail_without not in problem.data.sample_names:
            raise FitFailed("it was told to")
        rng = np.random.default_rng(job.seed)
        points = [problem.simulate(rng) for _ in range(job.draws * job.chains)]
        names = (*problem.spec.shared, "bias", "tau", "beta")
        arrays = {k: np.stack([p[k] for p in points]) for k in names if k in points[0]}
        return Result(
            {k: v.reshape(job.chains, job.draws, *v.shape[1:]) for k, v in arrays.items()}
        )


@pytest.mark.parametrize("name", list(ZOO))
def test_every_model_can_be_refitted(name, small_data, tmp_path, monkeypatch):
    """A model without P(y = 1) has a score, and a density of the sign of its label."""
    monkeypatch.setattr(fitting, "BACKENDS", dict(BACKENDS))
    av.register_backend(_Prior)
    problem = av.problem(name, small_data(N=6, D=3, seed=2))
    table = av.refit_loo(problem, "prior", folder=tmp_path, **SMALL)
    column = "score" if name == "fs_skr" else "probability"
    assert np.isfinite(table[[column, "log_score"]].to_numpy()).all()
    if name == "fs_skr":
        assert ((table["score"] > 0) == (table["correct"] == (problem.y == 1))).all()
    assert len(set(table[column])) == 6


def test_one_failure_loses_nothing_and_is_tried_again(problem, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(fitting, "BACKENDS", dict(BACKENDS))
    av.register_backend(_Prior)
    table = av.refit_loo(problem, "prior", folder=tmp_path, fail_without="3", **SMALL)
    assert table.loc["3", "status"] == "failed"
    assert table.loc["3", "reason"] == "it was told to"
    assert np.isnan(table.loc["3", "probability"])
    assert np.isnan(table.attrs["elpd"])
    assert table.attrs["not_ok"] == 1
    assert np.isfinite(table.drop(index="3")["log_score"]).all()
    assert "1 of 24 refits are not ok, the first without 3: it was told to" in caplog.text

    def broken(*args, **kwargs):
        raise ZeroDivisionError("a bug")

    stored = {p.name: p.stat().st_mtime_ns for p in tmp_path.iterdir()}
    monkeypatch.setattr(_Prior, "fit", broken)
    table = av.refit_loo(problem, "prior", folder=tmp_path, fail_without="3", **SMALL)
    assert table.loc["3", "reason"] == "ZeroDivisionError: a bug"
    changed = [p.name for p in tmp_path.iterdir() if p.stat().st_mtime_ns != stored[p.name]]
    assert changed == ["prior-00003.json"]


def test_bad_calls_are_refused_before_any_work(problem, dataset, tmp_path, monkeypatch):
    out = tmp_path / "out"

    def refused(match, problem=problem, method="paper", error=InputError, **settings):
        with pytest.raises(error, match=match):
            av.refit_loo(problem, method, folder=out, **{**SMALL, **settings})

    ill = np.flatnonzero(dataset.y == 1)
    lonely = dataset.take(np.setdiff1d(np.arange(24), ill[1:]))
    refused(
        rf"class 'ill' has one sample only, '{dataset.sample_names[ill[0]]}'.*can be fitted",
        problem=av.problem("rfvm", lonely),
    )
    refused(r"the basis is the one sample '4'", problem=av.problem("rfvm", dataset, basis=[4]))
    refused("has no option 'restartz'", error=TypeError, restartz=2)
    refused("unknown method 'nutz'", method="nutz")
    refused("processes must be a finite number above 0, got 0", processes=0)
    refused("does not apply", problem=av.problem("rfvm", dataset, latent_noise="none"))
    monkeypatch.setattr(fitting, "BACKENDS", dict(BACKENDS))
    av.register_backend(_Prior)
    refused("was registered in this process.*processes=1", method="prior", processes=2)
    assert not out.exists()


# --- with the exact column ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def coin(tmp_path_factory):
    """PFCVM on labels of coin flips: (problem, table of refits, number of compilations)."""
    import nutpie

    rng = np.random.default_rng(0)
    X = rng.normal(size=(14, 20))
    problem = av.problem("pfcvm", (X, rng.permutation(np.arange(14) % 2)))
    compiled = []
    with pytest.MonkeyPatch.context() as patch:
        right = nutpie.compile_pymc_model
        patch.setattr(
            nutpie, "compile_pymc_model", lambda *a, **k: compiled.append(1) or right(*a, **k)
        )
        folder = tmp_path_factory.mktemp("coin")
        table = av.refit_loo(problem, "nuts", folder=folder, random_seed=1, tune=500, **NUTS)
    return problem, table, len(compiled)


def test_one_compilation_serves_all_refits(coin):
    """The draws on rebound data are those of a problem made and compiled for that fold alone."""
    problem, table, compiled = coin
    assert compiled == 1
    seed = int(np.random.SeedSequence([1, 5]).generate_state(1)[0]) >> 1
    fold = loo.without(problem, 5)
    tree = av.fit(
        fold, "nuts", draws=500, chains=2, random_seed=seed, tune=500, keep="shared",
        progressbar=False,
    )  # fmt: skip
    by_hand = av.predict(fold, tree, problem.data.X[5:6]).mean()
    assert table["probability"].iloc[5] == pytest.approx(float(by_hand), rel=1e-12)
    assert tuple(tree["posterior"]["obs"].values) == fold.data.sample_names


def test_labels_in_the_basis_make_pointwise_leave_one_out_optimistic(coin):
    """Coin flips cannot be predicted: log 2 = 0.69 a sample. Refits know, pointwise does not."""
    problem, table, _ = coin
    tree = av.fit(problem, "nuts", draws=500, chains=2, random_seed=1, tune=500, progressbar=False)
    groups = {f"/{k}": tree[k].to_dataset() for k in ("posterior", "log_likelihood")}
    pointwise = loo._psis(xr.DataTree.from_dict(groups)).elpd / 14
    refitted = table.attrs["elpd"] / 14
    assert refitted < -0.6
    assert pointwise > refitted + 0.15
    with pytest.raises(InputError, match="not valid for pfcvm"):
        av.loo(problem, tree)
