"""Rows left out: the measures on folds made by hand, and the stored table from the kept folds."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import special

from lab import tables
from lab.findings import distances, left_out, picture

P = np.array([[0.2, 0.6, 0.90], [0.4, 0.8, 0.98]])
"""Two draws of three rows."""


def made(own=(0.05, 0.3, 0.96), draws=P):
    """One fold: labels 1, 1, 0, an exact posterior, and a method with a formula of its own."""
    return {
        "y": np.array([1, 1, 0]),
        "exact: status": np.array("finished"),
        "exact: mean": P.mean(axis=0),
        "exact: halves": P,
        "exact: logit": special.logit(P),
        "same prior: status": np.array("not_converged"),
        "same prior: mean": draws.mean(axis=0),
        "same prior: own": np.array(own),
        "same prior: logit": special.logit(draws),
    }


def test_measures_of_a_fold_made_by_hand():
    found = distances.measures([made(), made()], "same prior")
    assert found["off"] == pytest.approx((0.25 + 0.4 + 0.02) / 3)
    assert found["floor"] == pytest.approx((0.2 + 0.2 + 0.08) / 6)
    assert found["off_draws"] == 0.0
    # Rows 0, 1 and 2 are wrong by the formula; of the class of 0 and of 2 it is sure.
    assert (found["rows"], found["wrong"], found["sure"]) == (6, 6, 4)
    assert found["excluded"] == 4.0  # by the draws rows 0 and 2 are wrong, both with all draws
    assert found["log_score"] == pytest.approx(np.log([0.05, 0.3, 0.04]).mean())
    assert found["status"] == "2 not_converged"
    assert distances.measures([made()], "exact")["off"] == 0.0


def test_a_fold_that_failed_has_no_rows_and_is_named():
    lost = {key: value for key, value in made().items() if not key.startswith("same prior: ")}
    lost["same prior: status"] = np.array("failed")
    found = distances.measures([lost, made()], "same prior")
    assert (found["folds"], found["rows"]) == (1, 3)
    assert found["status"] == "1 failed, 1 not_converged"


def test_width_is_relative_to_exact_and_a_single_state_has_none():
    twice = special.expit(2.0 * special.logit(P))
    spread = [(made(draws=x), w) for x, w in ((P, 1.0), (twice, 2.0), (P[:1], 0.0))]
    for fold, width in spread:
        found = distances.measures([fold], "same prior")
        assert found["width"] == pytest.approx(width)
        assert np.isnan(found["excluded"]) == (width == 0.0)


def test_folds_may_differ_in_their_number_of_draws():
    """Laplace has a single state where it finds no curvature: its rows there have no width."""
    alone, spread = made(draws=P[:1]), made()
    found = distances.measures([alone, spread, spread], "same prior")
    assert found["rows"] == 9
    assert found["width"] == found["width_p"] == 1.0, "the median of three 0 and six 1"
    assert distances.measures([alone, alone, spread], "same prior")["width"] == 0.0
    assert np.isnan(found["excluded"])


def test_a_set_counts_only_with_all_its_folds(tmp_path, monkeypatch):
    one = left_out.SETS["fsklr/heart/independent"]
    monkeypatch.setattr(left_out, "KEPT", tmp_path)
    for k in range(left_out.FOLDS):
        assert distances.folds_of(one) == []
        np.savez(left_out.file_of(one, k), **made())
    assert len(distances.folds_of(one)) == left_out.FOLDS


def test_the_stored_table_is_that_of_the_kept_folds():
    stored = tables.read(distances.STORED)
    pd.testing.assert_frame_equal(stored, distances.table(), check_dtype=False, atol=2e-4)


def test_each_row_of_a_set_is_left_out_once():
    for name, mine in tables.read(distances.STORED).groupby("set"):
        folds = distances.folds_of(left_out.SETS[name])
        rows = list(itertools.chain.from_iterable(fold["rows"] for fold in folds))
        assert sorted(rows) == list(range(mine["rows"].max()))
        for folds_here, status in zip(mine["folds"], mine["status"], strict=True):
            failed = sum(int(part.split()[0]) for part in status.split(", ") if "failed" in part)
            assert folds_here + failed == left_out.FOLDS


def test_the_picture_says_what_the_table_says():
    table = tables.read(distances.STORED).set_index(["set", "method"])
    for column in picture.COLUMNS:
        if column.kept:
            rows = picture.dots(column)
            for kind, label in picture.LABELS.items():
                mine, exact = (table.loc[column.kept, name] for name in (label, left_out.EXACT))
                said = (
                    f"apart by {mine['off']:.2f} on average\n"
                    f"wrong and sure: {mine['sure']} of {len(rows)} (exact: {exact['sure']})"
                )
                assert picture.said(rows, kind) == said
