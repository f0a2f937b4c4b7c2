"""Known truth by the learned scale: what counts, what stands beside it, what a list promises."""

import numpy as np
import pytest

from lab import records
from lab.known_truth import known_truth
from lab.known_truth import learned_scale as ls
from lab.known_truth.known_truth import COLUMNS, METHODS, Cell, Fits, Piece, promised
from lab.known_truth.results import mean, read

STORED = read(records.RESULTS / "known_truth.csv")
TINY = Cell(24, 10, 0.5, 2)


def test_the_new_methods_are_no_methods_of_known_truth():
    assert not set(ls.ZOO) & set(METHODS)
    assert set(ls.BEFORE.values()) <= set(METHODS)
    for m, how in ls.ZOO.items():
        before = known_truth.ZOO[ls.BEFORE[m]]
        assert (how.model, how.by) == (before.model, before.by)
        assert how.options["cores"] == 1  # processes are what runs at once


def test_a_list_holds_what_is_promised():
    p = np.array([0.99, 0.9, 0.81, 0.5, 0.0])
    true = np.array([True, False, True, True, False])
    assert promised("a", p, true, 0.1) == {
        "a_right": 2, "a_false": 1, "a_expected": pytest.approx(0.01 + 0.1 + 0.19)
    }  # fmt: skip
    assert promised("b", p, true, 0.2)["b_right"] == 3
    assert promised("c", p[3:], true[3:], 0.1)["c_expected"] == 0.0


def test_a_fit_has_the_lists_of_each_definition_of_active(tmp_path):
    key = Piece(*TINY, 1, "pfcvm, learned")
    fits = Fits(tmp_path / "fits.csv", "abc", True, ls.ZOO, [*COLUMNS, *ls.MORE])
    row = fits.run([key])[key]
    assert row["status"] != "failed", row["reason"]
    assert all(row[name] is not None for name in ls.MORE)
    assert fits.get(key) == row
    listed = [row[f"{w}_right"] + row[f"{w}_false"] for w in ("fdr", *ls.LISTS[1:])]
    assert listed == sorted(listed, reverse=True)  # a larger effect is a rarer one
    fixed = Fits(tmp_path / "fixed.csv", "abc", True).run([key._replace(method="pfcvm, exact")])
    assert set(next(iter(fixed.values()))) == set(COLUMNS)


def rows_of(cells, value):
    """Return rows of the new methods: those of the fixed scale with another accuracy."""
    more = dict.fromkeys(ls.MORE, 1)
    return [
        row | more | {"method": m, "accuracy": row["accuracy"] + value}
        for m, before in ls.BEFORE.items()
        for row in STORED
        if row["method"] == before and row["data_set"] == 1 and (row["N"], row["D"]) in cells
    ]


def test_only_data_sets_count_that_every_new_method_has_fitted():
    new = rows_of({(50, 30), (100, 200)}, 0.01)
    found = ls.beside(new[:-1], STORED)
    assert (found.sets, found.cells) == (11, 11)
    for m, before in ls.BEFORE.items():
        assert found.more(m, before, "accuracy").value == pytest.approx(0.01)
    assert not ls.goals(found, new, 24)[0].met


def test_the_lists_of_known_truth_are_those_of_its_page():
    """Beside the new ones stand the stored rows of the same data sets, each its own."""
    found = ls.beside(rows_of({(50, 30)}, 0.0), STORED)
    for m, before in ls.BEFORE.items():
        assert found.false(m, "fdr") == pytest.approx(found.false(before, "fdr"), nan_ok=True)
        assert found.mean(m, "lost").value == found.mean(before, "lost").value


def test_the_errors_of_cells_of_one_data_set_are_from_the_spread_over_cells():
    found = ls.beside(rows_of({(50, 30), (100, 30)}, 0.0), STORED)
    accuracy = found.value("rfvm, learned", "accuracy")
    assert found.mean("rfvm, learned", "accuracy") == pytest.approx(
        (accuracy.mean(), accuracy.std(ddof=1) / 12**0.5, 11)
    )
    twice = rows_of({(50, 30)}, 0.0)
    twice += [row | {"data_set": 2} for row in twice[:: len(twice) // 3]]  # one cell has two
    found = ls.beside(twice, STORED)
    assert (found.sets, found.cells) == (7, 6)
    own = found.value("rfvm, learned", "accuracy")
    assert found.mean("rfvm, learned", "accuracy").value == mean(own, found.cell).value


# --- the words of the page ------------------------------------------------------------------------

NEW = read(records.RESULTS / "learned_scale.csv")
RECORD = records.read(records.RESULTS / "learned_scale.json")
FOUND = ls.beside(NEW, STORED)


def test_no_list_keeps_its_promise_but_those_of_larger_effects():
    assert FOUND.sets == FOUND.cells
    for m, goal in zip(ls.ZOO, RECORD.goals[2:], strict=True):
        assert not goal.met
        assert FOUND.false(m, "fdr").value > ls.PROMISED
        assert FOUND.false(m, "fdr20").value > 0.2
        assert FOUND.false(m, "fdr_above_0.5").value < 0.1
    for m in ("rfvm, learned", "pfcvm, learned"):
        before = ls.BEFORE[m]
        assert FOUND.false(before, "fdr").value < FOUND.false(m, "fdr").value - 0.1
        listed = [FOUND.value(x, f"fdr_{p}") for x in (m, before) for p in ("right", "false")]
        assert sum(listed[:2]).sum() > sum(listed[2:]).sum()
        for name in ("power_20", "log_score"):
            more = FOUND.more(m, before, name)
            assert abs(more.value) < 2 * more.error


def test_every_fit_of_few_features_converged_and_the_others_lack_effective_draws_alone():
    assert {row["status"] for row in NEW if row["D"] == 30} == {"finished"}
    assert not RECORD.goals[1].met
    assert all(row["rhat"] < 1.01 for row in NEW)
    assert sum(row["commit"] == "007bf566+" for row in NEW) == 36
