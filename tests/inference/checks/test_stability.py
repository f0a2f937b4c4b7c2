"""Selection rules by enumeration and by hand; stability of sets that are known."""

import itertools

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import ardvark as av
from ardvark.common.validate import InputError
from ardvark.inference.checks.stability import (
    Stability,
    agreement,
    beside,
    discoveries,
    jackknife,
    selected,
    stability,
)
from ardvark.inference.methods import run
from tests.inference.comparison.quick import Prior, registered
from tests.support import rng


def fit(p, own=None):
    names = {"feature": [f"x{k}" for k in range(len(p))]}
    groups = {"/selection": xr.Dataset({"p_active_feature": ("feature", np.array(p))}, names)}
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


def test_each_rule_stands_beside_p_active():
    found = selected(fit([0.3, 1.0, 0.55], own=[1, 0, 1]))
    assert list(found.index) == ["x1", "x2", "x0"]
    assert found.p_active.tolist() == [1.0, 0.55, 0.3]
    assert found["P > 0.5"].tolist() == [True, True, False]
    assert found["FDR 10 %"].tolist() == [True, False, False]
    assert found["own"].tolist() == [False, True, True]
    assert "own" not in selected(fit([0.3, 0.4]))
    with pytest.raises(InputError, match="no P\\(active\\)"):
        selected(xr.DataTree())


def test_fits_beside_each_other():
    """Only what some rule selects, in the order of the reference."""
    shown = beside({"a": fit([0.1, 0.2, 0.6]), "b": fit([0.9, 0.0, 0.0], own=[0, 0, 1])}, "a")
    assert list(shown.index) == ["x2", "x0"]
    assert shown["a"].tolist() == ["0.60, P > 0.5", "0.10"]
    assert shown["b"].tolist() == ["0.00, own", "0.90, P > 0.5, FDR 10 %"]
    assert len(beside({"a": fit(np.ones(30))}, None)) == 20
    assert beside({"a": xr.DataTree()}, None).empty


def test_the_prior_stands_beside_the_fits():
    tree = fit([0.1, 0.9, 0.6])
    prior = {"prior_feature": ("feature", [0.25, 0.125, 0.5])}
    tree["selection"] = xr.DataTree(tree["selection"].to_dataset().assign(prior))
    assert selected(tree)["prior"].tolist() == [0.125, 0.5, 0.25]
    shown = beside({"b": fit([0.9, 0.0, 0.0]), "a": tree}, "a")
    assert list(shown.columns) == ["prior", "b", "a"]
    assert shown["prior"].to_dict() == {"x1": "0.12", "x2": "0.50", "x0": "0.25"}


def test_stability_in_words():
    """Two of three sets are the same: Jaccard 1, 0 and 0."""
    S = np.array([[1, 0, 0], [1, 0, 0], [0, 0, 1]], dtype=bool)
    row = {"sets": 3, "size": 1.0, **agreement(S), "jaccard_se": 0.25, "pearson_se": 0.25}
    nothing = {"sets": 3, "size": 0.0, "jaccard": np.nan, "jaccard_se": np.nan}
    table = pd.DataFrame({"P > 0.5": row, "own": nothing}).T
    frequency = pd.DataFrame({"P > 0.5": S.mean(axis=0), "own": 0.0}, index=["a", "b", "c"])
    found = Stability(table, frequency)
    assert repr(found) == found.text()
    assert " ".join(found.text().split()) == (
        "P > 0.5 selects 1.0 of 3 features on average. Over 3 resamples, two sets share 33 % of "
        "the features of both (Jaccard, se 25 %). Selected most often: a (67 %), c (33 %). own "
        "selects 0.0 of 3 features on average. No two sets can be compared. Selected most often: "
        "none."
    )
    assert max(map(len, repr(found).splitlines())) <= 80


def test_agreement_is_that_of_pairs_of_sets():
    """Jaccard of Python's sets and NumPy's correlation; a pair with 0 / 0 is left out.

    The jackknife's error is ((R - 1) / R sum of squares)^1/2 of what is left without each set.
    """
    S = rng(1).random((6, 9)) < 0.4
    S[2] = False  # Pearson is 0 / 0 beside it, and Jaccard 0 beside all but the last
    S[5] = False
    sets = [set(np.flatnonzero(row)) for row in S]

    def by_pairs(rows):
        jaccard, pearson = [], []
        for a, b in itertools.combinations(rows, 2):
            if sets[a] | sets[b]:
                jaccard.append(len(sets[a] & sets[b]) / len(sets[a] | sets[b]))
            if sets[a] and sets[b]:
                pearson.append(np.corrcoef(S[a], S[b])[0, 1])
        return {"jaccard": np.mean(jaccard), "pearson": np.mean(pearson)}

    assert agreement(S) == pytest.approx(by_pairs(range(6)))
    for name in ("jaccard", "pearson"):
        left = [by_pairs([r for r in range(6) if r != i])[name] for i in range(6)]
        error = np.sqrt(5 / 6 * np.square(np.subtract(left, np.mean(left))).sum())
        assert jackknife(S, name) == pytest.approx(error)
    assert np.isnan(jackknife(S[:2], "jaccard"))


def test_what_half_of_the_data_select_again(dataset, tmp_path, monkeypatch):
    """By what the fits say; a second call computes nothing."""
    registered(monkeypatch, Prior)
    problem = av.problem("rfvm", dataset, active_features=2.5)
    fits, compute = [], run.compute
    monkeypatch.setattr(run, "compute", lambda *asked: fits.append(compute(*asked)) or fits[-1])
    sizes = {"resamples": 2, "draws": 10, "chains": 2, "progressbar": False}
    found = stability(problem, "prior", folder=tmp_path, **sizes)
    assert list(found.table.index) == ["P > 0.5", "FDR 10 %"]
    assert (found.table["sets"] == 2).all()
    assert len({tree.attrs["fingerprint"] for tree in fits}) == 2
    for tree in fits:  # half of each class
        np.testing.assert_array_equal(np.bincount(tree["observed_data"]["y"]), [6, 6])
    S = np.array([t["selection"]["p_active_feature"].values > 0.5 for t in fits])
    np.testing.assert_allclose(found.frequency["P > 0.5"], S.mean(axis=0))
    row = found.table.loc["P > 0.5"]
    assert row["size"] == pytest.approx(S.sum(axis=1).mean())
    np.testing.assert_equal({k: row[k] for k in ("jaccard", "pearson")}, agreement(S))
    again = stability(problem, "prior", folder=tmp_path, **sizes)
    assert len(fits) == 2
    assert again.table.equals(found.table)


def test_one_set_has_nothing_to_agree_with(problem):
    with pytest.raises(InputError, match="at least 2"):
        stability(problem, "rfvm_vb", resamples=1)
