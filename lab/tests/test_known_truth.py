"""The simulation with a known truth: its truth, its measures, and what its page says."""

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

from ardvark.models.parts.effects import VISIBLE
from lab import records, script
from lab.known_truth import known_truth
from lab.known_truth import report as known_truth_report
from lab.known_truth.known_truth import CELLS, Cell, Fits, Found, Piece, Truth
from lab.known_truth.results import Estimate, Results, clear, mean, ratio, read

CSV = records.RESULTS / "known_truth.csv"
PAGE = records.HERE / "KNOWN_TRUTH.md"
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


def test_errors_are_of_data_sets_within_their_cells():
    cell = np.array([0, 0, 1, 1, 1])
    found = mean(np.array([1.0, 3.0, 10.0, 13.0, 16.0]), cell)
    assert found.value == (2.0 + 13.0) / 2  # not 8.6, the mean of all five
    parts = np.array([2.0 / 2, 9.0 / 3]) / 4  # s^2 / n of each cell, of weight 1/2
    assert found.error == pytest.approx(parts.sum() ** 0.5)
    assert found.freedom == pytest.approx(parts.sum() ** 2 / (parts[0] ** 2 + parts[1] ** 2 / 2))
    assert found.p == pytest.approx(2 * stats.t.sf(7.5 / found.error, found.freedom))
    # cells that differ, and nothing else
    assert mean(np.array([1.0, 1.0, 5.0, 5.0]), np.array([0, 0, 1, 1]))[:2] == (3.0, 0.0)
    # a single cell: the usual error of a mean
    one = mean(np.array([1.0, 3.0, 5.0]), np.zeros(3))
    assert one == (3.0, pytest.approx(2.0 / 3**0.5), pytest.approx(2.0))


def test_a_cell_of_one_data_set_takes_the_variance_of_the_others():
    found = mean(np.array([1.0, 3.0, 7.0]), np.array([0, 0, 1]))
    assert found == (4.5, pytest.approx(((2.0 / 2 + 2.0) / 4) ** 0.5), pytest.approx(1.0))
    assert np.isnan(mean(np.array([1.0, 2.0]), np.array([0, 1])).error)
    assert np.isnan(mean(np.array([]), np.array([])).value)


def test_a_share_is_of_lists_that_count_equally_by_cell():
    cell = np.array([0, 0, 1, 1])
    false, whole = np.array([1.0, 3.0, 0.0, 1.0]), np.array([2.0, 4.0, 1.0, 3.0])
    share, error, _ = ratio(false, whole, cell)
    assert share == pytest.approx((2.0 + 0.5) / (3.0 + 2.0))
    beyond = false - 0.5 * whole  # 0, 1, -1/2, -1/2
    assert error == pytest.approx(mean(beyond, cell).error / 2.5)
    assert error == pytest.approx((0.5 / 2 / 4) ** 0.5 / 2.5)
    uneven = ratio(np.array([1.0, 1.0, 1.0]), np.array([1.0, 1.0, 2.0]), np.array([0, 0, 1]))
    assert uneven.value == pytest.approx(2 / 3)  # pooled: 3/4
    parts = np.array([1.0, 4.0, 2.0, 2.0])
    assert ratio(parts, np.full(4, 5.0), cell) == pytest.approx(mean(parts / 5.0, cell))
    assert np.isnan(ratio(np.zeros(3), np.zeros(3), np.zeros(3)).value)
    alone = ratio(np.array([1.0, 0.0]), np.array([2.0, 0.0]), np.zeros(2))
    assert alone.value == 0.5
    assert np.isnan(alone.error)


def test_intervals_hold_the_mean_over_cells_as_often_as_they_say():
    """24 cells of 3 or 4 data sets, with unequal means and variances, as the stored rows."""
    rng = np.random.default_rng(5)
    n = np.where(np.arange(24) < 12, 4, 3)
    cell = np.repeat(np.arange(24), n)
    center, spread = rng.normal(0.0, 3.0, 24), rng.uniform(0.3, 1.5, 24)
    runs, held, pooled = 4000, 0, []
    for _ in range(runs):
        x = rng.normal(center[cell], spread[cell])
        found = mean(x, cell)
        limit = stats.t.isf(0.025, found.freedom) * found.error
        held += abs(found.value - center.mean()) < limit
        pooled.append((found.error, x.std(ddof=1) / len(x) ** 0.5))
    assert 0.94 < held / runs < 0.98  # Welch's degrees of freedom err to the safe side
    true = np.sqrt((spread**2 / n).sum()) / 24
    within, over_all = np.mean(pooled, axis=0)
    assert within == pytest.approx(true, rel=0.05)
    assert over_all > 2.0 * true


