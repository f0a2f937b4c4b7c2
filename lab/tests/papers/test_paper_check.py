"""The papers' tables: rows, folds, statistics, storage, choice of options."""

import itertools
import json
import math
from collections import Counter
from statistics import fmean, variance

import numpy as np
import pytest
from sklearn.metrics import f1_score

import ardvark as av
from ardvark.common.validate import InputError
from ardvark.data import Dataset
from ardvark.data.builtin import BUILTIN, waveform
from ardvark.data.sources import SOURCES
from ardvark.inference import BACKENDS
from ardvark.inference.methods.registry import make_options
from ardvark.models import ZOO
from lab.papers import compared, curves, pages, protocols, rows, run, statistics, store
from lab.papers import fold as folds
from lab.papers.costly import costly
from lab.papers.results import everything
from lab.papers.store import read
from lab.papers.tables import GROUPS
from tests.support import rng

ROWS = [(g, r) for g in GROUPS for r in g.rows]
NAMES = [f"{group.name}/{row.label}" for group, row in ROWS]
CHEAP = "fsklr-2/digits38_noisy/l1_logistic"


# --- what is planned ------------------------------------------------------------------------------


def test_names_are_distinct_and_are_found_again():
    assert len(set(NAMES)) == len(NAMES)
    assert [folds.find(name) for name in NAMES] == ROWS


@pytest.mark.parametrize(("group", "row"), ROWS, ids=NAMES)
def test_a_row_asks_for_what_exists(group, row):
    assert group.data in BUILTIN or group.data in SOURCES
    if row.model:
        ZOO[row.model].make_hypers(row.hypers)
        if row.method in BACKENDS:
            options = () if row.share else row.grid
            for candidate in ({"path": True} if row.steps else {}, *options):
                make_options(row.method, {**row.options, **candidate})
    assert set(row.printed) <= {
        "accuracy", "f1", "features", "samples", "jaccard", "pearson", "noise"
    }  # fmt: skip


def asked(table, only=()):
    return [f"{group.name}/{row.label}" for group, row in run.chosen(table, only)]


def test_costly_rows_are_run_only_if_they_are_named():
    assert asked("*") == [name for name in NAMES if not costly(name)]
    with pytest.raises(InputError, match="no row of pfcvm-1 runs without --only"):
        asked("pfcvm-1")
    assert asked("pfcvm-6", ["*"]) == [name for name in NAMES if name.startswith("pfcvm-6/")]


def test_rows_come_in_the_order_of_their_patterns():
    assert asked("*-[16]", ["golub/exact", "jcfo-1/colon/rvm", "exact"]) == [
        "pfcvm-6/golub/exact", "jcfo-1/golub/exact", "jcfo-1/colon/rvm",
        "pfcvm-6/colon/exact", "jcfo-1/colon/exact",
    ]  # fmt: skip
    with pytest.raises(InputError, match=r"no row of jcfo-1 matches heart; the tables are"):
        asked("jcfo-1", ["heart"])


# --- folds ----------------------------------------------------------------------------------------


def noise(N, D=3):
    return Dataset.from_arrays(rng(0).standard_normal((N, D)), np.arange(N) % 3 == 0)


@pytest.mark.parametrize("protocol", [protocols.LEAVE_ONE_OUT, protocols.FIVE_FOLD])
def test_each_row_is_tested_once(protocol):
    data = noise(31)
    tested: Counter = Counter()
    for fold in range(protocol.count(data.N)):
        training, test = protocols.split(protocol, data, fold)
        assert sorted([*training, *test]) == list(range(data.N))
        tested.update(test.tolist())
    assert tested == Counter(range(data.N))


def test_classes_are_dealt_out_evenly():
    y = noise(31).y
    fold = protocols.stratified(y, 5, rng(0))
    for label in (0, 1):
        sizes = np.bincount(fold[y == label], minlength=5)
        assert np.ptp(sizes) <= 1
    assert np.ptp(np.bincount(fold)) <= 1


