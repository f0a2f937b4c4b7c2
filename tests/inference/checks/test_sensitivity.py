"""Prior sensitivity: what is changed, what is computed from fits made by hand, what is kept."""

import pickle
import re

import cloudpickle
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import special

import ardvark as av
from ardvark.common.validate import InputError
from ardvark.inference.checks import sensitivity as sens
from ardvark.inference.checks.sensitivity import BASELINE, changes
from ardvark.inference.comparison import study, table
from ardvark.inference.fits.selection import select_at
from ardvark.inference.methods import registry, run
from ardvark.inference.methods.refits import Sharing
from ardvark.inference.methods.reuse import Fits
from ardvark.inference.target.sampling import Sampling
from tests.inference.comparison.quick import Prior, registered
from tests.made import drawn
from tests.support import seed

SMALL = {"draws": 10, "chains": 2, "progressbar": False}


@pytest.fixture
def chain(monkeypatch):
    """A "Markov chain" that draws from the prior: it costs nothing, and moves with the prior."""
    registered(monkeypatch, type("Chain", (Prior,), {"NAME": "chain", "KIND": "mcmc"}))


# --- which rows -----------------------------------------------------------------------------------


def test_each_number_of_the_sparse_prior_is_halved_and_doubled(dataset):
    problem = av.problem("pfcvm", dataset, active_features=1.0)
    assert changes(problem) == {
        "active_features halved": {"active_features": 0.5},
        "active_features doubled": {"active_features": 2.0},
        "slab halved": {"slab": 0.5},
        "slab doubled": {"slab": 2.0},
    }
    # theta is fixed: samples instead
    assert next(iter(changes(av.problem("rvm", dataset)))) == "active_samples halved"
    # the horseshoe's slab is another one
    halved, doubled = changes(av.problem("horseshoe", dataset)).values()
    assert doubled["active_features"] == 4.0 * halved["active_features"]
    # rates given: the slab alone
    given = {"feature_rate": 1.0, "sample_rate": 1.0, "slab": 3.0}
    assert list(changes(av.problem("pfcvm", dataset, **given))) == ["slab halved", "slab doubled"]


# --- arithmetic -----------------------------------------------------------------------------------


def fit_of(problem, v, eta, status="finished"):
    """Return a fit with feature weights (chain, draw, D), of which those above 0 have an effect."""
    v, eta = np.asarray(v, dtype=float), np.asarray(eta, dtype=float)
    # primal weights v * (Z'a) with every Z'a far from 0
    a = np.broadcast_to(A, (*v.shape[:2], len(A)))
    arrays = {"feature_weight": v, "sample_weight": a, "eta": eta}
    told = {"model": "rfvm", "fingerprint": problem.fingerprint, "status": status}
    reason = "" if status == "finished" else "too short."
    return drawn(arrays, y=problem.y, method="made", reason=reason, **told)


A = np.array([1.0, -1.0, 1.0, 1.0])


@pytest.fixture
def four():
    """Four rows, four features; Z'a is (4, 2, 2, -2) in standard deviations' units or so."""
    X = np.array([[1.0, 1, 1, -1], [-1, 1, -1, 1], [1, -1, 1, 1], [1, 1, -1, -1]])
    assert (np.abs(((X - X.mean(0)) / X.std(0)).T @ A) > 1.0).all()
    return av.problem("rfvm", (X, np.array([0, 1, 0, 1])), active_features=0.5)


@pytest.fixture
def refitted(monkeypatch):
    """Return `sensitivity` with the draws (v, eta) of each row, and its status, as given."""

    def of(problem, rows, **more):
        known = {name: change for name, change in changes(problem).items() if name in rows}

        def refits(title, problems, plan, folder, processes):
            yield from ((name, fit_of(problems[name], *rows[name])) for name in problems)

        monkeypatch.setattr(sens, "refits", refits)
        return av.sensitivity(problem, "laplace", priors={**known, **more})

    return of


def draws_of(*probabilities, n=10):
    """Return weights (2, n, 4): feature k is 1 in the first share of the draws of each chain."""
    p = np.array(probabilities)  # (chain, 4)
    return (np.arange(n)[None, :, None] < np.round(n * p)[:, None, :]).astype(float)


