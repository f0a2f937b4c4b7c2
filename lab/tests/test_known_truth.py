"""The simulation with a known truth: its truth, its measures, and what its page says."""

import numpy as np
import pytest
from scipy import special, stats

from ardvark.models.parts.effects import VISIBLE
from lab import rows, tables
from lab.known_truth import known_truth, report, two_targets
from lab.known_truth.known_truth import CELLS, HERE, Cell, Found, Piece, Truth
from lab.known_truth.results import Estimate, Results, clear, mean, ratio

PAGE = HERE / "KNOWN_TRUTH.md"
STORED = rows.read(known_truth.FITS)
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
    planned = known_truth.pieces()
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


# --- the run --------------------------------------------------------------------------------------


def test_a_run_in_its_smallest_form_that_is_stopped_goes_on(tmp_path, monkeypatch):
    gibbs = {"sampler": "gibbs", "limit": 256, "ess": 100.0}  # it has nothing to compile
    zoo = {"pfcvm, exact": known_truth.Zoo("pfcvm", "exact", options=known_truth.EXACT | gibbs)}
    methods, path = ("pfcvm, exact", "L1", "stability selection"), tmp_path / "fits.csv"
    tried = {**known_truth.METHODS, **zoo}
    planned = known_truth.pieces([TINY], 1, methods)
    first = known_truth.computed(path, planned[:2], methods=tried)
    assert first == rows.read(path)
    lost = {"status": "failed", "reason": "killed"}
    rows.write(path, [*first, planned[2]._asdict() | lost])
    held = known_truth.computed(path, planned, methods=tried)
    assert held[:2] == first
    assert [row["method"] for row in held] == list(methods)
    assert {row["status"] for row in held} <= {"finished", "not_converged"}
    monkeypatch.setattr(known_truth, "fit", None)  # all is there
    found = Results(known_truth.computed(path, planned), methods)
    assert found.sets == 1


def test_a_fit_that_raises_an_error_is_a_row_that_failed():
    row = known_truth.fit(Piece(*TINY, 1, "no method"), "abc")
    assert (row["status"], row["commit"]) == ("failed", "abc")
    assert row["reason"].startswith("KeyError")


def test_a_data_set_counts_when_every_method_has_fitted_it():
    held = [
        {"N": 1, "D": 1, "correlation": 0.0, "active": 1, "data_set": s, "method": m, "status": x}
        for s, m, x in (
            (1, "a", "finished"), (1, "b", "not_converged"), (2, "a", "finished"),
            (2, "b", "failed"), (3, "a", "finished"),
        )
    ]  # fmt: skip
    found = Results(held, ["a", "b"])
    assert (found.sets, found.cells) == (1, 1)
    assert found.converged(["a"]).tolist() == [True]
    assert found.converged(["a", "b"]).tolist() == [False]
    assert Results(held, ["a", "b", "c"]).sets == Results([], ["a"]).sets == 0


# --- the stored rows ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("commit", "method"),
    [
        ("590f9be", "pfcvm_lp, zoo's prior"),
        ("8527945", "pfcvm_lp, zoo's prior"),
        ("2b40d435", "L1"),
    ],
)
def test_the_present_code_makes_rows_of_each_commit_anew(commit, method):
    row = next(r for r in STORED if r["commit"] == commit and r["method"] == method)
    again = known_truth.fit(Piece(*(row[name] for name in Piece._fields)), commit)
    assert list(row) == list(again)
    for name in set(row) - {"cpu_seconds"}:
        value = row[name]
        same = pytest.approx(value, rel=1e-4, abs=1e-5) if isinstance(value, float) else value
        assert again[name] == same, name


def test_the_page_and_the_figure_are_what_the_rows_say(tmp_path):
    found = Results(STORED, known_truth.METHODS)
    assert found.sets == 120
    (tmp_path / PAGE.name).write_bytes(PAGE.read_bytes())
    known_truth.publish(found, STORED, tmp_path)
    assert (tmp_path / PAGE.name).read_text() == PAGE.read_text()
    assert (tmp_path / "known_truth.png").exists()
    assert all(row["smallest_effect"] > VISIBLE for row in STORED)


def test_the_text_of_the_page_is_what_the_rows_say():
    found, said = Results(STORED, known_truth.METHODS), PAGE.read_text()
    powers = {m: found.mean(m, "power_20") for m in found.methods}
    best, second = sorted(powers, key=lambda m: -powers[m].value)[:2]
    assert (best, second) == ("horseshoe, exact", "L1")
    for m in (best, second):
        assert f"{100 * powers[m].value:.1f} ± {100 * powers[m].error:.1f} %" in said
    kept = found.converged([best])
    power, more = found.mean(best, "power_20", kept), found.more(best, second, "power_20", kept)
    where = f"on {kept.sum()} of {found.sets} data sets, that is"
    share = f"{100 * power.value:.1f} ± {100 * power.error:.1f} %"
    assert f"{where} {share}, {report.signed(more, 'power_20')} points over L1" in said
    assert more.value < 2 * more.error  # "not clear"
    for m in found.judged:  # shares of false features, and what was promised
        false, promised = found.false(m, "half"), found.expected(m, "half")
        assert f"{100 * false.value:.1f} ± {100 * false.error:.1f} %" in said, m
        assert f"{100 * promised:.1f} %" in said, m
    compared = report.compare(found)
    assert f"{compared.tested} comparisons" in said
    promises = {m for m in found.judged if compared.sign[m]}
    assert promises == set(known_truth.ZOO) - {"rfvm_vb, zoo's prior"}
    clear_ones = {key: e for key, e in compared.more.items() if compared.sign[key]}
    assert all(e.value > 0.0 for e in clear_ones.values())
    for m, other, name in clear_ones:  # also where only converged fits count
        kept = found.converged(x for x in (m, other) if x in report.EXACT)
        assert found.more(m, other, name, kept).value > 0.0