def test_waveform_splits_are_distinct_and_train_on_200_a_class():
    data = waveform(n_per_class=250)
    splits = [protocols.split(protocols.RESAMPLED, data, fold) for fold in (0, 1)]
    for training, test in splits:
        assert data.take(training).counts == (200, 200)
        assert len(test) == 100
        assert not set(training) & set(test)
    assert set(splits[0][1]) != set(splits[1][1])


def test_each_sample_is_standardised_by_itself():
    data = noise(6, D=50)
    X = protocols.by_sample(data).X
    for row, given in zip(X, data.X, strict=True):
        np.testing.assert_allclose(row, (given - np.mean(given)) / np.std(given))
    assert not np.allclose(X.mean(axis=0), 0.0)


def test_kernel_columns_are_scaled_by_the_training_rows_alone():
    data = noise(9)
    training, test = data.take(range(6)), data.take(range(6, 9))
    K, K_test = folds.kernel_columns(training, test)
    mean, sd = training.X.mean(axis=0), training.X.std(axis=0)
    for i, j in itertools.product(range(3), range(6)):
        x, z = (test.X[i] - mean) / sd, (training.X[j] - mean) / sd
        assert K_test.X[i, j] == pytest.approx(1.0 + sum(x * z))
    assert K.X.shape == (6, 6)
    np.testing.assert_allclose(K.X, K.X.T)


# --- statistics -----------------------------------------------------------------------------------


def test_standard_errors():
    right = [1.0] * 50 + [0.0] * 12
    mean, error = statistics.mean_error(right, leave_one_out=True)
    assert (mean, error) == pytest.approx((50 / 62, (50 / 62 * 12 / 62 / 62) ** 0.5))
    x = [0.9, 0.8, 1.0, 0.7, 0.9]
    assert statistics.mean_error(x, leave_one_out=False) == pytest.approx(
        (0.86, np.std(x, ddof=1) / 5**0.5)
    )
    assert np.isnan(statistics.mean_error([0.9], leave_one_out=False)[1])


def test_paired_differences_are_of_the_folds_of_both():
    mean, error, count = statistics.paired({0: 0.5, 1: 0.9, 2: 0.7}, {1: 0.6, 2: 0.6, 3: 0.1})
    assert (mean, error, count) == pytest.approx((0.2, 0.1, 2))  # 0.3 and 0.1
    assert statistics.paired({0: 1.0}, {1: 1.0})[2] == 0


def test_log_score():
    p, true = np.array([0.9, 0.2, 0.0]), np.array([True, False, True])
    assert folds.log_score(p[:2], true[:2]) == pytest.approx((np.log(0.9) + np.log(0.8)) / 2)
    assert folds.log_score(p[2:], true[2:]) == pytest.approx(np.log(1e-6))


def test_f1_is_that_of_scikit_learn():
    generator = rng(0)
    for _ in range(20):
        label, true = generator.random((2, 30)) < generator.random((2, 1))
        assert folds.f1(label, true) == pytest.approx(f1_score(true, label, zero_division=0))
    none = np.zeros(4, dtype=bool)
    assert folds.f1(none, none) == 0.0


# --- choice of options ----------------------------------------------------------------------------


def test_the_candidate_with_the_least_error_is_chosen_whatever_its_place():
    X = rng(4).standard_normal((40, 4))
    data = Dataset.from_arrays(X, X[:, 0] + 0.3 > 0)
    # in the first one every feature is pruned at once, so that the larger class is predicted
    prunes, keeps = {"feature_threshold": 1e-6}, {"feature_threshold": 1e3}
    for grid in ((prunes, keeps), (keeps, prunes)):
        row = protocols.Row(
            label="x", model="pfcvm", method="pfcvm_lp", reading="ours",
            hypers={"kernel": "linear"}, grid=grid,
        )  # fmt: skip
        assert folds.choose(row, data) == keeps