def test_changes_worked_out_by_hand(four, refitted, snapshot):
    """The first row's changes are those from one chain to the other."""
    before = draws_of([0.8, 0.5, 0.3, 0.0], [0.8, 0.7, 0.1, 0.0])  # P: 0.8, 0.6, 0.2, 0
    after = draws_of([0.8, 0.5, 0.9, 0.0], [0.8, 0.5, 0.9, 0.0])  # P: 0.8, 0.5, 0.9, 0
    eta = np.tile([-1.0, 1.0], 5)[None, :, None] + np.zeros((2, 10, 4))
    eta[1] += 0.5
    other = eta.copy()
    other[..., 2] += 3.0
    found = refitted(
        four,
        {
            BASELINE: (before, eta),
            "active_features halved": (before, eta, "not_converged"),
            "active_features doubled": (after, other),
        },
        impossible={"active_features": 5.0},
    )
    table = found.table
    assert list(table.index) == [*found.p_active, "impossible"]
    assert found.what == "feature"
    assert tuple(found.p_active.index) == four.data.feature_names
    np.testing.assert_allclose(found.p_active[BASELINE], [0.8, 0.6, 0.2, 0.0])
    np.testing.assert_allclose(found.p_active["active_features doubled"], [0.8, 0.5, 0.9, 0.0])
    assert table["active_features"].tolist()[:3] == [0.5, 0.25, 1.0]
    assert table.loc[BASELINE, "active"] == pytest.approx(1.6)
    row = table.loc["active_features doubled"]
    assert row["active"] == pytest.approx(2.2)
    assert row["change_p"] == pytest.approx(0.7)
    assert row["name_p"] == four.data.feature_names[2]
    p = special.expit(eta[..., 2]).mean(), special.expit(eta[..., 2] + 3.0).mean()
    assert row["change_train"] == pytest.approx((p[1] - p[0]) / 4.0)
    same = table.loc["active_features halved"]  # nothing moved
    assert same["change_p"] == same["change_train"] == 0.0
    assert same["status"] == "not_converged"
    floor = table.loc[BASELINE]
    assert floor["change_p"] == pytest.approx(0.2)
    true = special.expit((2 * four.y - 1) * eta).mean(axis=1)  # (chain, N)
    assert floor["change_train"] == pytest.approx(np.abs(true[1] - true[0]).mean())
    assert table.loc["impossible", "status"] == "not possible"
    assert np.isnan(table.loc["impossible", "change_p"])
    ones = table["prior"].tolist()
    assert ones[1] < ones[0] < ones[2]  # each refit has its own prior
    assert "".join(repr(found).split()) == "".join(found.text().split())
    assert max(map(len, repr(found).splitlines())) <= 80
    snapshot("sensitivity", repr(found))


def test_the_largest_refit_is_named_and_not_the_halves_of_the_chains(four, refitted):
    """P moves by 0.5 between the halves, by less in every refit: each eta is -5 or 5 and more."""
    still = np.ones((2, 10, 4))
    halves = np.full((2, 10, 4), 5.0)
    halves[0] *= -1.0
    shifts = {BASELINE: 0.0, "slab halved": 1.0, "slab doubled": 0.25}
    found = refitted(four, {row: (still, halves + shift) for row, shift in shifts.items()})
    floor, half, double = found.table["change_train"]
    assert floor == pytest.approx(special.expit(5.0) - special.expit(-5.0))
    p = [special.expit(np.array([-5.0, 5.0]) + shift).mean() for shift in (0.0, 1.0, 0.25)]
    assert (half, double) == pytest.approx((p[1] - p[0], p[2] - p[0]))
    assert floor > half > double
    said = f"by at most {half:.3f} on average (slab halved; noise floor {floor:.3f})."
    assert said in found.text()


def test_all_refits_count_what_the_baseline_counts(dataset, chain):
    """A study with --effect 0.2 compares probabilities of one size."""
    problem = av.problem("pfcvm", dataset, active_features=1.0)
    settings = {"draws": 40, "chains": 2, "progressbar": False}
    fit = av.fit(problem, "chain", random_seed=seed(5), **settings)
    base = select_at(problem, fit, 0.2)
    found = av.sensitivity(problem, "chain", baseline=base, random_seed=seed(5), **settings)
    np.testing.assert_array_equal(found.p_active[BASELINE], base["selection"]["p_active_feature"])
    other = problem.with_hypers(active_features=2.0)
    refit = av.fit(other, "chain", random_seed=seed(5), **settings)
    p = av.select(other, refit, 0.2)["p_active_feature"]
    np.testing.assert_array_equal(found.p_active["active_features doubled"], p)


