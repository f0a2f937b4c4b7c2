"""A column is declared once: table, print, page and documentation follow."""

import re

import numpy as np
import pandas as pd

from ardvark.inference.comparison import table
from ardvark.inference.scoring import columns
from ardvark.inference.scoring.columns import COLUMNS, PRINTED, Column, table_text
from ardvark.inference.scoring.distances import frame as of_distances
from ardvark.inference.scoring.held_out import frame as of_scores
from ardvark.inference.scoring.statistic import Distance
from ardvark.inference.scoring.statistics import STATISTICS
from ardvark.inference.target import words


def frame(**values):
    """Return a table of one row, "a"."""
    return pd.DataFrame([values], index=["a"], columns=[c.name for c in COLUMNS])


def test_names_and_headings_are_distinct_and_every_column_has_a_meaning():
    for parts in ([c.name for c in COLUMNS], [c.heading for c in PRINTED]):
        assert len(set(parts)) == len(parts)
    for c in COLUMNS:
        assert c.meaning.endswith(".")
        assert c.digits is None or 0 <= c.digits <= 3


def test_a_value_in_print():
    assert Column("a", "a", 3, "").text(0.12345) == "0.123"
    assert Column("a", "a", 0, "").text(np.int64(7)) == "7"
    assert Column("a", "a", 2, "").text(np.inf) == "inf"
    assert Column("a", "a", None, "").text("finished") == "finished"
    assert [Column("a", "a", 1, "").text(v) for v in (None, np.nan, np.float64("nan"))] == [""] * 3


def test_a_distance_inside_its_floor_prints_as_that():
    values = {"error_eta": 0.1, "sd_ratio_eta": 0.5, "p_active_selection": 0.2}
    distances = of_distances(
        [
            Distance("a", "eta", "error", 0.1, 0.1, 0.11, 0.05),
            Distance("a", "eta", "sd_ratio", 0.5, 0.7, 0.2, 0.1),
            Distance("a", "selection", "p_active", 0.2, 0.2),  # no floor is known
            Distance("b", "eta", "sd_ratio", 0.5, 0.7, 0.8, 0.1),
        ]
    )
    assert table_text(frame(**values), distances)["a"].to_dict() == {
        "error of eta": "= floor", "sd ratio of eta": "0.50", "P(effect) off by": "0.20",
    }  # fmt: skip


def test_a_score_is_printed_with_its_error_or_that_it_is_noise():
    """Also those that have no column in the table."""
    found = {"accuracy": 0.9, "accuracy_se": 0.0211, "auc": 1.0, "ece": 0.1, "ece_floor": 0.11}
    scores = of_scores({"a": {**found, "kappa": 0.5}}, columns.SCORES)
    shown = table_text(frame(accuracy=0.9, auc=1.0), scores=scores)["a"]
    assert shown.to_dict() == {
        "accuracy": "0.900 +- 0.021", "AUC": "1.000", "kappa": "0.500",
        "calibration error": "= floor",
    }  # fmt: skip


def test_rows_are_printed_in_the_order_of_the_columns_and_blank_ones_left_out():
    row = {"sd_ratio_eta": 0.5, "error_eta": 0.126, "draws": 2000.0, "kind": "mcmc"}
    shown = table_text(frame(**row, reason="none"))["a"]
    assert list(shown.items()) == [
        ("kind", "mcmc"), ("draws", "2000"), ("error of eta", "0.13"), ("sd ratio of eta", "0.50"),
    ]  # fmt: skip


def test_the_table_has_what_a_reader_looks_at_first():
    assert len(COLUMNS) <= 25
    assert {statistic for _, statistic in columns.DISTANCES.values()} <= set(STATISTICS)


def test_every_statistic_has_a_meaning():
    named = [name for names in words.MEANINGS for name in names.split()]
    assert sorted(named) == sorted(STATISTICS)


def test_the_printed_table_fits_a_terminal():
    """In blocks of methods that are not torn; a row that is blank in a block is left out of it."""
    shown = pd.DataFrame(
        {f"method_{j}": [f"{j}.25 +- 0.01", "", "x" * 14] for j in range(7)},
        index=["error of feature_weight", "k-hat", "verdict"],
    )
    shown.loc["k-hat", "method_6"] = "3.20"
    text = columns.lines(shown, 80)
    assert max(map(len, text.splitlines())) <= 80
    blocks = text.split("\n\n")
    assert [block.splitlines()[0].split() for block in blocks] == [
        ["method_0", "method_1", "method_2"], ["method_3", "method_4", "method_5"], ["method_6"],
    ]  # fmt: skip
    assert ["k-hat" in block for block in blocks] == [False, False, True]
    for j in range(7):
        assert text.count(f"{j}.25 +- 0.01") == 1
    wide = columns.lines(shown, 200)
    assert len(wide.split("\n\n")) == 1
    names, *rows = wide.splitlines()
    assert all(rows[0].index(f"{j}.25") > names.index(f"method_{j}") - 12 for j in range(7))
    long = columns.lines(pd.DataFrame({"m" * 90: ["1"]}, index=["draws"]), 80)
    assert long.splitlines()[1].split() == ["draws", "1"]


def test_the_documentation_names_every_column():
    for column in COLUMNS:
        assert re.search(rf"\b{column.name}\b", table.__doc__)
