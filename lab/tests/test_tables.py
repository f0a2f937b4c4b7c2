"""Tables are stored with their origin, and put between the markers of a page."""

import pandas as pd
import pytest

from lab import tables


def test_a_table_comes_back_with_its_origin(tmp_path):
    frame = pd.DataFrame({"name": ["a", "b"], "value": [0.123456789012, None], "count": [1, 2]})
    tables.write(tmp_path / "t.csv", frame, "python -m lab.judge.judge --seed 5")
    pd.testing.assert_frame_equal(tables.read(tmp_path / "t.csv"), frame)
    assert "python -m lab.judge.judge --seed 5; python 3." in tables.said(tmp_path / "t.csv")


def test_markdown_shows_numbers_to_the_right_and_nothing_for_what_is_missing():
    frame = pd.DataFrame({"name": ["a", "b"], "value": [0.123456, None], "count": [1, 2]})
    assert tables.markdown(frame, {"value": ".2f"}).split("\n") == [
        "| name | value | count |",
        "| --- | ---: | ---: |",
        "| a | 0.12 | 1 |",
        "| b |  | 2 |",
    ]


def test_only_the_place_between_the_markers_changes(tmp_path):
    page = tmp_path / "PAGE.md"
    page.write_text("# Words\n\n<!-- table: one -->\nold\n<!-- end -->\n\nby hand \\1\n")
    for _ in range(2):  # filling it again changes nothing
        tables.fill(page, one="| \\1 |")
        assert page.read_text() == (
            "# Words\n\n<!-- table: one -->\n\n| \\1 |\n\n<!-- end -->\n\nby hand \\1\n"
        )
    with pytest.raises(ValueError, match="0 places for the table two"):
        tables.fill(page, two="")