def test_a_matched_row_keeps_nearest_to_its_share_whatever_the_test_labels():
    X = rng(5).standard_normal((60, 8))
    data = Dataset.from_arrays(X, X[:, 0] + X[:, 1] > 0)
    training, test = data.take(np.arange(40)), data.take(np.arange(40, 60))
    other = Dataset.from_arrays(test.X, 1 - test.y)
    grid = tuple({"C": C} for C in (1e-4, 0.1, 100.0))  # nothing kept, some, everything
    kept = [folds.plain("l1_logistic", training, test, **c)["features"] / 8 for c in grid]
    assert kept[0] == 0.0 < kept[1] < kept[2]
    for share, at in ((kept[1] - 0.01, 1), (0.99, 2)):
        row = protocols.Row(
            label="x", model="", method="l1_logistic", reading="ours", grid=grid, share=share
        )
        for held in (test, other):
            found = folds.matched(row, training, held)
            assert (json.loads(found["chosen"]), found["features"]) == (grid[at], 8 * kept[at])


@pytest.mark.parametrize("model", ["sklr", "fsklr"])
def test_mask_priors_expect_the_share_of_a_matched_row(model):
    training = noise(20, D=6)
    grid = ({"expected": 1e-6}, {"expected": 1.0 - 1e-6})  # the prior decides every bit
    for share, at in ((0.2, 0), (0.8, 1)):
        row = protocols.Row(
            label="x", model=model, method="fsklr_savb", reading="ours", grid=grid, share=share,
            options={"feature_sweeps": 2, "sample_sweeps": 2},
        )  # fmt: skip
        found = folds.matched(row, training, training)
        assert folds.share_kept(found, training) == at


# --- storage --------------------------------------------------------------------------------------


def line(fold, **more):
    group, row = GROUPS[0], GROUPS[0].rows[0]
    return {
        "row": f"{group.name}/{row.label}",
        "fold": fold,
        "identity": store.identity(group, row),
        "status": "finished",
        "accuracy": 2 / 3,
        "version": "v",
        **more,
    }


def test_a_torn_line_is_cut_off_and_the_last_one_counts(tmp_path):
    group, row = GROUPS[0], GROUPS[0].rows[0]
    path = store.file_of(group, tmp_path)

    def statuses():
        return {fold: x["status"] for fold, x in store.lines_of(group, row, tmp_path).items()}

    store.append(path, [line(0, status="failed", reason="a, b")])
    store.append(path, [line(1)])
    store.append(path, [line(0), line(0, row="another"), line(3, identity="of old")])
    assert statuses() == {0: "finished", 1: "finished"}
    assert store.lines_of(group, row, tmp_path)[0]["accuracy"] == "0.66667"
    whole = path.read_bytes()
    # a kill may tear the last line anywhere, its last field included
    for cut in range(1, len(whole.splitlines()[-1]) + 1):
        path.write_bytes(whole[:-cut])
        assert statuses() == {0: "finished", 1: "finished"}
        store.append(path, [line(2)])
        assert statuses() == {0: "finished", 1: "finished", 2: "finished"}


def test_files_are_put_in_order(tmp_path):
    group = GROUPS[0]
    path = store.file_of(group, tmp_path)
    store.append(path, [line(2), line(0, identity="of old"), line(1), line(2, accuracy=0.5)])
    store.tidy(group, tmp_path)
    assert [(x["fold"], x["accuracy"]) for x in read(path)] == [
        ("1", "0.66667"),
        ("2", "0.5"),
    ]
    assert list(tmp_path.iterdir()) == [path]


def test_a_path_is_the_mean_of_the_folds_that_are_whole(tmp_path):
    group = GROUPS[0]
    row = next(row for row in group.rows if row.steps)
    more = {"row": f"{group.name}/{row.label}", "identity": store.identity(group, row)}
    values = {"features": 4, "log_score": -0.5}
    lines = [
        line(fold, step=step, **more, **values | {"features": 4 + fold, "accuracy": 0.5 * fold})
        for fold in range(2)
        for step in row.steps
    ]
    part = line(2, step=row.steps[0], **more, **values)
    store.append(store.file_of(group, tmp_path, path=True), [*reversed(lines), part])
    store.append(store.file_of(group, tmp_path), [line(1, **more), line(2, **more)])
    assert store.whole(group, row, tmp_path) == {1}
    points, count = curves.path_of(group, row, tmp_path)
    assert count == 2
    np.testing.assert_allclose(points, [[4.5, 0.25, 0.25, -0.5, 0.0]] * len(row.steps))


