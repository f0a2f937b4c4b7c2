"""What a selection says beside the prior, with direction, size and groups: made by hand."""

import numpy as np
import xarray as xr

import ardvark as av
from ardvark.inference.fits.selection_text import EFFECTS, RULES, group_table


def tree_of(p, kind="mcmc", prior=None, effect=None, groups=None, **attrs):
    """Return a fit of which two draws are known, with one or two active features of each."""
    D = len(p)
    one = (("chain", "draw"), [[1.0, 2.0]])
    found = {
        "p_active_feature": ("feature", p), "mcse_feature": ("feature", np.full(D, 0.01)),
        "size_feature": ("feature", np.full(D, 0.5)), "active_features": one, "n90_features": one,
        "share_features": (("chain", "draw"), [[0.75, 0.85]]),
    }  # fmt: skip
    if prior is not None:
        found["prior_feature"] = ("feature", prior)
        attrs["prior_features"] = float(np.sum(prior))
    if effect is not None:
        ends = np.add.outer([-0.5, -0.1, 0.1, 0.5], effect)
        found |= {
            "effect_feature": ("feature", effect),
            "effect_at_feature": (("quantile", "feature"), ends),
        }
        found["effect_sd_feature"] = ("feature", np.full(D, 0.25))
    for name, values in (groups or {}).items():
        found[name] = ("feature" if name == "group_of_feature" else "group", values)
    coords = {"feature": [f"g{k}" for k in range(D)], "quantile": [0.05, 0.25, 0.75, 0.95]}
    told = {"unit": "log odds", "direction": "weight", "towards": "ill", "correlation": 0.6}
    selection = xr.Dataset(found, coords, told | attrs)
    tree = xr.DataTree.from_dict({"/selection": selection})
    tree.attrs["kind"] = kind
    return tree


def test_the_prior_direction_and_size_stand_beside_p_active():
    tree = tree_of([0.25, 0.875, 0.75], prior=[0.25, 0.25, 0.25], effect=[0.0, -2.0, 1.25])
    assert av.selection_text(tree) == (
        "On average 1.5 of 3 features are active (90 % interval 1 to 2; the prior expects 0.8). "
        "Active with probability above 0.5 (prior 0.25) are g1 (0.88, -2 [-2.5, -1.5]), "
        "g2 (0.75, +1.2 [0.75, 1.8]); 1 feature carries 90 % of the effect, and the active ones "
        "80 %. Numbers with a sign are effects on eta towards 'ill', in log odds per standard "
        "deviation of the feature, with 90 % intervals."
    )


def test_priors_that_differ_are_told_of_each():
    """As under labels in the basis; a constant feature, which is never active, does not count."""
    text = av.selection_text(tree_of([0.25, 0.875, 0.0], prior=[0.25, 0.5, 0.0]))
    assert "above 0.5 are g1 (0.88, prior 0.50); " in text
    alike = av.selection_text(tree_of([0.25, 0.875, 0.0], prior=[0.5, 0.5, 0.0]))
    assert "above 0.5 (prior 0.50) are g1 (0.88); " in alike
    none = av.selection_text(tree_of([0.25, 0.125], prior=[0.5, 0.5]))
    assert "No feature is active with probability above 0.5 (prior 0.50), so these data" in none


def test_slopes_are_called_so_and_a_point_has_no_interval():
    effect = [0.0, -2.0, 1.25]
    tree = tree_of([0.0, 1.0, 1.0], effect=effect, direction="average partial effect")
    assert "effects on eta (average partial effect) towards 'ill', in" in av.selection_text(tree)
    point = av.selection_text(tree_of([0.0, 1.0, 1.0], "point", effect=effect))
    assert point == (
        "At the returned point 2 of 3 features are active: g1 (-2), g2 (+1.2); 1 feature carries "
        "90 % of the effect, and the active ones 80 %. Numbers with a sign are effects on eta "
        "towards 'ill', in log odds per standard deviation of the feature."
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
    tree = tree_of(p, prior=np.full(8, 0.125), groups=groups)
    assert av.selection_text(tree).endswith(
        "At least one of a group of correlated features (correlation of at least 0.6) is active: "
        "g0, g1 (0.62, prior 0.25)."
    )
    table = group_table(tree)
    assert table.index.tolist() == ["g2", "g0", "g4", "g6"]  # the most probable first
    assert table["members"].tolist() == [["g2", "g3"], ["g0", "g1"], ["g4", "g5"], ["g6", "g7"]]
    assert table.loc["g0", ["p_active", "mcse", "prior"]].tolist() == [0.625, 0.01, 0.25]
    assert group_table(tree_of(p)).empty


def test_the_table_has_what_is_known():
    tree = tree_of([0.25, 0.875], prior=[0.25, 0.5], effect=[0.5, -1.0])
    table = av.effects(tree)
    assert tuple(table.columns) == (*EFFECTS, *RULES[:2])
    numbers = table.loc["g1", list(EFFECTS)].tolist()
    assert numbers == [
        0.875,
        0.01,
        0.5,
        -1.0,
        0.25,
        -1.5,
        -0.5,
        0.5,
    ]
    assert table.attrs == {"unit": "log odds", "towards": "ill", "direction": "weight"}
    bare = av.effects(tree_of([0.25, 0.875]))
    assert bare[["prior", "effect", "effect_sd", "low", "high"]].isna().all(axis=None)
    assert bare["p_active"].tolist() == [0.25, 0.875]
    assert av.effects(tree, "sample").empty
    assert "Numbers with a sign" not in av.selection_text(tree_of([0.25, 0.875]))