def test_a_difference_is_clear_by_holms_procedure():
    def of(p, sign=1.0):
        return Estimate(sign * stats.norm.isf(p / 2.0), 1.0, np.inf)

    assert of(0.01).p == pytest.approx(0.01)
    # the limits are 0.05 / 4, / 3, / 2 and / 1, until one is not met
    assert clear([of(0.012), of(0.04), of(0.016, -1.0), of(0.9)], 0.05) == [1, 0, -1, 0]
    assert clear([of(0.013), of(0.001, -1.0), of(0.02), of(0.03)], 0.05) == [1, -1, 1, 1]
    assert clear([of(0.026), of(0.026)], 0.05) == [0, 0]
    # what has no error is never clear, and makes the others no harder
    rest = [Estimate(9.0, float("nan"), float("nan")), Estimate(9.0, 0.0, float("nan"))]
    assert clear([of(0.04), *rest], 0.05) == [1, 0, 0]


def test_stability_selection_takes_the_first_features_of_the_path():
    truth = known_truth.simulate(Cell(100, 30, 0.0, 3), 1)
    said = "first 3 of the L1 path at D = 30 and 10 at D = 200"
    assert said in PAGE.read_text()
    assert [known_truth.first(D) for D in (30, 200)] == [3, 10]
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
    fits.put(keys[2], fits.failure(keys[2], "killed:\n out of memory"))
    whole = fits.path.read_text()
    fits.path.write_text(whole + whole.splitlines()[1][:40])  # killed within a line
    assert {key: fits.get(key) for key in keys} == {**first, keys[2]: None}
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
    assert fits.get(key) is None


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
    assert found.converged(["a"]).tolist() == [True]
    assert found.converged(["a", "b"]).tolist() == [False]
    assert Results(rows, ["a", "b", "c"]).sets == Results([], ["a"]).sets == 0


# --- the stored rows ------------------------------------------------------------------------------


def test_a_run_goes_on_from_the_rows_of_the_repository(tmp_path, monkeypatch):
    """The record is made of them where no run has left anything, and they are not lost."""
    monkeypatch.setattr(known_truth, "draw", lambda found, path: path.write_text("drawn"))
    words = ["--stored", "--out", str(tmp_path / "out"), "--work", str(tmp_path / "work")]
    (tmp_path / "out").mkdir()
    script.run(known_truth, words)
    made, kept = records.everything(tmp_path / "out"), records.everything()["known_truth"]
    assert made["known_truth"].notes == kept.notes
    assert made["known_truth"].measured == kept.measured
    assert (tmp_path / "out" / "known_truth.png").read_text() == "drawn"
    fits = Fits(tmp_path / "work" / "fits.csv", "abc")
    assert fits.path.read_bytes() == CSV.read_bytes()
    with CSV.open() as file:
        assert file.readline().strip().split(",") == known_truth.COLUMNS
    planned = known_truth.pieces(type("Given", (), {"quick": False}))
    known = {key for key in planned if fits.get(key)}
    assert len(known) == len(read(CSV)) <= len(planned)
    lines = fits.path.read_text().splitlines(keepends=True)
    fits.path.write_text("".join(lines[:-1]))
    known = {key for key in planned if fits.get(key)}
    assert len(known) == len(lines) - 2  # the columns' names, and the fit that was cut off
    new = next(key for key in planned if key not in known)
    fits.put(new, fits.failure(new, "tried"))
    assert read(fits.path)[-1]["reason"] == "tried"