def test_identity_follows_settings_and_data():
    """Equal only for equal settings on the same folds of the same data."""
    marks = [store.identity(group, row) for group, row in ROWS]
    settings = {
        repr((g.data, g.by_sample, g.protocol, r.model, r.method, r.hypers, r.options, r.grid,
              r.on_kernel, r.select, r.chosen_by, r.steps))
        for g, r in ROWS
    }  # fmt: skip
    assert len(set(marks)) == len(settings)


def test_a_run_goes_on_and_writes_what_is_stored(tmp_path, capsys):
    words = ["fsklr-2", "--only", "*/l1_logistic", "--out", str(tmp_path)]
    for most in ("1", "2", "2"):
        assert run.main([*words, "--folds", most]) == 0
    said = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[:3] for line in said] == [["1/1", CHEAP, "0"], ["1/1", CHEAP, "1"]]
    group, row = folds.find(CHEAP)
    found = read(store.file_of(group, tmp_path / "folds"))
    assert len(read(store.file_of(group, tmp_path / "folds", path=True))) == 2 * len(row.steps)
    assert 0.8 < float(found[0]["accuracy"]) <= 1.0
    assert -0.7 < float(found[0]["log_score"]) < 0.0
    assert int(found[0]["n_train"]) + int(found[0]["n_test"]) == 357
    (line, *_) = read(tmp_path / "rows.csv")
    assert (line["data"], line["row"], line["folds"]) == ("digits38_noisy", "l1_logistic", "2")
    assert run.main([*words, "--list"]) == 0
    assert "2/5" in capsys.readouterr().out


# --- what is written ------------------------------------------------------------------------------

FOUND = everything(run.HERE / "folds")


def test_each_mean_of_the_table_once_more():
    """Means, errors and differences to L1 of every row, by the standard library."""
    stored = {}
    for path in (run.HERE / "folds").glob("*.csv"):
        for x in read(path):
            stored.setdefault((x["row"], x["step"]), {})[int(x["fold"])] = x
    checked = 0
    for line in read(run.HERE / "rows.csv"):
        table, data, row, step = (line[k] for k in ("table", "data", "row", "step"))
        held = stored[f"{table}/{data}/{row}", step]
        group, _ = folds.find(f"{table}/{data}/{row}")
        for column in ("accuracy", "f1", "log_score", "features", "samples"):
            if not line[column]:
                continue
            value = {k: float(x[column]) for k, x in held.items() if x[column]}
            unit = dict.fromkeys(value, 1.0 if column == "log_score" else 100.0)
            if column in ("features", "samples"):
                size = {k: group.sizes[1] if column == "features" else int(held[k]["n_train"])
                        for k in value}  # fmt: skip
                unit = {k: 100.0 / size[k] if group.percent else 1.0 for k in value}
            scaled = [unit[k] * value[k] for k in value]
            p, N = fmean(value.values()), len(value)
            spread = math.sqrt(variance(scaled) / N)
            if column == "accuracy" and group.protocol.folds is None:
                spread = 100.0 * math.sqrt(p * (1 - p) / N)
            told = [float(line[name]) for name in (column, f"{column}_error")]
            assert told == pytest.approx([fmean(scaled), spread], rel=1e-4, abs=1e-9)
            checked += 1
            if line.get(f"{column}_l1") and not step:
                l1 = stored[f"{table}/{data}/l1_logistic", ""]
                apart = [unit[k] * (value[k] - float(l1[k][column])) for k in value]
                told = [float(line[f"{column}_l1{end}"]) for end in ("", "_error")]
                want = [fmean(apart), math.sqrt(variance(apart) / N)]
                assert told == pytest.approx(want, rel=1e-4, abs=1e-9)
    assert checked > 2000


def test_every_stored_fold_is_of_a_row_as_it_is_declared():
    """A changed identity would compute it again."""
    for group in GROUPS:
        marks = {(f"{group.name}/{row.label}", store.identity(group, row)) for row in group.rows}
        for path in (False, True):
            held = read(store.file_of(group, run.HERE / "folds", path))
            assert {(line["row"], line["identity"]) for line in held} <= marks


