"""Rows of the papers' competitors and of the yardsticks: what is declared, and one fold of them."""

import json
from dataclasses import replace

import numba
import numpy as np
import pytest

from ardvark.common.validate import InputError
from ardvark.data import Dataset
from lab.papers import competitors, run, store
from lab.papers import fold as folds
from lab.papers.protocols import Row
from lab.papers.tables import GROUPS
from lab.yardsticks import registry
from lab.yardsticks.registry import YARDSTICKS
from tests.support import rng

JOINED = [(g, r) for g in GROUPS for r in g.rows if r.method in YARDSTICKS]


@pytest.mark.parametrize(
    "group", [g for g in GROUPS if g.paper in ("RFVM", "FSKLR")], ids=lambda g: g.name
)
def test_what_a_person_would_pick_today_stands_beside_a_table(group):
    reading = {row.label: row.reading for row in group.rows if row.method in YARDSTICKS}
    assert set(competitors.TODAY) <= set(reading)
    own = {"elastic_net"} if group.paper == "RFVM" else set()
    assert {name for name in competitors.TODAY if reading[name] == "baseline"} == own


def test_the_identity_of_a_fold_follows_the_grid(monkeypatch):
    group, row = next((g, r) for g, r in JOINED if r.method == "mcp")
    plain = next((g, r) for g in GROUPS for r in g.rows if r.method == "l1_logistic")
    marks = [store.identity(*pair) for pair in ((group, row), plain)]
    monkeypatch.setitem(YARDSTICKS, "mcp", registry.YARDSTICKS["elastic_net"])
    changed = [store.identity(*pair) for pair in ((group, row), plain)]
    assert changed[0] != marks[0]
    assert changed[1] == marks[1]


@pytest.mark.parametrize("name", ["stability", "l1"])
def test_a_line_depends_on_the_held_out_labels_by_its_scores_alone(name, monkeypatch):
    monkeypatch.setattr(numba.config, "DISABLE_JIT", True)  # skglm's compilation takes longer
    X = rng(9).standard_normal((60, 12))
    data = Dataset.from_arrays(X, X[:, 0] + X[:, 1] > 0)
    training, test = data.take(np.arange(40)), data.take(np.arange(40, 60))
    other = Dataset.from_arrays(test.X, 1 - test.y)
    row = Row(label=name, model="", method=name, reading="yardstick")
    (line,), (flipped,) = (folds.fit(row, data, training, held) for held in (test, other))
    assert line["accuracy"] == pytest.approx(1.0 - flipped["accuracy"])
    assert -15.0 < line["log_score"] < 0.0
    scores = ("accuracy", "f1", "log_score")
    assert {k: x for k, x in line.items() if k not in scores} == {
        k: x for k, x in flipped.items() if k not in scores
    }
    assert set(json.loads(line["chosen"] or "{}")) <= {"ratio"}
    if "features" in line:
        assert line["features"] == len(line["selected"].split())
    assert set(line) <= {*store.COLUMNS}


def test_a_missing_extra_is_one_error_before_the_first_fold(monkeypatch, tmp_path):
    lacking = replace(YARDSTICKS["mcp"], needs=("no_such_package",))
    monkeypatch.setitem(YARDSTICKS, "mcp", lacking)
    monkeypatch.setattr(run, "run_fold", lambda *task: pytest.fail("a fold was fitted"))
    tasks = [(f"fsklr-3/sonar/{name}", 0) for name in ("l1", "mcp")]
    with pytest.raises(InputError, match=r"no_such_package.*pip install 'ardvark\[baselines\]'"):
        run.compute(tasks, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_baseline_that_is_declared_has_rows_and_the_page_counts_them():
    folder, whole, without = run.HERE / "folds", 0, set()
    for group in GROUPS:
        for row in group.rows:
            held = store.lines_of(group, row, folder)
            done = sum(line["status"] != "failed" for line in held.values())
            whole += done == group.folds
            without |= set() if done else {group.name}
    assert not without
    said = f"{whole} of {sum(len(group.rows) for group in GROUPS)} declared rows"
    assert said in (run.HERE.parent / "PAPER_CHECK.md").read_text()
