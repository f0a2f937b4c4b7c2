"""The simulation with a known truth: its truth, its measures, and what its page says."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

from ardvark.models.parts.effects import VISIBLE

ROOT = Path(__file__).parents[2]

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(ROOT))
    from benchmarks import known_truth, known_truth_report, records
    from benchmarks.known_truth import CELLS, Cell, Fits, Found, Piece, Truth
    from benchmarks.known_truth_results import Results, mean, ratio, read

CSV = records.RESULTS / "known_truth.csv"
TINY = Cell(24, 10, 0.5, 2)


# --- the truth ------------------------------------------------------------------------------------


def test_the_best_classifier_is_right_in_nine_rows_of_ten():
    z = np.linspace(-12.0, 12.0, 200_001)
    right = special.expit(np.abs(known_truth.sd_of_eta() * z)) * stats.norm.pdf(z)
    assert right.sum() * (z[1] - z[0]) == pytest.approx(0.9, abs=1e-8)


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_the_truth_is_as_it_is_described(cell):
    truth = known_truth.simulate(cell, 1)
    assert truth.X.shape == (cell.N, cell.D)
    assert np.count_nonzero(truth.w) == cell.active
    effects = np.abs(truth.w[truth.w != 0.0])
    assert effects.max() / effects.min() < 3.0
    assert effects.min() > VISIBLE
    block = np.full((5, 5), cell.correlation) + (1.0 - cell.correlation) * np.eye(5)
    covariance = np.kron(np.eye(cell.D // 5), block)
    assert truth.w @ covariance @ truth.w == pytest.approx(known_truth.sd_of_eta() ** 2)
    error = 6.0 / np.sqrt(known_truth.FRESH)  # six standard errors of a correlation of 0
    found = np.corrcoef(truth.X_new[:, :10].T)
    assert np.abs(found - covariance[:10, :10]).max() < error
    again = known_truth.simulate(cell, 1)
    np.testing.assert_array_equal(again.X, truth.X)
    assert not np.array_equal(known_truth.simulate(cell, 2).w, truth.w)


def test_there_are_24_cells_and_every_method_fits_each_data_set():
    given = type("Given", (), {"quick": False})
    planned = known_truth.pieces(given)
    assert len({piece.cell for piece in planned}) == 24
    assert len(set(planned)) == len(planned) == 24 * 5 * len(known_truth.METHODS)
    assert {piece.data_set for piece in planned[: len(planned) // 5]} == {1}


# --- the measures ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ranking", "rate", "expected"),
    [
        ("TTFTTFT", 0.1, 2),
        ("TTFTTFT", 0.2, 4),  # one of five is false
        ("FTTTTTTT", 0.1, 0),  # one of eight is more than a tenth
        ("FTTTTTTTTT", 0.1, 9),
        ("F", 0.2, 0),
        ("", 0.2, 0),
    ],
)
def test_power_is_that_of_the_longest_list_with_few_false_features(ranking, rate, expected):
    true = np.array([c == "T" for c in ranking], dtype=bool)
    assert known_truth.power(true, rate, 10) == pytest.approx(expected / 10)


def test_the_measures_of_a_fit_by_hand():
    w = np.array([2.0, 0.0, -1.0, 0.0, 0.0, 0.5])
    X_new = np.eye(6)
    truth = Truth(X_new, np.ones(6, int), X_new, np.array([1, 0, 0, 1, 0, 1]), w)
    p = np.array([0.95, 0.97, 0.55, 0.55, 0.0, 0.0])
    size = np.array([1.0, 2.0, 0.5, 0.4, 0.0, 0.0])
    probability = np.array([0.9, 0.2, 1.0, 0.6, 0.5, 0.6])
    row = known_truth.measures(Found(size, size > 0.45, p=p, probability=probability), truth)
    assert row["smallest_effect"] == 0.5
    # ranked: false, right, right (its effect is larger), false; the rest has no weight at all
    assert (row["power_10"], row["power_20"], row["top"]) == (0.0, 0.0, pytest.approx(2 / 3))
    assert (row["own_right"], row["own_false"]) == (2, 1)
    assert (row["half_right"], row["half_false"]) == (2, 2)
    assert row["half_expected"] == pytest.approx(0.05 + 0.03 + 0.45 + 0.45)
    assert (row["fdr_right"], row["fdr_false"]) == (1, 1)
    assert row["fdr_expected"] == pytest.approx(0.08)
    assert row["expected_active"] == pytest.approx(3.02)
    assert (row["n_0"], row["true_0"], row["n_5"], row["true_5"]) == (2, 1, 2, 1)
    assert (row["n_9"], row["true_9"], row["p_9"]) == (2, 1, pytest.approx(1.92))
    by_hand = np.log([0.9, 0.8, 1e-6, 0.6, 0.5, 0.6]).mean()
    assert row["log_score"] == pytest.approx(by_hand)
    assert row["accuracy"] == pytest.approx(5 / 6)
    best = np.log(special.expit(np.array([2.0, 0.0, 1.0, 0.0, 0.0, 0.5])))
    assert row["best_log_score"] == pytest.approx(best.mean())


def test_errors_are_over_data_sets():
    assert mean(np.array([1.0, 3.0, 5.0])) == (3.0, pytest.approx(2.0 / 3**0.5))
    assert np.isnan(mean(np.array([1.0]))[1])
    share, error = ratio(np.array([1.0, 3.0]), np.array([2.0, 4.0]))
    assert share == pytest.approx(2 / 3)
    assert error == pytest.approx((2.0 * (1 / 9 + 1 / 9)) ** 0.5 / 6.0)
    # as many in each data set: the error of a mean
    parts = np.array([1.0, 4.0, 2.0, 2.0])
    assert ratio(parts, np.full(4, 5.0)) == pytest.approx(mean(parts / 5.0))
    assert np.isnan(ratio(np.zeros(3), np.zeros(3))[0])
    share, error = ratio(np.array([1.0, 0.0]), np.array([2.0, 0.0]))
    assert share == 0.5
    assert np.isnan(error)


@pytest.mark.parametrize(
    ("estimate", "sets", "sign"),
    [
        ((2.0, 1.0), 61, 0),  # the limits are 2.0003 and 1.9996
        ((2.0, 1.0), 62, 1),
        ((-4.4, 1.0), 3, -1),  # 4.303
        ((-4.2, 1.0), 3, 0),
        ((1.0, 0.0), 9, 0),
        ((1.0, float("nan")), 9, 0),
        ((9.0, 1.0), 1, 0),
    ],
)
def test_a_difference_is_clear_beyond_students_interval(estimate, sets, sign):
    assert known_truth_report.clear(estimate, sets) == sign


def test_stability_selection_takes_the_first_features_of_the_path():
    truth = known_truth.simulate(Cell(100, 30, 0.0, 3), 1)
    X, y = truth.X[:50], truth.y[:50]
    size = known_truth._first(X, y, 4)
    assert 1 <= np.count_nonzero(size) <= 4
    more = known_truth._first(X, y, 8)
    assert np.count_nonzero(size) < np.count_nonzero(more) <= 8


# --- a killed run ---------------------------------------------------------------------------------


def test_a_killed_run_goes_on_with_what_it_has(tmp_path):
    keys = [Piece(*TINY, data_set, "L1") for data_set in (1, 2, 3)]
    fits = Fits(tmp_path / "fits.csv", "12e4567")
    first = fits.run(keys[:2])
    fits.keep(keys[2], fits.failure(keys[2], "killed:\n out of memory"))
    whole = fits.path.read_text()
    fits.path.write_text(whole + whole.splitlines()[1][:40])  # killed within a line
    assert dict(fits.stored(keys)) == first
    assert fits.path.read_text() == whole
    again = fits.run(keys)
    assert {k: again[k] for k in keys[:2]} == first
    assert again[keys[2]]["status"] == "finished"
    rows = read(fits.path)
    assert len(rows) == 4
    assert rows[2]["reason"] == "killed: out of memory"
    assert rows[0]["commit"] == "12e4567"


def test_a_method_that_does_not_exist_is_a_row_that_failed(tmp_path):
    fits = Fits(tmp_path / "fits.csv", "abc")
    key = Piece(*TINY, 1, "no method")
    assert fits.run([key])[key]["reason"].startswith("KeyError")
    assert fits.stored([key]) == []


def test_a_data_set_counts_when_every_method_has_fitted_it():
    rows = [
        {"N": 1, "D": 1, "correlation": 0.0, "active": 1, "data_set": s, "method": m, "status": x}
        for s, m, x in (
            (1, "a", "finished"), (1, "b", "not_converged"), (2, "a", "finished"),
            (2, "b", "failed"), (3, "a", "finished"),
        )
    ]  # fmt: skip
    found = Results(rows, ["a", "b"])
    assert (found.sets, found.cells) == (1, 1)
    assert Results(rows, ["a", "b", "c"]).sets == Results([], ["a"]).sets == 0


# --- the page -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stored():
    """Return the stored rows, and the record."""
    return read(CSV), records.everything()["known_truth"]


@pytest.fixture(scope="module")
def frame(stored):
    """Return the rows of whole data sets, apart from the code that makes the page."""
    rows = pd.DataFrame(stored[0])
    names = ["N", "D", "correlation", "active", "data_set"]
    whole = rows[rows["status"] != "failed"].groupby(names)["method"].transform("nunique")
    rows = rows.loc[whole.index[whole == len(known_truth.METHODS)]]
    return rows.pivot_table(
        index=names, columns="method",
        values=["power_20", "log_score", "half_false", "half_right", "half_expected"],
    )  # fmt: skip


def test_the_record_is_what_the_rows_say(stored):
    rows, record = stored
    made = known_truth_report.measured(Results(rows, known_truth.METHODS), rows, 120)
    assert made.goals == record.goals
    assert made.notes == record.notes
    assert [records.markdown(t) for t in made.tables] == [
        records.markdown(t) for t in record.measured
    ]
    assert all(row["smallest_effect"] > VISIBLE for row in rows if row["status"] != "failed")


def sentences(record):
    """Return the sentences of the verdict by what they begin with."""
    return re.split(r"(?<=[.*]) (?=[A-Z])", record.notes[0])


def test_the_shares_of_the_verdict_are_means_over_data_sets(stored, frame):
    said = next(s for s in sentences(stored[1]) if s.startswith("Read from the top"))
    for method in known_truth.METHODS:
        x = frame["power_20"][method]
        words = f"{known_truth_report.name_of(method)} "
        numbers = f"{100 * x.mean():.0f} ± {100 * x.std() / len(x) ** 0.5:.0f} %"
        assert words + numbers in said


@pytest.mark.parametrize("model", ["pfcvm", "rfvm"])
def test_the_differences_of_the_verdict_are_paired(model, stored, frame):
    at, exact = sentences(stored[1]), f"{model}, exact"
    i = next(
        i for i, s in enumerate(at)
        if s.startswith(f"Data set by data set, the exact posterior of {model.upper()} finds")
    )  # fmt: skip
    power = frame["power_20"].mul(100.0)
    others = (*known_truth_report.EXACT[exact], "L1", "stability selection")
    for said, table, shown, names in (
        (at[i], power, ".0f", others), (at[i + 1], frame["log_score"], ".2f", others[:3]),
    ):  # fmt: skip
        groups = said.split("; ")
        for other in names:
            x = table[exact] - table[other]
            error = x.std() / len(x) ** 0.5
            text = f"{known_truth_report.name_of(other)} ({x.mean():+{shown}} ± {error:{shown}}"
            (own,) = [g for g in groups if text in g]
            low, high = x.mean() + stats.t.interval(0.95, len(x) - 1) * np.array(error)
            neither = "neither clearly" in own
            more = not neither and ("clearly more" in own or "clearly above" in own)
            fewer = not neither and ("clearly fewer" in own or "clearly below" in own)
            assert (more, fewer, neither) == (low > 0.0, high < 0.0, low <= 0.0 <= high)


def test_the_promises_of_the_verdict_are_those_of_the_rows(stored, frame):
    said = sentences(stored[1])[-1]
    assert said.startswith("Among the features with P(active) above 1/2")
    for method in known_truth.ZOO:
        false, right = frame["half_false"][method], frame["half_right"][method]
        count = (false + right).sum()
        if not count:
            assert f"{known_truth_report.name_of(method)} " not in said
            continue
        share, promised = false.sum() / count, frame["half_expected"][method].sum() / count
        rest = false - share * (false + right)
        error = (len(rest) / (len(rest) - 1) * (rest**2).sum()) ** 0.5 / count
        known = error > 0.0 and (false + right > 0).sum() > 1
        limit = stats.t.ppf(0.975, len(rest) - 1) * error
        beyond = known and abs(share - promised) > limit
        word = "neither clearly"
        if beyond:
            word = "clearly more are" if share > promised else "clearly fewer are"
        spread = f" ± {100 * error:.0f}" if known else ""
        text = (
            f"{known_truth_report.name_of(method)} ({100 * share:.0f}{spread} %, "
            f"promised {100 * promised:.0f} %)"
        )
        (own,) = [group for group in said.split("; ") if text in group]
        assert own.removeprefix("Among the features with P(active) above 1/2, ").startswith(word)


def test_the_page_opens_with_the_verdict(stored):
    page = (records.HERE / "KNOWN_TRUTH.md").read_text()
    assert page.index(stored[1].notes[0]) < page.index("| goal |") < page.index("## Known truth")
    assert page.count(stored[1].notes[0]) == 1
    assert (records.HERE / "figures" / "known_truth.png").exists()