def test_files_and_pages_are_what_the_folds_say(tmp_path):
    rows.write(tmp_path, FOUND)
    compared.write(tmp_path, FOUND)
    for name in (rows.FILE, compared.FILE):
        assert (tmp_path / name).read_bytes() == (run.HERE / name).read_bytes()
    for page, given in pages.texts(FOUND).items():
        text = (pages.LAB / page).read_text()
        for name, table in given.items():
            assert f"<!-- table: {name} -->\n\n{table}\n\n<!-- end -->" in text


def test_a_difference_of_nothing_in_each_fold_has_no_error():
    assert pages.signed(0.0, 0.0, 1) == "0 in each fold"
    assert pages.signed(0.0, 1.0, 1) == "+0.0 +- 1.0"
    assert pages.signed(0.01, 0.01, 1) == "+0.0 +- 0.0"


# --- genes chosen inside and outside --------------------------------------------------------------


def test_a_choice_inside_does_not_see_the_left_out_row(monkeypatch):
    # a feature that is the label, but on the left-out row, where it is the opposite
    data = noise(40, D=5)
    X = data.X.copy()
    training, test = np.arange(1, 40), np.array([0])
    X[:, 3] = np.where(np.arange(40) == 0, 1 - data.y, data.y) + 1e-3 * X[:, 3]
    data = Dataset.from_arrays(X, data.y)
    seen = []

    def choose(row, seen_data):
        seen.append(seen_data.N)
        return folds.Choice(np.array([3]), "not_converged", "its fit")

    monkeypatch.setattr(folds, "selection", choose)
    for where in ("inside", "outside"):
        row = protocols.Row(
            label=where, model="", method="filter", reading="baseline", select=where
        )
        inner, held = (data.take(rows, both=False) for rows in (training, test))
        (line,) = folds.fit(row, data, inner, held)
        assert line["accuracy"] == 0.0
        assert line["log_score"] < np.log(0.2)
        assert (line["status"], line["reason"]) == ("not_converged", "its fit")
    assert seen == [39, 40]


def test_the_filter_takes_the_largest_t():
    from scipy import stats

    data = noise(31, D=80)
    row = protocols.Row(label="f", model="", method="filter", reading="baseline")
    t = stats.ttest_ind(data.X[data.y == 1], data.X[data.y == 0], equal_var=False).statistic
    np.testing.assert_allclose(folds.t_statistic(data), t)
    kept = folds.selection(row, data).features
    assert len(kept) == folds.FILTER
    assert np.abs(t[kept]).min() >= np.delete(np.abs(t), kept).max()


def test_what_is_flat_is_not_ranked():
    weight = 0.001 + 1e-9 * rng(0).random(50)
    with pytest.raises(RuntimeError, match="nothing to rank"):
        folds.leading(weight, 10)
    assert len(folds.leading(weight[:10], 10)) == 10  # all of them: nothing is ranked
    weight[[3, 7]] = 0.002, 0.003
    kept = folds.leading(np.where(np.arange(50) < 40, weight, 0.0), 2)
    np.testing.assert_array_equal(kept, [3, 7])


def test_a_selection_by_a_flat_mean_field_is_refused():
    row = protocols.Row(label="s", model="rfvm", method="rfvm_vb", reading="ours")
    with pytest.raises(RuntimeError, match="nothing to rank"):
        folds.selection(row, noise(31, D=40))


def test_a_paper_selects_by_its_estimate_not_by_a_draw():
    """Another seed has other draws, and the same estimate."""
    data, model, method = noise(31, D=40), "pfcvm", "pfcvm_lp"
    row = protocols.Row(label="s", model=model, method=method, reading="ours")
    kept = folds.selection(row, data).features
    problem = av.problem(model, data)
    tree = av.fit(problem, method, draws=1, chains=1, random_seed=7, progressbar=False)
    weight = tree["fit"][folds.ESTIMATE[method]].values * tree["fit"]["selected_feature"].values
    assert 0 < len(kept) <= folds.SELECTED
    np.testing.assert_array_equal(np.sort(np.argsort(-weight)[: len(kept)]), kept)
    by_draw = np.abs(tree["posterior"]["feature_weight"].values[0, 0])
    assert set(np.argsort(-by_draw)[: len(kept)]) != set(kept)
