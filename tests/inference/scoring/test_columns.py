"""A column is declared once: table, print, page and documentation follow."""

import re

import numpy as np
import pandas as pd

from ardvark.inference.comparison import table
from ardvark.inference.scoring import columns
from ardvark.inference.scoring.columns import COLUMNS, Column, table_text

NEW = Column("entropy", "entropy of q", 1, "In `nats`, of q & of nothing else.")


def frame(**values):
    """Return a table of one row, "a"."""
    return pd.DataFrame([values], index=["a"], columns=[c.name for c in COLUMNS])


def test_names_and_headings_are_distinct_and_every_column_has_a_meaning():
    for parts in ([c.name for c in COLUMNS], [c.heading for c in COLUMNS if c.heading]):
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


def test_an_interval_is_printed_behind_its_mean():
    row = {"active_features": 5.23, "active_features_low": 2.0, "active_features_high": 11.0}
    point = {"active_samples": 7.0, "active_samples_low": 7.0, "active_samples_high": 7.0}
    shown = table_text(frame(**row, **point))["a"]
    assert shown["features with an effect"] == "5.2 (2-11)"
    assert shown["samples with an effect"] == "7"
    assert len(shown) == 2
    nearly = {**row, "active_features_low": 5.0, "active_features_high": 5.0}
    assert table_text(frame(**nearly)).loc["features with an effect", "a"] == "5.2"


def test_a_distance_inside_its_floor_prints_as_that():
    near = {"error_eta": 0.1, "error_eta_beyond": 0.0, "sd_ratio_eta": 0.5}
    shown = table_text(frame(**near, sd_ratio_eta_beyond=0.7))["a"]
    assert shown.to_dict() == {"error of eta": "= floor", "sd ratio of eta": "0.50"}
    without = table_text(frame(error_eta=0.1, error_eta_beyond=np.nan))["a"]  # no floor is known
    assert without.to_dict() == {"error of eta": "0.10"}


def test_a_standard_error_is_printed_behind_its_number_where_it_is_known():
    row = {"accuracy": 0.9, "accuracy_se": 0.0211, "auc": 1.0, "auc_se": np.nan}
    shown = table_text(frame(**row))["a"]
    assert shown.to_dict() == {"accuracy": "0.900 +- 0.021", "AUC": "1.000"}


def test_columns_of_one_meaning_are_printed_side_by_side_and_blank_rows_are_left_out():
    row = {"error_eta": 0.126, "error_feature_weight": 1.0, "sd_ratio_eta": 0.5, "reason": "none"}
    shown = table_text(frame(kind="mcmc", draws=2000.0, **row))
    assert shown["a"].to_dict() == {
        "kind": "mcmc",
        "draws": "2000",
        "error of feature_weight": "1.00",
        "error of eta": "0.13",
        "sd ratio of eta": "0.50",
    }
    assert list(shown.index)[-3:] == ["error of feature_weight", "error of eta", "sd ratio of eta"]


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
