"""How many effects the prior expects, and of which group at least one feature is."""

import numpy as np
import pytest

import ardvark as av
from ardvark.inference.fits import prior_activity as module
from ardvark.inference.fits.groups import CORRELATED, any_active, groups
from ardvark.inference.fits.prior_activity import prior_activity
from ardvark.inference.fits.selection import summary
from ardvark.models import ZOO
from tests.inference.fits.weights import prior_draws, selected, tree_of
from tests.support import rng, z_limit


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        ("rfvm", {}),
        ("pfcvm", {"kernel": "rbf"}),
        ("fsklr", {}),
        ("rvm", {}),
        ("sparse_probit", {}),
        ("horseshoe", {}),
    ],
)
def test_the_numbers_are_those_of_simulated_draws(model, settings, small_data, monkeypatch):
    """As of any fit, over all rows, whose draws are these."""
    monkeypatch.setattr(module, "DRAWS", 60)
    monkeypatch.setattr(module, "_KNOWN", {})
    problem = av.problem(model, small_data(N=16, D=5), **settings)
    found = prior_activity(problem, 0.1)
    one, generator = problem.at(problem.data.X[:1]), np.random.default_rng(0)
    points = [problem.simulate(generator, one) for _ in range(60)]
    names = [n for n in ("feature_weight", "sample_weight", "bias", "beta") if n in points[0]]
    names = [n for n in names if not problem.spec.has_basis or n != "beta"]
    tree = tree_of(problem, **{n: np.array([[p[n] for p in points]]) for n in names})
    expected = av.select(problem, tree, threshold=0.1)
    for what, active in found.active.items():
        np.testing.assert_array_equal(active.mean(axis=0), expected[f"p_active_{what}"])
        assert found.number(what)[0] == active.sum(axis=1).mean()
        assert found.probability(what)[0].sum() == pytest.approx(found.number(what)[0])


def test_equal_problems_are_simulated_once_and_have_equal_numbers(small_data, monkeypatch):
    for name, size in (("DRAWS", 20), ("FEWEST", 10), ("_KNOWN", {})):
        monkeypatch.setattr(module, name, size)
    data = small_data(N=16, D=5)
    problem, again = av.problem("rfvm", data), av.problem("rfvm", data)
    prior = prior_activity(problem, 0.1)
    assert prior_activity(again, 0.1) is prior
    assert prior_activity(problem, 0.2) is not prior
    for other in ({"parametrization": "marginal"}, {"slab": 2.0}, {"active_features": 1.0}):
        assert prior_activity(av.problem("rfvm", data, **other), 0.1) is not prior
    assert prior_activity(av.problem("rfvm", small_data(N=16, D=5, seed=1)), 0.1) is not prior
    monkeypatch.setattr(module, "_KNOWN", {})
    anew = prior_activity(again, 0.1)  # the seed is fixed
    assert anew is not prior
    for what, active in prior.active.items():
        np.testing.assert_array_equal(anew.active[what], active)
    for threshold in np.linspace(0.2, 1.0, 2 * module._MOST):
        prior_activity(problem, threshold)
    assert len(module._KNOWN) == module._MOST
    assert prior_activity(problem, 0.1) is not anew  # the oldest was forgotten


def test_a_selection_has_the_priors_numbers_beside_its_own(small_data):
    problem = av.problem("rfvm", small_data(N=16, D=5))
    found = av.select(problem, tree_of(problem, **prior_draws(problem)))
    prior = prior_activity(problem, 0.5)
    ends = (found.attrs[f"prior_features{end}"] for end in ("", "_low", "_high"))
    assert tuple(ends) == prior.number("feature")
    for what in ("feature", "sample"):
        p, error = prior.probability(what)
        np.testing.assert_array_equal(found[f"prior_{what}"], p)
        np.testing.assert_array_equal(found[f"prior_mcse_{what}"], error)
        np.testing.assert_array_equal(found[f"prior_curve_{what}"].sel(t=0.5), p)
        numbers = summary(found, what)
        told = tuple(numbers[f"prior{end}"] for end in ("", "_low", "_high"))
        assert told == prior.number(what)
    assert prior.number("feature") != prior.number("sample")
    assert len(set(found["prior_feature"].values)) == 1  # one prior for all
    assert len(set(found["prior_sample"].values)) > 1  # a sample's column has its own spread
    wide = av.select(problem, tree_of(problem, **prior_draws(problem)), threshold=1.0)
    assert wide.attrs["prior_features"] < found.attrs["prior_features"]


