"""Leave-one-out by refitting: the folds, the table, and runs that survive a kill."""

import subprocess
import sys

import numpy as np
import pytest

import ardvark as av
from ardvark.common.validate import InputError
from ardvark.data import Dataset
from ardvark.inference.checks import leave_one_out as loo
from ardvark.inference.checks.sharing import Sharing
from ardvark.inference.fits.datatree import POINTWISE
from ardvark.inference.methods import run
from ardvark.models import ZOO
from tests.inference.comparison.quick import Prior, registered
from tests.models.forms import Compiled
from tests.support import rng, seed

SMALL = {"draws": 10, "chains": 2, "random_seed": 1, "processes": 1, "progressbar": False}


def seed_of_refit(random_seed, i):
    """Return the seed of refit i of a call."""
    return int(np.random.SeedSequence([random_seed, i]).generate_state(1)[0]) >> 1


def same_rows(a, b):
    return a.drop(columns="seconds").equals(b.drop(columns="seconds"))


@pytest.fixture
def prior(monkeypatch):
    """The prior as a method: refits that take no time."""
    registered(monkeypatch, Prior)


@pytest.fixture
def problem(small_data):
    return av.problem("rfvm", small_data(N=10, D=3))


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


FORMS = [(n, s.choices()[0]) for n, s in ZOO.items()]
OTHERS = [pytest.param(n, s.choices()[-1], marks=pytest.mark.slow) for n, s in ZOO.items()]


@pytest.mark.parametrize(
    ("name", "choice"),
    [*FORMS, *OTHERS],
    ids=lambda v: v if isinstance(v, str) else "-".join(v.values()),
)
def test_one_compiled_model_serves_every_fold(name, choice):
    """Nothing a density depends on is left behind: rebound, it is the `log_joint` of the fold."""
    generator = rng(0)
    data = Dataset.from_arrays(generator.normal(size=(9, 3)), np.arange(9) % 2)
    problem = av.problem(name, data, **choice)
    models, compiled = {}, None
    for i in (0, 4, 1):
        fold = Sharing.of(loo.without(problem, i), models)
        compiled = compiled or Compiled(fold)
        compiled.problem = fold
        assert fold.fitted_model is compiled.model
        np.testing.assert_array_equal(fold.model["label"].get_value(), fold.y)
        for _ in range(3):
            point = fold.simulate(generator) | {"y": fold.y}
            if name == "jcfo":  # z has the sign of its label
                point["z"] = np.abs(point["z"]) * (2 * fold.y - 1)
            found, _ = compiled.densities(point)
            assert found == pytest.approx(fold.log_density(point), rel=1e-7)
    assert len(models) == 1


def test_what_is_not_data_has_a_model_of_its_own(dataset):
    models = {}
    rows = av.problem("rfvm", dataset, basis=[2, 5])
    for i in (2, 3, 5):
        assert Sharing.of(loo.without(rows, i), models).fitted_model
    assert len(models) == 2  # two sizes of the basis
    models = {}
    filled = [{"slab": 1.0}, {"active_features": 1.0}]
    same = [{}, *filled, {"basis_labels": np.ones(24)}]  # these are data
    other = [{"kernel": "rbf"}, {"bias_sd": 2.0}, {"sample_shape": 2.0}, {"kernel": "polynomial"}]
    for settings in (*same, *other, {"kernel": "polynomial", "degree": 3}):
        assert Sharing.of(av.problem("pfcvm", dataset, **settings), models).fitted_model
    assert len(models) == 1 + 5


# --- refits ---------------------------------------------------------------------------------------


def test_the_table(problem, tmp_path):
    table = av.refit_loo(problem, "paper", folder=tmp_path, **SMALL)
    assert tuple(table.columns) == loo.COLUMNS
    assert tuple(table.index) == problem.data.sample_names
    assert table["y"].tolist() == problem.y.tolist()
    assert (table["status"] == "finished").all()
    p = table["probability"].to_numpy()
    np.testing.assert_allclose(
        table["log_score"], np.log(np.where(problem.y == 1, p, 1.0 - p)), rtol=1e-10
    )
    np.testing.assert_array_equal(table["correct"], (p > 0.5) == (problem.y == 1))
    assert table.attrs["elpd"] == pytest.approx(table["log_score"].sum())
    assert table.attrs["se"] == pytest.approx(10**0.5 * table["log_score"].std(ddof=0))
    assert table.attrs["accuracy"] == table["correct"].mean()
    assert table.attrs["not_ok"] == 0
    # a row is the fit of the problem without that sample, predicted as `predict` does
    own = seed_of_refit(1, 7)
    fold = loo.without(problem, 7)
    tree = av.fit(fold, "paper", draws=10, chains=2, random_seed=own, progressbar=False)
    by_hand = av.predict(fold, tree, problem.data.X[7:8]).mean()
    assert p[7] == pytest.approx(float(by_hand), rel=1e-12)


def test_stored_refits_are_used_again(prior, problem, tmp_path, monkeypatch, caplog):
    first = av.refit_loo(problem, "prior", folder=tmp_path, **SMALL)
    (tmp_path / "prior-00004.json").write_text('{"cut sho')
    (tmp_path / "prior-00009.json").unlink()
    done = []
    right = run.compute

    def counted(*args, **kwargs):
        done.append(1)
        return right(*args, **kwargs)

    monkeypatch.setattr(run, "compute", counted)
    again = av.refit_loo(problem, "prior", folder=tmp_path, **SMALL)
    assert len(done) == 2
    assert "prior-00004.json cannot be read, so it is computed again" in caplog.text
    assert same_rows(first, again)
    assert len(list(tmp_path.iterdir())) == 10
    av.refit_loo(problem, "prior", folder=tmp_path, **{**SMALL, "draws": 4})
    assert len(done) == 2 + 10  # another request
    other = problem.with_hypers(bias_sd=2.0)
    with pytest.raises(InputError, match="contains refits of another problem"):
        av.refit_loo(other, "prior", folder=tmp_path, **SMALL)