@pytest.mark.parametrize("commit", ["590f9be", "8527945"])
@pytest.mark.parametrize("method", ["pfcvm_lp, zoo's prior", "L1"])
def test_the_present_code_makes_rows_of_both_commits_anew(commit, method, tmp_path):
    row = next(r for r in read(CSV) if r["commit"] == commit and r["method"] == method)
    key = Piece(*(row[name] for name in Piece._fields))
    again = Fits(tmp_path / "fits.csv", commit).run([key])[key]
    for name in set(row) - {"cpu_seconds"}:
        value = row[name]
        same = pytest.approx(value, rel=1e-4, abs=1e-5) if isinstance(value, float) else value
        assert again[name] == same, name


# --- the page -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stored():
    """Return the stored rows, and the record."""
    return read(CSV), records.everything()["known_truth"]


NAMES = ["N", "D", "correlation", "active", "data_set"]


@pytest.fixture(scope="module")
def frame(stored):
    """Return the rows of whole data sets, apart from the code that makes the page."""
    rows = pd.DataFrame(stored[0])
    whole = rows[rows["status"] != "failed"].groupby(NAMES)["method"].transform("nunique")
    rows = rows.loc[whole.index[whole == len(known_truth.METHODS)]].copy()
    rows["finished"] = (rows["status"] == "finished").astype(float)
    return rows.pivot_table(
        index=NAMES, columns="method",
        values=["power_20", "log_score", "accuracy", "half_false", "half_right", "half_expected",
                "finished"],
    )  # fmt: skip


def stratified(x):
    """Return the mean over cells, its standard error and Welch's degrees of freedom."""
    cells = x.groupby(NAMES[:-1])
    n = cells.size()
    assert n.min() > 1
    part = cells.var() / n / len(n) ** 2
    return cells.mean().mean(), part.sum() ** 0.5, part.sum() ** 2 / (part**2 / (n - 1)).sum()


def family(frame):
    """Return each comparison of the page with its estimate, and which are clear by Holm."""
    found = {}
    for m, others in known_truth_report.OTHERS.items():
        for other in others:
            for name in ("power_20", "log_score", "accuracy"):
                if other != "stability selection" or name == "power_20":
                    found[m, other, name] = stratified(frame[name][m] - frame[name][other])
    for m in known_truth.ZOO:
        false, promised = frame["half_false"][m], frame["half_expected"][m]
        count = false + frame["half_right"][m]
        over = [x.groupby(NAMES[:-1]).mean().mean() for x in (false - promised, count)]
        share = over[0] / over[1]
        _, error, freedom = stratified(false - promised - share * count)
        found[m] = share, error / over[1], freedom
    p = {k: 2 * stats.t.sf(abs(v) / e, df) for k, (v, e, df) in found.items()}
    clearly, ordered = {}, sorted(p, key=p.get)
    for i, key in enumerate(ordered):
        before = all(clearly[k] for k in ordered[:i])
        clearly[key] = before and p[key] <= 0.05 / (len(p) - i)
    return found, clearly


def test_the_record_is_what_the_rows_say(stored):
    rows, record = stored
    made = known_truth_report.measured(Results(rows, known_truth.METHODS), rows, 120)
    assert made.goals == record.goals
    assert [records.markdown(t) for t in made.tables] == [
        records.markdown(t) for t in record.measured
    ]
    assert all(row["smallest_effect"] > VISIBLE for row in rows if row["status"] != "failed")


def test_the_text_names_the_winner(frame):
    """The horseshoe, before L1, with the best log score and the best accuracy."""
    said = PAGE.read_text()
    assert "The horseshoe finds most" in said
    assert "before L1" in said
    assert "It also has the best log score" in said
    power = {m: stratified(frame["power_20"][m])[0] for m in known_truth.METHODS}
    assert sorted(power, key=lambda m: -power[m])[:2] == ["horseshoe, exact", "L1"]
    for name in ("log_score", "accuracy"):
        best = frame[name].groupby(NAMES[:-1]).mean().mean()
        assert best.idxmax() == "horseshoe, exact"


