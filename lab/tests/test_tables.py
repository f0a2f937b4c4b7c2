"""Tables are stored with their origin, and put between the markers of a page."""

import re
from pathlib import Path

import pandas as pd
import pytest

from lab import same_results, tables
from lab.calibration import exact_rule
from lab.judge import judge, judge_right, judge_second
from lab.known_truth import known_truth
from lab.speed import exact, memory, peers

LAB = Path(__file__).parents[1]
FINAL = {
    "algorithms/ALGORITHMS.md": {},
    "calibration/CALIBRATION.md": exact_rule.FORMATS,
    "defects/DEFECTS.md": {},
    "fsklr_masks/FSKLR_MASKS.md": {},
    "known_truth/KNOWN_TRUTH.md": {},
    "one_table/ONE_TABLE.md": {},
    "prior_factors/PRIOR_FACTORS.md": {},
    "priors/PRIORS.md": {},
}
"""Pages with tables that no script writes, and the digits of some of their columns."""


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


@pytest.mark.parametrize("page", FINAL)
def test_a_page_has_the_tables_that_lie_beside_it(page, tmp_path):
    folder = (LAB / page).parent
    for path in (LAB / page, *folder.glob("*.csv")):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    copied = tmp_path / (LAB / page).name
    tables.show(copied, FINAL[page])
    assert copied.read_text() == (LAB / page).read_text()


SCRIPTS = (
    judge, judge_second, judge_right, exact_rule, known_truth, exact, memory, peers, same_results,
)  # fmt: skip


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_a_script_says_how_it_is_run(script, capsys):
    with pytest.raises(SystemExit) as ended:
        script.main(["--help"])
    assert ended.value.code == 0
    assert f"python -m {script.__name__}" in capsys.readouterr().out


PAGES = sorted(
    path.relative_to(LAB).as_posix() for path in LAB.rglob("*.md") if "tests" not in path.parts
)


@pytest.mark.parametrize("page", PAGES)
def test_the_files_that_a_page_links_are_there(page):
    text = (LAB / page).read_text()
    assert not text.split("\n\n")[1].startswith(("|", "#")), "it opens with its answer"
    for link in re.findall(r"\]\((?!http|#)([^)#]+)", text):
        assert ((LAB / page).parent / link).exists(), link


@pytest.mark.parametrize("path", sorted(LAB.glob("*/*.csv")), ids=lambda path: path.stem)
def test_a_table_names_no_folder_of_a_machine(path):
    assert not re.search(r"(?<![\w.])/(home|work|tmp|root|Users)\b", path.read_text())