REFIT_IN_TWO_PROCESSES = """
import sys
import numpy as np
import ardvark as av
if __name__ == "__main__":
    data, folder, table = sys.argv[1:]
    arrays = np.load(data)
    problem = av.problem("rfvm", (arrays["X"], arrays["y"]))
    settings = {"draws": 10, "chains": 2, "random_seed": 1, "progressbar": False}
    found = av.refit_loo(problem, "paper", folder=folder, processes=2, **settings)
    np.save(table, found[["y", "probability", "log_score", "correct"]].to_numpy(float))
"""


@pytest.mark.slow
def test_two_processes_give_the_table_of_one(problem, tmp_path):
    """Kills and resumption of all such work: tests/common/test_work.py."""
    data, table = tmp_path / "data.npz", tmp_path / "table.npy"
    np.savez(data, X=problem.data.X, y=problem.y)
    script = tmp_path / "script.py"  # processes of its own import it
    script.write_text(REFIT_IN_TWO_PROCESSES)
    command = [sys.executable, *map(str, (script, data, tmp_path / "two", table))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    one = av.refit_loo(problem, "paper", folder=tmp_path / "one", **SMALL)
    columns = ["y", "probability", "log_score", "correct"]
    np.testing.assert_array_equal(np.load(table), one[columns].to_numpy(float))


@pytest.mark.parametrize("name", list(ZOO))
def test_every_model_can_be_refitted(name, prior, tmp_path):
    """A model without P(y = 1) has a score, and a density of the sign of its label."""
    data = Dataset.from_arrays(rng(2).normal(size=(4, 3)), np.arange(4) % 2)
    problem = av.problem(name, data)
    table = av.refit_loo(problem, "prior", folder=tmp_path, **SMALL)
    column = "score" if name == "fs_skr" else "probability"
    assert np.isfinite(table[[column, "log_score"]].to_numpy()).all()
    if name == "fs_skr":
        assert ((table["score"] > 0) == (table["correct"] == (problem.y == 1))).all()
    assert len(set(table[column])) == 4


def test_one_failure_loses_nothing_and_is_tried_again(
    prior, problem, tmp_path, monkeypatch, caplog
):
    table = av.refit_loo(problem, "prior", folder=tmp_path, fail_without="3", **SMALL)
    assert table.loc["3", "status"] == "failed"
    assert table.loc["3", "reason"] == "it was told to"
    assert np.isnan(table.loc["3", "probability"])
    assert np.isnan(table.attrs["elpd"])
    assert table.attrs["not_ok"] == 1
    assert np.isfinite(table.drop(index="3")["log_score"]).all()
    assert (
        "1 of 10 refits did not finish; the first is the one without 3: it was told to"
        in caplog.text
    )

    def broken(*args, **kwargs):
        raise ZeroDivisionError("a bug")

    stored = {p.name: p.stat().st_mtime_ns for p in tmp_path.iterdir()}
    monkeypatch.setattr(Prior, "fit", broken)
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
        rf"class 'ill' has only one sample, '{dataset.sample_names[ill[0]]}'.*nothing to fit",
        problem=av.problem("rfvm", lonely),
    )
    refused(
        r"the basis consists of the one sample '4'", problem=av.problem("rfvm", dataset, basis=[4])
    )
    refused("has no option 'restartz'", error=TypeError, restartz=2)
    refused("unknown method 'nutz'", method="nutz")
    refused("processes must be a finite number above 0, got 0", processes=0)
    refused("does not apply", problem=av.problem("rfvm", dataset, latent_noise="none"))
    registered(monkeypatch, Prior)
    refused("was registered in this process.*processes=1", method="prior", processes=2)
    assert not out.exists()


# --- with the exact column ------------------------------------------------------------------------


NUTS = {"draws": 500, "chains": 2, "tune": 500, "progressbar": False}


@pytest.fixture(scope="module")
def coin(tmp_path_factory):
    """PFCVM on labels of coin flips: (problem, table of refits).

    With its dense prior, because few samples in the basis are few labels in it.

    One data set, whatever the run's seeds: two of its posterior's numbers are stated below.
    """
    generator = np.random.default_rng(0)
    X = generator.normal(size=(14, 20))
    y = generator.permutation(np.arange(14) % 2)
    problem = av.problem("pfcvm", (X, y), active_features="all", active_samples="all")
    folder = tmp_path_factory.mktemp("coin")
    return problem, av.refit_loo(
        problem, "nuts", folder=folder, random_seed=seed(1), processes=1, **NUTS
    )


@pytest.mark.slow
@pytest.mark.statistical
def test_labels_in_the_basis_make_pointwise_leave_one_out_optimistic(coin):
    """Coin flips cannot be predicted: log 2 = 0.69 a sample. Refits know, pointwise does not.

    On these data -0.76 and -0.46, each with a Monte Carlo error of about 0.01: the limits are ten
    errors away.
    """
    problem, table = coin
    tree = av.fit(problem, "nuts", random_seed=seed(1), **NUTS)
    misled = tree.copy()
    misled["log_likelihood"] = misled[POINTWISE]
    pointwise = loo._psis(misled).elpd / 14
    refitted = table.attrs["elpd"] / 14
    assert refitted < -0.65
    assert pointwise > refitted + 0.15
    with pytest.raises(InputError, match="not valid for pfcvm"):
        av.loo(problem, tree)
