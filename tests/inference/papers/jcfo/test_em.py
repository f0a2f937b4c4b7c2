"""Fits of JCFO and sparse probit: filter, hold-out, what they contain, awkward input."""

from types import SimpleNamespace

import numpy as np
import pytest

import ardvark as av
from ardvark.common.progress import Reporter
from ardvark.common.validate import InputError
from ardvark.inference.papers.jcfo import em as jcfo_em
from ardvark.inference.papers.jcfo.em import Options
from ardvark.inference.papers.jcfo.holdout import FURTHER, go_on
from tests.inference.papers.awkward import two_rows
from tests.inference.papers.jcfo.problems import (
    arrays,
    direct,
    fixed,
    gammas,
    made,
    point_of,
    run_fit,
)
from tests.support import rng, seed

# --- the filter and the hold-out ------------------------------------------------------------------


def planted(N=80, D=1500, number=0):
    random = rng(number)
    X = random.standard_normal((N, D))
    y = (X[:, [7, 300, 1400]] @ [1.0, -1.0, 1.0] + 0.2 * random.standard_normal(N) > 0).astype(int)
    units = 10.0 ** random.uniform(0.0, 3.0, D)
    units[[7, 300, 1400]] = 0.01, 0.1, 0.03  # what does not standardise finds others
    return X * units, y


def test_prefilter_keeps_planted_features():
    problem = fixed("jcfo", planted(), kernel="linear")
    tree = run_fit(problem, prefilter=40, starts=2, tolerance=1e-5)
    kept = np.flatnonzero(~tree["fit"]["filtered"].values)
    assert {7, 300, 1400} <= set(kept)
    assert 15 <= len(kept) <= 40
    weight = point_of(tree)["feature_weight"]
    assert weight.shape == (1500,)
    assert set(np.argsort(weight)[-3:]) == {7, 300, 1400}
    # gammas that were filled from D are filled from what is kept; a given one is not touched
    small = problem.spec.Hypers(kernel="linear").fill(80, 80, len(kept))
    assert tree["fit"]["gamma2"].item() == small.gamma2
    given = fixed("jcfo", planted(), kernel="linear", gamma2=123.0)
    assert jcfo_em.own_gammas(given, len(kept)) == (1.0, 123.0)
    assert jcfo_em.own_gammas(problem, 1500) == (problem.hypers.gamma1, problem.hypers.gamma2)


def test_prefilter_takes_the_smallest_rate_with_the_most_weights(monkeypatch):
    """Of two rates with as many weights the smaller one, and the largest of its weights."""
    on = iter([[0, 1], [0, 3], [1, 2], *[[4]] * 9])

    def iterate(state, options):
        beta = np.zeros(6)
        beta[1 + np.array(next(on))] = -2.0
        return SimpleNamespace(state=SimpleNamespace(beta=beta))

    monkeypatch.setattr(jcfo_em, "iterate", iterate)
    np.testing.assert_array_equal(jcfo_em.prefilter(*arrays(20, 5), 4, Options()), [1, 2])


def test_prefilter_without_anything_to_filter():
    X, y = arrays(20, 5)
    np.testing.assert_array_equal(jcfo_em.prefilter(X, y, 5, Options()), np.arange(5))
    np.testing.assert_array_equal(jcfo_em.prefilter(0 * X, y, 2, Options()), np.arange(5))
    with pytest.raises(InputError, match="is that filter itself"):
        run_fit(made(20, 5, model="sparse_probit"), prefilter=2)


@pytest.mark.parametrize("model", ["jcfo", "sparse_probit"])
def test_gammas_by_holdout(model):
    problem = made(30, 6, model=model)
    tree = run_fit(problem, select="holdout", starts=1, tolerance=1e-3)
    tried, score = tree["fit"]["holdout_gamma"].values, tree["fit"]["holdout_score"].values
    assert len(tried) == len(score) == 5
    strongest = tried[:, 1 if model == "jcfo" else 0]
    np.testing.assert_allclose(strongest[1:] / strongest[:-1], 0.1)
    assert tree.attrs["gamma1"] == tried[score.argmax(), 0]
    assert (score <= 0.0).all()
    # the last fit is one to all rows, at the gammas chosen
    again = {"gamma1": tree.attrs["gamma1"]}
    if model == "jcfo":
        again["gamma2"] = tree.attrs["gamma2"]
        assert again["gamma2"] == tried[score.argmax(), 1]
    last = run_fit(made(30, 6, model=model, **again), starts=1, tolerance=1e-3)
    assert last.attrs["log_posterior"] == pytest.approx(tree.attrs["log_posterior"])


@pytest.mark.parametrize("model", ["jcfo", "sparse_probit"])
def test_an_open_grid_goes_on_until_the_choice_lies_inside(model):
    """Few iterations: a fit without a penalty takes hundreds, which no choice rests on."""
    problem = made(30, 6, model=model)
    five, wide = (
        run_fit(problem, select=select, starts=1, max_iterations=20)
        for select in ("holdout", "holdout_open")
    )
    tried, score = (wide["fit"][f"holdout_{x}"].values for x in ("gamma", "score"))
    assert {tuple(x) for x in five["fit"]["holdout_gamma"].values} <= {tuple(x) for x in tried}
    best = tried[score.argmax()]
    assert (wide.attrs["gamma1"], score.max() >= five["fit"]["holdout_score"].max()) == (
        best[0],
        True,
    )
    if model == "jcfo":
        product = tried.prod(axis=1)
        assert product.min() < best.prod() < product.max() * (1 + 1e-9)
        assert len(np.unique(tried[:, 0])) > 1  # gamma1 is varied too


