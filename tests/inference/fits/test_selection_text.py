"""What a selection says beside the prior, with direction, size and groups: made by hand."""

import numpy as np
import pytest
import xarray as xr

import ardvark as av
from ardvark.inference.fits.activity import QUANTILES
from ardvark.inference.fits.covariates import ODDS
from ardvark.inference.fits.effects import EFFECTS, factor, group_table, printed
from ardvark.inference.fits.selection_rules import RULES
from tests.inference.fits.selections import selection
from tests.support import rng, z_limit


def tree_of(p, kind="mcmc", prior=None, effect=None, attrs=None, **known):
    """Return a fit of which two draws are known, with one or two active features of each."""
    D, one = len(p), [[1.0, 2.0]]
    told = {"unit": "log odds", "direction": "weight", "towards": "ill", "correlation": 0.6}
    told |= attrs or {}
    known |= {"mcse_feature": np.full(D, 0.01), "size_feature": np.full(D, 0.5)}
    if prior is not None:
        known["prior_feature"] = prior
        told["prior_features"] = float(np.sum(prior))
    if effect is not None:
        known |= {"effect_feature": effect, "effect_sd_feature": np.full(D, 0.25)}
    found = selection(p, [f"g{k}" for k in range(D)], counts=one, attrs=told, **known)
    found["share_features"] = (("chain", "draw"), [[0.75, 0.85]])
    if effect is not None:
        ends = np.add.outer([-0.5, -0.1, 0.05, 0.1, 0.5], effect)
        found = found.assign_coords(quantile=list(QUANTILES))
        found["effect_at_feature"] = (("quantile", "feature"), ends)
    tree = xr.DataTree.from_dict({"/selection": found})
    tree.attrs["kind"] = kind
    return tree


def test_the_prior_direction_and_size_stand_beside_p_active():
    p, effect = [0.25, 0.875, 0.75, 0.0, 0.0], [0.0, -2.0, 1.25, 0.0, 0.0]
    tree = tree_of(p, prior=[0.25] * 5, effect=effect)
    assert av.inference.selection_text(tree) == (
        "On average 1.5 of 5 features have an effect above 0.5 (90 % interval 1 to 2; the prior "
        "expects 1.2). More likely above it than not (prior 0.25) are g1 (-2 [-2.5, -1.5], P "
        "0.88), g2 (+1.2 [0.75, 1.8], P 0.75); 1 feature carries 90 % of the squared effects, and "
        "those above it 80 %. Numbers with a sign are effects on eta towards 'ill', in log odds "
        "per standard deviation of the feature, with 90 % intervals."
    )


def test_priors_that_differ_are_told_of_each():
    """As under labels in the basis; a constant feature, without an effect, does not count."""
    text = av.inference.selection_text(tree_of([0.25, 0.875, 0.0], prior=[0.25, 0.5, 0.0]))
    assert "above it than not are g1 (P 0.88, prior 0.50); " in text
    alike = av.inference.selection_text(tree_of([0.25, 0.875, 0.0], prior=[0.5, 0.5, 0.0]))
    assert "above it than not (prior 0.50) are g1 (P 0.88); " in alike
    none = av.inference.selection_text(tree_of([0.25, 0.125], prior=[0.5, 0.5]))
    assert "None is more likely above it than not (prior 0.50), so this fit" in none


def test_slopes_are_called_so_and_a_point_has_no_interval():
    effect = [0.0, -2.0, 1.25]
    tree = tree_of([0.0, 1.0, 1.0], effect=effect, attrs={"direction": "average partial effect"})
    assert (
        "effects on eta (average partial effect) towards 'ill', in"
        in av.inference.selection_text(tree)
    )
    point = av.inference.selection_text(tree_of([0.0, 1.0, 1.0], "point", effect=effect))
    assert point == (
        "At the returned point 2 of 3 features have an effect above 0.5: g1 (-2), g2 (+1.2); "
        "1 feature carries 90 % of the squared effects, and those above it 80 %. Numbers with a "
        "sign are effects on eta towards 'ill', in log odds per standard deviation of the feature."
    )


def test_groups_are_named_where_they_say_more_than_their_members_and_the_prior():
    p = [0.375, 0.25, 0.9375, 0.25, 0.375, 0.25, 0.125, 0.0625]
    groups = {
        "group_of_feature": [0, 0, 1, 1, 2, 2, 3, 3],
        "leading_feature": [0, 2, 4, 6],
        "p_active_group": [0.625, 0.96875, 0.625, 0.1875],
        "mcse_group": [0.01] * 4,
        # the second says what its leading feature says, the third what the prior says
        "prior_group": [0.25, 0.25, 0.5625, 0.125],
    }
    tree = tree_of(p, prior=np.full(8, 0.125), **groups)
    assert av.inference.selection_text(tree).endswith(
        "At least one of a group of correlated features (correlation of at least 0.6) has such an "
        "effect: g0, g1 (0.62, prior 0.25)."
    )
    table = group_table(tree)
    assert table.index.tolist() == ["g2", "g0", "g4", "g6"]  # the most probable first
    assert table["members"].tolist() == [["g2", "g3"], ["g0", "g1"], ["g4", "g5"], ["g6", "g7"]]
    assert table.loc["g0", ["p_active", "mcse", "prior"]].tolist() == [0.625, 0.01, 0.25]
    assert group_table(tree_of(p)).empty