# --- JCFO, FS-SKLR and a spike and slab -----------------------------------------------------------


def test_no_feature_of_the_curved_target_has_a_linear_effect():
    truth = two_targets.curved(two_targets.CELL, 301)
    assert np.maximum(truth.best, 1.0 - truth.best).mean() == pytest.approx(
        known_truth.BAYES_ACCURACY
    )
    eta = truth.X_new**2 @ truth.w
    np.testing.assert_allclose(truth.best, special.expit(eta - np.median(eta)))
    linear, squares = (np.corrcoef(X.T, eta)[-1, :-1] for X in (truth.X_new, truth.X_new**2))
    assert np.abs(linear).max() < 6.0 / np.sqrt(known_truth.FRESH)
    assert np.count_nonzero(truth.w) == 3
    assert squares[truth.w != 0.0].min() > 0.3


def test_a_feature_is_in_the_spike_and_slab_if_its_value_or_its_square_is(monkeypatch):
    X = np.random.default_rng(0).normal(size=(8, 2))
    truth = Truth(X, np.arange(8) % 2, X, np.arange(8) % 2, np.array([1.0, 0.0]))
    weight = np.array([[[1.0, 0, 0, 0], [0, 0, 2.0, 0], [0, -1.0, 0, 0], [0, 0, 0, 0]]])
    drawn = two_targets.spike_and_slab.Posterior(np.zeros((1, 4)), weight, False, 1.2)
    asked = []
    monkeypatch.setattr(
        two_targets.spike_and_slab, "sample", lambda A, *_, **__: asked.append(A) or drawn
    )
    found = two_targets.plain(truth, 0, powers=2)
    squares = (X**2 - (X**2).mean(axis=0)) / (X**2).std(axis=0)
    np.testing.assert_allclose(asked[0][:, 2:], squares)
    assert found.p.tolist() == [0.5, 0.25]
    assert found.size.tolist() == [0.75, 0.25]
    eta = asked[0] @ weight[0].T  # the fresh rows are the same
    np.testing.assert_allclose(found.probability, special.expit(eta).mean(axis=1))
    assert found.facts == {"status": "not_converged", "iterations": 8, "rhat": 1.2}


@pytest.mark.parametrize("target", two_targets.TARGETS)
def test_the_tables_of_both_targets_are_what_the_rows_say(target):
    held = rows.read(HERE / f"two_targets_{target}.csv")
    table = two_targets.table(held, target)
    assert tables.markdown(table) in PAGE.read_text()
    left_out = table["converged"].str.split(" of ")
    assert all(int(kept) <= int(every) for kept, every in left_out)


def test_a_fit_that_has_not_converged_is_in_no_mean():
    methods = two_targets.TARGETS["linear"][2]
    made = {"power_20": 1.0, "top": 1.0, "own_right": 3, "own_false": 1, "log_score": -0.3,
            "best_log_score": -0.2, "accuracy": 0.8, "status": "finished",
            "expected_active": None, "half_right": 3, "half_false": 1}  # fmt: skip
    held = [
        two_targets.CELL._asdict() | {"data_set": s, "method": m} | made
        for s in (1, 2, 3) for m in methods
    ]  # fmt: skip
    lost = next(r for r in held if r["data_set"] == 3 and r["method"] == "fsklr, exact")
    lost |= {"power_20": 0.0, "log_score": -9.0, "status": "not_converged"}
    found = two_targets.table(held, "linear").set_index("method").loc["fsklr, exact"]
    assert found["converged"] == "2 of 3"
    assert found["power"].startswith("1.00")
    assert found["more log score"] == "+0.000 ± 0.000"


def test_the_text_on_both_targets_is_what_the_rows_say():
    def shown(target, method, column):
        held = rows.read(HERE / f"two_targets_{target}.csv")
        line = two_targets.table(held, target).set_index("method").loc[method]
        numbers = [round(100.0 * float(x)) for x in line[column].split(" ± ")]
        return " ± ".join(map(str, numbers))

    power, false, promised = "power", "own list: false", "promised"
    linear = {
        m: [shown("linear", m, x) for x in (power, false)] for m in two_targets.TARGETS["linear"][2]
    }
    said = PAGE.read_text()
    slab, l1, em, savb = (linear[m] for m in ("spike and slab", "L1", "jcfo_em", "fsklr_savb"))
    assert slab[0] == l1[0] == "100 ± 0"  # "find every active feature"
    assert f"predicts best, and {slab[1]} % of its list is false." in said
    assert (
        f"algorithms find {em[0]} and {savb[0]} % of the active features, and {em[1]} and" in said
    )
    assert f"and {savb[1]} % of what they keep is false." in said
    for m, end in (("fsklr, exact", "% false, promised"), ("jcfo, exact", "%, promised")):
        assert f"({linear[m][1]} {end} {shown('linear', m, promised)})" in said
    assert f"spike and slab (promised {shown('linear', 'spike and slab', promised)})" in said
    curved = [shown("curved", m, power) for m in ("jcfo_em", "fsklr, exact")]
    assert f"finds {curved[0]} % where its algorithm converged (8 of 10), FS-SKLR's exact" in said
    assert f"posterior {curved[1]} %," in said
    assert shown("curved", two_targets.SQUARES, power) == "100 ± 0"
    for m, end in (
        ("fsklr, exact", "% of the list of its"),
        (two_targets.SQUARES, "% of the told"),
    ):
        of_list, promise = (shown("curved", m, x) for x in (false, promised))
        assert f"{of_list} {end}" in said
        assert f"(promised {promise})" in said