def test_the_interval_of_the_number_is_of_ninety_percent():
    """Counts 0, 1, ..., 20 with equal probabilities: 1 and 19 are the 5 % and 95 % quantiles."""
    active = np.tri(21, 20, -1, dtype=bool)
    found = module.PriorActivity({"feature": active}, {}, {"feature": np.ones(20, dtype=bool)})
    assert found.number("feature") == (10.0, 1.0, 19.0)
    p, error = found.probability("feature")
    np.testing.assert_allclose(p, 0.5)
    # the shares 0, 1/20, ..., 1 have the variance (21^2 - 1) / 12 / 20^2
    np.testing.assert_allclose(error, np.sqrt(440 / 12 / 400 / 21))


@pytest.mark.statistical
def test_labels_in_the_basis_favour_features_that_tell_the_classes_apart():
    """PFCVM: centres are signed by their labels, so Z'a is large for such a feature. RFVM: no.

    The difference of two shares of 400 draws has an sd of at most (2 / 4 / 400)^1/2 by chance.
    """
    chance = z_limit(20) * (0.5 / 400) ** 0.5
    random = rng(8)
    y = np.arange(40) % 2
    X = np.column_stack([y + 0.1 * random.normal(size=40), random.normal(size=(40, 5))])
    p = prior_activity(av.problem("pfcvm", (X, y)), 0.1).probability("feature")[0]
    assert p[0] > p[1:].max() + chance
    p = prior_activity(av.problem("rfvm", (X, y)), 0.1).active["feature"].mean(axis=0)
    assert np.ptp(p) < chance


def test_a_constant_feature_has_no_effect_under_the_prior(small_data):
    X = small_data(N=16, D=5).X.copy()
    X[:, 2] = 1.0
    for model in ("rfvm", "rvm"):
        problem = av.problem(model, (X, np.arange(16) % 2))
        found = prior_activity(problem, 0.1)
        p, _ = found.probability("feature")
        assert (p > 0.0).tolist() == [True, True, False, True, True]
        # nor does it lower the mean of those that are alike
        assert p.sum() == pytest.approx(found.number("feature")[0])


def test_rows_are_thinned_and_draws_are_few_where_they_are_many(monkeypatch):
    random = rng(4)
    problem = av.problem("pfcvm", (random.normal(size=(60, 4)), np.arange(60) % 2), kernel="rbf")
    whole = prior_activity(problem, 0.1)
    assert len(whole.active["feature"]) == module.DRAWS
    monkeypatch.setattr(module, "ROWS", 30)
    monkeypatch.setattr(module, "_COST", 12.0 * 30 * 60 * 4 * 150)
    part = prior_activity(problem, 0.1000001)
    assert len(part.active["feature"]) == 150
    same = (part.active["feature"] == whole.active["feature"][:150]).mean()
    assert same > 0.9  # the same draws, over half of the rows
    monkeypatch.setattr(module, "_NUMBERS", 120.0 * (60 + 4))
    assert len(prior_activity(problem, 0.1000002).active["feature"]) == 120


def test_a_prior_that_cannot_be_simulated_is_left_out(small_data):
    problem = av.problem(
        "rfvm", small_data(N=12, D=3), feature_shape=0.01, feature_rate=0.01, sample_shape=0.01,
        sample_rate=0.01,
    )  # fmt: skip
    assert prior_activity(problem, 0.1) is None
    arrays = {"feature_weight": np.ones((1, 4, 3)), "sample_weight": np.ones((1, 4, 12))}
    tree = selected(problem, **arrays)
    assert "prior_feature" not in tree["selection"]
    assert "prior" not in av.inference.selection_text(tree)
    assert av.effects(tree)["prior"].isna().all()


