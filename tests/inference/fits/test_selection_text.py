"""What a selection says beside the prior, with direction, size and groups: made by hand."""

import numpy as np
import pytest
import xarray as xr

import ardvark as av
from ardvark.inference.fits.activity import QUANTILES
from ardvark.inference.fits.covariates import ODDS, always_text
from ardvark.inference.fits.effects import EFFECTS, factor, group_table, printed
from ardvark.inference.fits.selection_rules import RULES
from ardvark.inference.fits.selection_text import groups_instead
from tests.inference.fits.selections import selection
from tests.made import drawn
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


def told(p, counts=(1.0, 2.0), n90=(2.0, 2.0), kind="mcmc"):
    """Return a fit of which P(effect) and the numbers of each draw are known, and nothing else."""
    found = selection(p, [f"g{k}" for k in range(len(p))], counts=[counts], n90=[n90])
    tree = xr.DataTree.from_dict({"/selection": found})
    tree.attrs["kind"] = kind
    return tree


SIGNED = [0.0, -2.02, 1.24, 0.0, 0.0]
SLOPE = {"direction": "average partial effect"}
GROUPS = {
    "group_of_feature": [0, 0, 1, 1, 2, 2, 3, 3],
    "leading_feature": [0, 2, 4, 6],
    "p_active_group": [0.63, 0.97, 0.63, 0.19],
    "mcse_group": [0.01] * 4,
    # the second says what its leading feature says, the third what the prior says
    "prior_group": [0.26, 0.26, 0.56, 0.13],
}
OF_GROUPS = [0.38, 0.26, 0.94, 0.26, 0.38, 0.26, 0.13, 0.06]
CASES = {
    "all that is known": tree_of([0.24, 0.87, 0.76, 0.0, 0.0], prior=[0.24] * 5, effect=SIGNED),
    "priors that differ": tree_of([0.24, 0.87, 0.0], prior=[0.24, 0.51, 0.0]),
    "equal priors, one feature is constant": tree_of([0.24, 0.87, 0.0], prior=[0.51, 0.51, 0.0]),
    "none, beside the prior": tree_of([0.24, 0.13], prior=[0.51, 0.51]),
    "slopes": tree_of([0.0, 1.0, 1.0, 0.0, 0.0], effect=SIGNED, attrs=SLOPE),
    "a point with signs": tree_of([0.0, 1.0, 1.0, 0.0, 0.0], "point", effect=SIGNED),
    "groups that say more": tree_of(OF_GROUPS, prior=np.full(8, 0.13), **GROUPS),
    "some": told([0.61, 0.1, 0.0, 0.1, 0.98], [1.0, 2.0, 2.0, np.nan], [2.0, 2.0, 1.0, np.nan]),
    "none": told([0.5, 0.2, 0.0], [1.0, 0.0], [1.0, 1.0]),
    "the lower quartile is 0.24": told([0.9, 0.61, 0.24, 0.24, 0.24]),
    "the lower quartile is 0.31": told([0.9, 0.61, 0.5, 0.31, 0.1]),
    "the lower quartile is 0.46": told([0.9, 0.8, 0.5, 0.34]),
    "never": told([0.0, 0.0], [0.0], [2.0]),
    "many": told([1.0] * 11, [11.0], [9.0]),
    "a point": told([0.0, 1.0, 1.0], [2.0], [2.0], "point"),
    "a point without any": told([0.0, 0.0], [0.0], [0.0], "search"),
}


def test_selections_in_words(snapshot):
    lines = [f"{n}: {av.inference.selection_text(tree)}" for n, tree in CASES.items()]
    for name in ("all that is known", "slopes", "some"):
        lines += [f"\n{name}", printed(av.effects(CASES[name])).to_string()]
    snapshot("selection", "\n".join(lines))


def test_an_effect_of_what_is_always_in_stands_before_its_interval():
    tree = drawn({"covariate_weight": np.linspace(0, 1, 101)[None, :, None]},
                 coords={"covariate": ["age"]})  # fmt: skip
    assert "age (+0.5 [0.05, 0.95])" in always_text(tree)


def test_the_table_of_groups():
    table = group_table(CASES["groups that say more"])
    assert table.index.tolist() == ["g2", "g0", "g4", "g6"]  # the most probable first
    assert table["members"].tolist() == [["g2", "g3"], ["g0", "g1"], ["g4", "g5"], ["g6", "g7"]]
    assert table.loc["g0", ["p_active", "mcse", "prior"]].tolist() == [0.63, 0.01, 0.26]
    assert group_table(CASES["none"]).empty


def test_groups_stand_in_for_features_that_are_not_probable():
    assert groups_instead(CASES["groups that say more"]) == ""  # one feature has 0.94
    p = np.minimum(OF_GROUPS, 0.4)
    said = groups_instead(tree_of(p, prior=np.full(8, 0.13), **GROUPS))
    assert "g2, g3 (0.97" in said
    assert "g0, g1 (0.63" in said


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
    in_eta = table.drop(columns=list(ODDS)).assign(low=[0.25, -1.5], high=[0.25, -0.5])
    assert printed(in_eta)["90 % interval"].tolist() == ["", "-1.5 to -0.5"]
    bare = av.effects(tree_of([0.25, 0.875]))
    unknown = ["prior", "effect", "effect_sd", "low", "high", "p_direction", "bayes_factor", *ODDS]
    assert bare[unknown].isna().all(axis=None)
    assert bare["p_active"].tolist() == [0.25, 0.875]
    assert av.effects(tree, "sample").empty


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