def test_one_draw_has_no_noise_floor(four, refitted):
    on, off = np.ones((1, 1, 4)), np.zeros((1, 1, 4))
    found = refitted(four, {BASELINE: (on, off), "slab doubled": (off, off)})
    assert np.isnan(found.table.loc[BASELINE, "change_p"])
    assert found.table.loc["slab doubled", "change_p"] == 1.0
    assert "P(effect) of any feature changes by at most 1.00" in found.text()


# --- refits ---------------------------------------------------------------------------------------


@pytest.mark.statistical
def test_refits_move_with_the_prior(dataset, chain):
    """Draws of the prior: 3, 6 and 12 are asked for above 0.1, so 0.6, 1.2 and 2.9 are above 0.5.

    Means of 800 draws, with sds of 0.7, 1.1 and 1.5, differ by a difference with an error of 0.05
    and 0.07: above 0.3 with probability 1 - 1e-10.
    """
    problem = av.problem("rvm", dataset, active_samples=6.0, slab=50.0)
    found = av.sensitivity(problem, "chain", random_seed=seed(4), **SMALL | {"draws": 400})
    rows = ["active_samples halved", BASELINE, "active_samples doubled"]
    assert (np.diff(found.table.loc[rows, "active"].astype(float)) > 0.3).all()
    assert found.table.loc[rows, "active_samples"].tolist() == [3.0, 6.0, 12.0]
    assert found.table.loc["slab halved", "slab"] == 0.5 * problem.hypers.slab
    assert found.table.loc["slab halved", "active_samples"] == 6.0
    assert (found.what, tuple(found.p_active.index)) == ("sample", problem.coords["basis"])
    assert "any sample changes by" in found.text()
    assert "The mean number of samples with an effect is" in found.text()


def test_a_prior_that_cannot_be_is_a_row_that_says_so(dataset, chain):
    problem = av.problem("pfcvm", dataset, active_features=2.6)
    found = av.sensitivity(problem, "chain", **SMALL)
    row = found.table.loc["active_features doubled"]
    assert row["status"] == "not possible"
    assert "got 5.2 of 5" in row["reason"]
    assert found.table.loc["active_features halved", "change_p"] > 0.0
    given = av.problem("pfcvm", dataset, sample_slab=1.0, feature_slab=1.0)
    assert "slab halved" not in av.sensitivity(given, "chain", **SMALL).table.index  # it is given


def test_refits_are_kept_and_used_again(dataset, chain, tmp_path, monkeypatch):
    given = {"feature_rate": 1.0, "sample_rate": 1.0, "slab": 3.0}
    problem = av.problem("pfcvm", dataset, **given)
    first = av.sensitivity(problem, "chain", folder=tmp_path, random_seed=2, **SMALL)
    assert len(list(tmp_path.glob("chain-*.nc"))) == 3
    (tmp_path / "chain-slab-halved.nc").unlink()
    calls, compute = [], run.compute
    monkeypatch.setattr(run, "compute", lambda *a, **k: calls.append(a) or compute(*a, **k))
    again = av.sensitivity(problem, "chain", folder=tmp_path, random_seed=2, **SMALL)
    assert len(calls) == 1
    pd.testing.assert_frame_equal(again.table, first.table)
    # a fit that is there is not repeated; nor are the refits, which are those of its settings
    whole = av.fit(problem, "chain", random_seed=2, **SMALL)
    calls.clear()
    found = av.sensitivity(
        problem, "chain", folder=tmp_path, baseline=whole, random_seed=2, **SMALL
    )
    assert not calls
    pd.testing.assert_frame_equal(found.table, first.table)
    with pytest.raises(InputError, match="of another problem"):
        av.sensitivity(problem.with_hypers(slab=0.5), "chain", baseline=whole)