@pytest.mark.parametrize("model", list(ZOO))
def test_every_model_has_a_prior(model, small_data):
    problem = av.problem(model, small_data(N=12, D=3))
    found = prior_activity(problem, 0.1)
    assert set(found.active) == ({"feature", "sample"} if problem.spec.has_basis else {"feature"})
    assert 0.0 < found.number("feature")[0] <= 3.0


# --- groups ---------------------------------------------------------------------------------------


def test_a_group_is_a_leading_feature_and_what_correlates_with_it():
    random = rng(5)
    x = random.normal(size=(2000, 4))
    near = 0.8 * x[:, 0] + 0.6 * x[:, 3]  # correlation 0.8 with 0 and 0.6 with 3, about
    X = np.column_stack([x[:, 0], x[:, 1], -x[:, 1], x[:, 2], near, np.ones(2000)])
    r = np.abs(np.corrcoef(X[:, :5], rowvar=False))
    assert ((r > CORRELATED) == (r > 0.5)).all()  # no correlation near the limit
    p = np.array([0.2, 0.1, 0.3, 0.9, 0.4, 0.0])
    assert [g.tolist() for g in groups(X, p)] == [[4, 0], [2, 1]]
    # one that is never active leads no group, and belongs to one
    assert [g.tolist() for g in groups(X, np.where(p == 0.4, 0.0, p))] == [[2, 1], [0, 4]]
    assert groups(X, np.zeros(6)) == []


def test_a_feature_belongs_to_the_group_of_the_first_leading_one():
    """A chain of three: the ends are far from each other, the middle is near to both."""
    random = rng(6)
    a, b = random.normal(size=(2, 4000))
    X = np.column_stack([a, (a + b) / 2**0.5, b])  # correlations 0.7, 0.7, 0
    assert [g.tolist() for g in groups(X, np.array([0.9, 0.5, 0.1]))] == [[0, 1]]
    assert [g.tolist() for g in groups(X, np.array([0.5, 0.9, 0.6]))] == [[1, 2, 0]]


def test_two_copies_are_active_in_turn(small_data):
    """Either copy carries the effect in half of the draws: no P is large, that of the group is."""
    X = small_data(N=20, D=2).X
    problem = av.problem("rfvm", (np.column_stack([X, X[:, 0]]), np.arange(20) % 2))
    a = np.linalg.lstsq(problem.Z.T, np.array([1.0, 1.0, 1.0]), rcond=None)[0]
    w = problem.Z.T @ a
    v = np.zeros((2, 500, 3))
    first = rng(7).random((2, 500)) < 0.5
    v[..., 0], v[..., 2] = np.where(first, 1.0, 0.0), np.where(first, 0.0, 1.0)
    v[:, :50] = 0.0
    v = v / np.abs(w)
    tree = selected(problem, feature_weight=v, sample_weight=np.tile(a, (2, 500, 1)))
    found = tree["selection"]
    assert (found["p_active_feature"].values < 0.6).all()
    assert found["p_active_group"].values.tolist() == [0.9]
    assert found["mcse_group"].values[0] > 0.0
    assert found["group_of_feature"].values.tolist() == [0, -1, 0]
    leader = str(found["feature"].values[found["leading_feature"].values[0]])
    prior = prior_activity(problem, 0.5).active["feature"][:, [0, 2]].any(1).mean()
    assert found["prior_group"].values.tolist() == [prior]
    other = {"x1": "x3", "x3": "x1"}[leader]
    told = f"(correlation of at least 0.6) has such an effect: {leader}, {other} (0.90, prior "
    assert f"{told}{prior:.2f})." in av.inference.selection_text(tree)


def test_no_groups_no_words(small_data):
    assert any_active(np.ones((2, 3, 4), dtype=bool), []).shape == (2, 3, 0)
    problem = av.problem("rfvm", small_data(N=40, D=3))
    tree = selected(problem, **prior_draws(problem))
    assert "p_active_group" not in tree["selection"]
    assert "correlat" not in av.inference.selection_text(tree)