def test_what_an_open_grid_adds():
    """A score with its best at 1e-7: five values from 1 to 1e-4 go on to 1e-8; and upwards."""
    for best, want in ((1e-7, [1e-8, 1.0]), (1e2, [1e-4, 1e3]), (1e-2, [1e-4, 1.0])):
        tried, scores = [(2.0, 10.0**-k) for k in range(5)], []

        def score_of(gammas, best=best):
            return -abs(np.log10(gammas[1] / best))

        scores = [score_of(x) for x in tried]
        go_on(tried, scores, score_of, (0.0, 1.0))
        np.testing.assert_allclose([tried[-1][1], tried[0][1]], want)
        assert scores == [score_of(x) for x in tried]
        assert {first for first, _ in tried} == {2.0}
    tried, scores = [(1.0, 1.0)], [0.0]
    go_on(tried, scores, lambda _: 0.0, (1.0, -1.0))  # nothing is better: one step, and no more
    np.testing.assert_allclose(tried, [(1.0, 1.0), (0.1, 10.0)])
    tried, scores = [(1.0, 1.0)], [-1.0]
    go_on(tried, scores, lambda gammas: -gammas[0], (1.0, 0.0))  # it never ends by itself
    assert len(tried) == 1 + FURTHER


def test_holdout_scores_are_those_of_a_problem_without_the_rows():
    """Standardisation, basis and scores of the inner fit, from a problem of the kept rows."""
    random = rng(1)
    X, y = arrays(30, 4)
    problem = fixed("jcfo", (5.0 + X * [1, 2, 3, 4], y.astype(int)))
    options = Options(select="holdout", starts=1)
    tuned = jcfo_em.tune(problem, y, options, rng(1), Reporter(enabled=False))
    held = jcfo_em.holdout_rows(y, random)
    assert 0 < held.sum() <= 4
    assert {0.0, 1.0} == set(y[~held])
    for (gamma1, gamma2), score in zip(tuned.tried, tuned.scores, strict=True):
        inner = fixed("jcfo", problem.data.take(~held), gamma1=gamma1, gamma2=gamma2)
        tree = run_fit(inner, starts=1, tolerance=1e-4)
        p = av.predict(inner, tree, problem.data.X[held], rule="paper").values[0, 0]
        assert score == pytest.approx(np.log(np.where(y[held] == 1, p, 1 - p)).mean(), abs=1e-6)


def test_holdout_needs_two_of_a_class():
    tree = run_fit(fixed("jcfo", two_rows()), select="holdout")
    assert tree.attrs["status"] == "failed"
    assert "2 samples of a class" in tree.attrs["reason"]
    assert jcfo_em.holdout_rows(np.array([0.0, 1.0, 1.0]), rng(0)).sum() == 1


# --- the fit contract -----------------------------------------------------------------------------


def test_lp_where_no_weight_is_zero():
    problem = made(30, 2, kernel="linear", gamma1=0.1, gamma2=0.1, parametrization="marginal")
    tree = run_fit(problem)
    point = point_of(tree)
    assert (point["feature_weight"] > 0).all()
    assert tree["sample_stats"]["lp"].item() == pytest.approx(float(problem.log_density(point)))


def test_the_first_start_has_nothing_random_and_the_others_follow_the_seed():
    problem = made(25, 30, kernel="linear", gamma2=25.0)
    options = {"starts": 3, "tolerance": 1e-3}
    one, two, other = (run_fit(problem, random_seed=seed(s), **options) for s in (1, 1, 2))
    finals = [t["fit"]["objective_start"].values for t in (one, two, other)]
    np.testing.assert_array_equal(finals[0], finals[1])
    assert finals[0][0] == finals[2][0]  # the paper's seed has nothing random
    assert (finals[0][1:] != finals[2][1:]).any()


def test_a_holdout_keeps_a_basis_of_other_centres():
    X, y = arrays(20, 4)
    given = {"kernel": "rbf", **gammas("rbf", 1)}
    for basis in ([0, 3, 9, 11, 17], rng(0).standard_normal((3, 4))):
        problem = fixed("jcfo", (X, y.astype(int)), basis=basis, **given)
        tree = run_fit(problem, starts=1, tolerance=1e-5, select="holdout")
        assert tree["posterior"].sizes["basis"] == len(basis)


# --- awkward input --------------------------------------------------------------------------------


def test_a_kernel_that_overflows_ends_its_start_only():
    X, y = arrays(10, 50)
    problem = fixed("jcfo", (X, y.astype(int)), degree=60)
    alone = run_fit(problem, starts=1)  # theta = 1: about 50^60
    assert alone.attrs["status"] == "failed"
    assert "the kernel overflows" in alone.attrs["reason"]
    several = direct(problem, starts=2, max_iterations=30)
    finals = several.details["objective_start"]
    assert finals[0] == -np.inf
    assert np.isfinite(finals[1])


def test_a_fit_without_weights_says_so_whatever_its_bias():
    X, y = rng().standard_normal((60, 3)), (np.arange(60) < 3).astype(int)
    result = direct(fixed("sparse_probit", X, y, gamma1=900.0))  # the slope at 0 is up to 43
    assert result.status == "finished"
    assert result.reason == "every weight is 0: gamma1 is too large for these data"
    assert result.posterior["bias"].item() < -0.1
