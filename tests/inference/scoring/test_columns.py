"""A column is declared once: table, print, page and documentation follow."""

import re

import pandas as pd

from ardvark.inference.comparison import table
from ardvark.inference.scoring import columns
from ardvark.inference.scoring.columns import COLUMNS
from ardvark.inference.scoring.statistics import STATISTICS
from ardvark.inference.target import words


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