def test_the_figures_of_the_text_are_those_of_the_rows(stored, frame):
    figures = known_truth_report.figures(stored[0])
    for method, name in known_truth_report.SHORT.items():
        value, error, _ = stratified(frame["power_20"][method])
        assert figures[f"{name}_power_20"] == f"{100 * value:.1f} ± {100 * error:.1f}"
    for method in known_truth.ZOO:
        false, right, promised = (
            frame[f"half_{x}"][method].groupby(NAMES[:-1]).mean().mean()
            for x in ("false", "right", "expected")
        )
        name, listed = known_truth_report.SHORT[method], false + right
        assert figures[f"{name}_false"].startswith(f"{100 * false / listed:.1f} ±")
        assert figures[f"{name}_promised"] == f"{100 * promised / listed:.1f}"


ALL, SCORE = ("power_20", "log_score", "accuracy"), ("log_score",)
CLEARLY_ABOVE = {
    ("horseshoe, exact", "pfcvm, exact"): ALL,
    ("horseshoe, exact", "rfvm, exact"): ALL,
    ("horseshoe, exact", "L1"): ALL,
    ("horseshoe, exact", "stability selection"): ALL[:1],
    ("pfcvm, exact", "pfcvm_lp, zoo's prior"): ALL,
    ("pfcvm, exact", "stability selection"): ALL[:1],
    ("pfcvm, exact", "pfcvm_lp, printed updates"): SCORE,
    ("pfcvm, exact", "L1"): SCORE,
    ("rfvm, exact", "rfvm_vb, printed updates"): ALL,
    ("rfvm, exact", "rfvm_vb, zoo's prior"): ALL,
}
"""What the text claims: method and other, and the measures in which it is clearly above it."""


def test_the_text_says_which_differences_are_clear(frame):
    found, clearly = family(frame)
    claimed = {(*pair, name) for pair, names in CLEARLY_ABOVE.items() for name in names}
    assert {key for key in found if clearly[key] and isinstance(key, tuple)} == claimed
    assert all(found[key][0] > 0.0 for key in claimed)
    promises = {key for key in found if clearly[key] and isinstance(key, str)}
    assert promises == set(known_truth.ZOO) - {"rfvm_vb, zoo's prior"}
    assert all(found[key][0] > 0.0 for key in promises)


def test_no_clear_difference_changes_its_sign_where_only_converged_fits_count(stored):
    found = Results(stored[0], known_truth.METHODS)
    for (m, other), names in CLEARLY_ABOVE.items():
        kept = found.converged(x for x in (m, other) if x in known_truth_report.EXACT)
        for name in names:
            assert found.more(m, other, name, kept).value > 0.0


def test_differences_are_paired_and_judged_together(stored, frame):
    found, clearly = family(frame)
    (table,) = [t for t in stored[1].measured if t.title.startswith("Differences")]
    assert f"over the {len(found)} comparisons" in table.note
    shown = {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}
    for key, (value, error, _) in found.items():
        if isinstance(key, str):
            continue
        m, other, name = key
        unit, digits = (1, 3) if name == "log_score" else (100, 1)
        column = name.replace("power_20", "power").replace("_", " ")
        text = shown[f"{m} - {other}"][column]
        assert text.startswith("**") == clearly[key]
        numbers = [float(x) for x in text.strip("*").split(" ± ")]
        half = 0.5001 * 10.0**-digits
        assert numbers == [
            pytest.approx(unit * value, abs=half),
            pytest.approx(unit * error, abs=half),
        ]
    for pair, row in shown.items():
        both = [m for m in pair.split(" - ") if m.endswith("exact")]
        assert row["converged: data sets"] == (frame["finished"][both].min(axis=1) == 1.0).sum()


def test_an_uncertain_share_does_not_meet_its_goal(stored):
    goals = {g.goal: g for g in stored[1].goals if "plus two standard errors" in g.goal}
    assert len(goals) == 3
    found = Results(stored[0], known_truth.METHODS)
    for text, goal in goals.items():
        value, error, _ = found.false(text.split(":")[0], "fdr")
        assert goal.met == (value + 2.0 * error <= 0.1)


def test_the_page_opens_with_the_verdict():
    page = PAGE.read_text()
    assert page.index("The horseshoe finds most") < page.index("| goal |") < page.index("## Known")
    assert (records.HERE / "figures" / "known_truth.png").exists()