def test_a_refit_is_the_same_in_another_process(dataset):
    """By the bytes that another process is given."""
    problem = av.problem("sparse_probit", dataset)
    plan = registry.prepare("gibbs", problem, {"tune": 5}, Sampling(draws=20, seed=3))
    work = Fits({"a": plan.on(2).of(Sharing.of(problem, {}))})
    there = pickle.loads(cloudpickle.dumps(work))
    here, other = (fits.start()("a")["posterior"].to_dataset() for fits in (work, there))
    xr.testing.assert_equal(here, other)


def test_a_failed_refit_loses_nothing(dataset, chain, monkeypatch):
    problem = av.problem("pfcvm", dataset, active_features=1.0)
    fit = registry.BACKENDS["chain"].fit

    def sometimes(target, options, job):
        if target.problem.hypers.slab == 0.5:
            raise ZeroDivisionError("a bug")
        return fit(target, options, job)

    monkeypatch.setattr(registry.BACKENDS["chain"], "fit", staticmethod(sometimes))
    found = av.sensitivity(problem, "chain", **SMALL)
    assert found.table.loc["slab halved", "status"] == "failed"
    assert "Slab halved: failed: ZeroDivisionError: a bug." in found.text()
    assert found.table.loc["slab doubled", "change_p"] > 0.0
    with pytest.raises(InputError, match="could not be fitted: ZeroDivisionError: a bug"):
        av.sensitivity(problem.with_hypers(slab=0.5), "chain", **SMALL)


def test_refits_share_one_model_bound_to_their_own_prior(dataset):
    problem = av.problem("pfcvm", dataset, active_features=1.0)
    models = {}
    first = Sharing.of(problem, models).fitted_model
    for change in ({"active_features": 0.5}, {"slab": 0.5}):
        variant = problem.with_hypers(**change)
        shared = Sharing.of(variant, models).fitted_model
        assert shared is first
        own = {v.name: v.get_value() for v in variant.model.data_vars}
        for v in shared.data_vars:
            np.testing.assert_array_equal(v.get_value(), own[v.name])
    assert Sharing.of(problem.with_hypers(bias_sd=3.0), models).fitted_model is not first


# --- study and report -----------------------------------------------------------------------------


def test_the_report_has_a_section(dataset, chain, tmp_path, monkeypatch):
    """Its figures are none of this test."""
    monkeypatch.setattr(table.Comparison, "pictures", lambda self: {})
    problem = av.problem("rfvm", dataset, active_features=2.6)
    sampling = Sampling(draws=60, chains=2, seed=1)
    fits = study.run(problem, {"chain": {}}, tmp_path, sampling)
    study.check_sensitivity(problem, ["chain"])
    found = study.prior_sensitivity(tmp_path, problem, fits, progressbar=False)
    assert len(list((tmp_path / study.SENSITIVITY).glob("*.nc"))) == 3  # one cannot be
    assert fits["chain"].attrs["fingerprint"] == problem.fingerprint
    study.summarise(tmp_path, problem, fits, progressbar=False, sensitivity=found)
    page = (tmp_path / "report.html").read_text()
    assert "<h2>Prior sensitivity</h2>" in page
    assert "Under the other priors P(effect) of any feature changes by" in page
    assert re.search(r'class="bad"[^>]*>not possible', page)
    stored = pd.read_csv(tmp_path / "sensitivity.csv", index_col="refit")
    assert list(stored.index) == list(found.table.index)
    assert set(study.load_fits(tmp_path, problem)) == {"chain"}  # refits are none of the study's
    study.summarise(tmp_path, problem, fits, progressbar=False)
    assert "Prior sensitivity" not in (tmp_path / "report.html").read_text()


def test_refits_of_a_study_have_the_settings_of_its_chain(dataset, chain, tmp_path, monkeypatch):
    """Sizes, seed and options, none of which is a default."""
    problem = av.problem("pfcvm", dataset, active_features=1.0)
    options = {"fail_without": dataset.sample_names[0]}
    sampling = Sampling(draws=10, chains=3, seed=5)
    fits = study.run(problem, {"chain": options}, tmp_path, sampling)
    asked = []
    monkeypatch.setattr(study, "sensitivity", lambda *given, **settings: asked.append(settings))
    study.prior_sensitivity(tmp_path, problem, fits, progressbar=False)
    assert asked == [
        {
            "draws": 10, "chains": 3, "random_seed": 5, "folder": tmp_path / study.SENSITIVITY,
            "baseline": fits["chain"], "progressbar": False, **options,
        }
    ]  # fmt: skip
