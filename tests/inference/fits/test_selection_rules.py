"""Selection rules by enumeration and by hand."""

import itertools

import numpy as np
import pytest
import xarray as xr

import ardvark as av
from ardvark.inference.fits.effects import selected_beside
from ardvark.inference.fits.selection_rules import discoveries
from tests.inference.fits.selections import selection
from tests.support import rng


def fit(p, own=None, **known):
    names = {"feature": [f"x{k}" for k in range(len(p))]}
    groups = {"/selection": selection(p, names["feature"], **known)}
    if own is not None:
        groups["/fit"] = xr.Dataset({"selected_feature": ("feature", np.array(own))}, names)
    return xr.DataTree.from_dict(groups)


@pytest.mark.parametrize("number", range(5))
def test_no_larger_set_has_so_few_false_discoveries(number):
    """Against all 2^7 sets: the longest with an expected share of false ones of at most 0.1."""
    p = np.clip(rng(number).uniform(0.6, 1.05, size=7), 0.0, 1.0)
    best = max(
        (
            sum(keep)
            for keep in itertools.product((0, 1), repeat=7)
            if sum(keep) and (1 - p)[np.array(keep) == 1].mean() <= 0.1
        ),
        default=0,
    )
    chosen = discoveries(p)
    assert chosen.sum() == best
    assert p[chosen].min(initial=1.0) >= p[~chosen].max(initial=0.0)


def test_false_discoveries_at_the_ends():
    assert not discoveries(np.array([0.89, 0.5])).any()
    assert discoveries(np.array([0.9, 0.2])).tolist() == [True, False]
    assert discoveries(np.array([1.0, 0.8, 0.79])).tolist() == [True, True, False]
    assert discoveries(np.ones(3)).all()
    assert discoveries(np.array([0.95, 0.85])).all()  # 0.1, and more by rounding


def test_each_rule_stands_beside_p_active():
    assert av.effects(fit([0.5]))["P > 1/2"].tolist() == [False]
    found = av.effects(fit([0.3, 1.0, 0.55], own=[1, 0, 1]))
    assert list(found.index) == ["x0", "x1", "x2"]
    assert found.p_active.tolist() == [0.3, 1.0, 0.55]
    assert found["P > 1/2"].tolist() == [False, True, True]
    assert found["FDR 10 %"].tolist() == [False, True, False]
    assert found["own"].tolist() == [True, False, True]
    assert "own" not in av.effects(fit([0.3, 0.4]))
    assert av.effects(xr.DataTree()).empty


def test_fits_beside_each_other():
    """Only what some rule selects, in the order of the reference."""
    shown = selected_beside(
        {"a": fit([0.1, 0.2, 0.6]), "b": fit([0.9, 0.0, 0.0], own=[0, 0, 1])}, "a"
    )
    assert list(shown.index) == ["x2", "x0"]
    assert shown["a"].tolist() == ["0.60, P > 1/2", "0.10"]
    assert shown["b"].tolist() == ["0.00, own", "0.90, P > 1/2, FDR 10 %"]
    assert len(selected_beside({"a": fit(np.ones(30))}, None)) == 20
    assert selected_beside({"a": xr.DataTree()}, None).empty


def test_the_prior_stands_beside_the_fits():
    tree = fit([0.1, 0.9, 0.6], prior_feature=[0.25, 0.125, 0.5])
    assert av.effects(tree)["prior"].tolist() == [0.25, 0.125, 0.5]
    shown = selected_beside({"b": fit([0.9, 0.0, 0.0]), "a": tree}, "a")
    assert list(shown.columns) == ["prior", "b", "a"]
    assert shown["prior"].to_dict() == {"x1": "0.12", "x2": "0.50", "x0": "0.25"}