def test_the_table_has_what_is_known():
    """Bayes factors by hand: 0.875 / 0.125 where the prior is even, 1/3 * 3 = 1 where it is not."""
    known = {"direction_feature": [0.75, 1.0], "prior_mcse_feature": [0.03, 0.05]}
    tree = tree_of([0.25, 0.875], prior=[0.25, 0.5], effect=[0.5, -1.0], **known)
    table = av.effects(tree)
    assert tuple(table.columns) == (*EFFECTS[:4], *ODDS, *EFFECTS[4:], *RULES[:2])
    want = {"effect": -1.0, "low": -1.5, "high": -0.5, "effect_sd": 0.25, "p_direction": 1.0,
            "p_active": 0.875, "mcse": 0.01, "prior": 0.5, "bayes_factor": 7.0, "size": 0.5,
            "bayes_factor_error": np.hypot(0.01 / (0.875 * 0.125), 0.05 / 0.25),
            "odds_ratio": np.exp(-0.95), "odds_low": np.exp(-1.5), "odds_high": np.exp(-0.5),
            "P > 1/2": True, "FDR 10 %": False}  # fmt: skip
    assert table.loc["g1"].to_dict() == pytest.approx(want)
    assert table.loc["g0", "bayes_factor"] == pytest.approx(1.0)
    about = {"unit": "log odds", "towards": "ill", "direction": "weight", "threshold": 0.5}
    assert table.attrs == about
    bare = av.effects(tree_of([0.25, 0.875]))
    unknown = ["prior", "effect", "effect_sd", "low", "high", "p_direction", "bayes_factor", *ODDS]
    assert bare[unknown].isna().all(axis=None)
    assert bare["p_active"].tolist() == [0.25, 0.875]
    assert av.effects(tree, "sample").empty
    assert "Numbers with a sign" not in av.inference.selection_text(tree_of([0.25, 0.875]))


@pytest.mark.parametrize(
    ("unit", "direction", "has"),
    [("log odds", "weight", True), ("log odds before the latent noise", "weight", True),
     ("probit units", "weight", False), ("log odds", "average partial effect", False)],
)  # fmt: skip
def test_odds_ratios_are_of_linear_log_odds(unit, direction, has):
    tree = tree_of([0.5], effect=[1.0], attrs={"unit": unit, "direction": direction})
    assert set(ODDS) & set(av.effects(tree)) == (set(ODDS) if has else set())


def test_a_bayes_factor_at_the_ends():
    """In all draws or none, it is infinite or 0; a prior of 0 or 1 gives none."""
    table = av.effects(tree_of([1.0, 0.0, 0.5, 0.5], prior=[0.5, 0.5, 0.0, 1.0]))
    assert table["bayes_factor"].tolist()[:2] == [np.inf, 0.0]
    assert table["bayes_factor"].isna().tolist() == [False, False, True, True]
    assert [factor(x) for x in (np.inf, 100.5, 3.14159, 0.02, 0.0, np.nan)] == [
        "> 100", "> 100", "3.1", "0.02", "< 0.01", ""
    ]  # fmt: skip


@pytest.mark.statistical
def test_the_error_of_a_bayes_factor_is_its_spread_over_repetitions():
    """P = 0.6 and 0.25 under the prior, by 400 draws of each; 400 repetitions of the logarithm.

    An sd of R numbers that are nearly normal has the relative error (2 R)^-1/2 = 0.035. The formula
    is a first order in errors of 0.1; the next one is below 0.02 of it.
    """
    random, draws, R = rng(11), 400, 400
    p, prior = (random.binomial(draws, x, size=R) / draws for x in (0.6, 0.25))
    mcse, error = (np.sqrt(x * (1.0 - x) / draws) for x in (p, prior))
    tree = tree_of(p, prior=prior, prior_mcse_feature=error)
    tree["selection"]["mcse_feature"].values[:] = mcse
    table = av.effects(tree)
    spread = np.log(table["bayes_factor"]).std()
    told = np.sqrt((table["bayes_factor_error"] ** 2).mean())
    assert abs(told / spread - 1.0) < z_limit() * 0.035 + 0.02


def test_in_print_what_is_not_known_has_no_column():
    known = {"direction_feature": [0.75, 1.0]}
    shown = printed(
        av.effects(tree_of([0.25, 0.875], prior=[0.25, 0.5], effect=[0.5, -1.0], **known))
    )
    assert shown.loc["g1"].to_dict() == {
        "effect": "-1.00", "odds ratio (90 %)": "0.39 (0.22 to 0.61)", "direction": "1.00",
        "P(> 0.5)": "0.88", "prior": "0.50", "Bayes f.": "7",
    }  # fmt: skip
    slope = tree_of([0.25], effect=[1.0], attrs={"direction": "average partial effect"})
    assert printed(av.effects(slope)).loc["g0"].to_dict() == {
        "effect": "+1.00", "90 % interval": "+0.5 to +1.5", "P(> 0.5)": "0.25"
    }  # fmt: skip
    assert list(printed(av.effects(tree_of([0.25])))) == ["P(> 0.5)"]
