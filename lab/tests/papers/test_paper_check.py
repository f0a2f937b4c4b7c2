"""The papers' tables: rows, folds, statistics, storage, choice of options."""

import itertools
import json
from collections import Counter

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
from lab.lines import read
from lab.papers import cost, curves, protocols, run, statistics, store
from lab.papers import fold as folds
from lab.papers.agreement import agreement, jackknife
from lab.papers.tables import GROUPS, costly
from tests.support import rng, z_limit

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


def asked(names, only=()):
    return [f"{group.name}/{row.label}" for group, row in run.chosen(names, only)]


def test_tables_are_found_by_name_and_by_pattern():
    assert run.tables() == ["rfvm-3-4", "pfcvm-6", "jcfo-1", "fsklr-2", "fsklr-3", "pfcvm-1"]
    assert run.matching("PFCVM-6") == ["pfcvm-6"]
    assert run.matching("fsklr*") == ["fsklr-2", "fsklr-3"]
    with pytest.raises(InputError, match=r"pfcvm-7.*Did you mean 'pfcvm-"):
        run.matching("pfcvm-7")


def test_costly_rows_are_run_only_if_they_are_named():
    assert asked(run.tables()[:5]) == [
        name for name in NAMES if not costly(name) and not name.startswith("pfcvm-1")
    ]
    with pytest.raises(InputError, match="all rows of pfcvm-1 are costly"):
        asked(["pfcvm-1"])
    assert asked(["pfcvm-6"], ["*"]) == [name for name in NAMES if name.startswith("pfcvm-6/")]


def test_rows_come_in_the_order_of_their_patterns():
    both = ["pfcvm-6", "jcfo-1"]
    assert asked(both, ["golub/exact", "jcfo-1/colon/rvm", "exact"]) == [
        "pfcvm-6/golub/exact", "jcfo-1/golub/exact", "jcfo-1/colon/rvm",
        "pfcvm-6/colon/exact", "jcfo-1/colon/exact",
    ]  # fmt: skip
    with pytest.raises(InputError, match=r"no row of jcfo-1 matches heart"):
        asked(["jcfo-1"], ["heart"])


def test_costs_are_of_the_row_itself_or_of_a_like_one():
    group, row = folds.find("fsklr-3/sonar/rbf_svm")
    held = {"fsklr-3/sonar/rbf_svm": [1.0, 3.0], "fsklr-3/sonar/l1_logistic": [9.0]}
    own = cost.cost(group, row, held)
    assert (own.stored, own.folds, own.spent, own.fold, own.to_come) == (2, 5, 4.0, 2.0, 6.0)
    assert cost.cost(group, row, held, most=2).to_come == 0.0
    other, like = folds.find("fsklr-3/heart/rbf_svm")
    found = cost.cost(other, like, held)
    assert found.like == "fsklr-3/sonar/rbf_svm"
    assert found.fold == pytest.approx(2.0 * (270 * 13) / (208 * 60))
    on_the_same = cost.cost(*folds.find("fsklr-3/sonar/rbf_svm-matched"), held)
    assert on_the_same.fold == 2.0
    assert cost.cost(*folds.find("fsklr-3/sonar/fsklr"), held).to_come is None


def test_the_time_of_exact_is_known_without_a_stored_fold():
    found = cost.cost(*folds.find("pfcvm-6/golub/exact"), {})
    assert found.like.startswith("pfcvm on ")
    assert found.to_come > 72.0


def test_time_left_follows_the_pace_of_the_run():
    plan = cost.Plan(Counter({"a": 2, "b": 1}), {"a": 1.0, "b": 8.0})
    assert plan.left == 10.0
    plan.ended("a")
    plan.ended("a")
    assert plan.time_left(6.0) == pytest.approx(24.0)  # 2 took 6 seconds, 8 are left
    unknown = cost.Plan(Counter({"a": 3}), {"a": None})
    unknown.ended("a")
    assert unknown.time_left(5.0) == pytest.approx(10.0)


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


@pytest.mark.statistical
def test_jackknife_against_repeated_draws():
    # the error over many repetitions of an experiment, each with 12 splits
    generator = rng(1)
    p = np.linspace(0.05, 0.95, 30)
    runs = [generator.random((12, 30)) < p for _ in range(800)]
    spread = np.std([agreement(S)["jaccard"] for S in runs], ddof=1)
    claimed = np.sqrt(np.mean([jackknife(S, "jaccard") ** 2 for S in runs[:200]]))
    # The jackknife's error is 6 % too large here. sd of the ratio: 1 / sqrt(2 * 800) of the spread,
    # 0.47 / (2 sqrt(200)) of the mean of 200 jackknives, whose own relative sd is 0.47
    sd = 1.06 * np.hypot(1600**-0.5, 0.47 / 2 / 200**0.5)
    assert abs(claimed / spread - 1.06) < z_limit() * sd
    # as if the 66 pairs were independent: 0.4
    naive = np.mean([of_pairs(S).std() / 66**0.5 for S in runs[:20]])
    assert naive / spread < 0.75


def of_pairs(S):
    return np.array([agreement(S[[i, j]])["jaccard"] for i, j in
                     itertools.combinations(range(len(S)), 2)])  # fmt: skip


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
    kept = [folds.scikit("l1_logistic", training, test, **c)["features"] / 8 for c in grid]
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
    marks = [store.identity(group, row) for group, row in ROWS]
    assert marks == [store.identity(group, row) for group, row in ROWS]
    # equal only for equal settings on the same folds of the same data
    assert len(set(marks)) == len(
        {
            repr(
                (
                    g.data,
                    g.by_sample,
                    g.protocol,
                    r.model,
                    r.method,
                    r.hypers,
                    r.options,
                    r.grid,
                    r.on_kernel,
                    r.select,
                    r.chosen_by,
                    r.steps,
                )
            )
            for g, r in ROWS
        }
    )


def test_a_run_is_resumed(tmp_path):
    def tasks(most):
        return run.missing(run.chosen(["fsklr-2"], ["*/l1_logistic"]), tmp_path, most)

    assert [fold for _, fold in tasks(2)] == [0, 1]
    assert [task for task, _ in run.run(tasks(1), tmp_path)] == [(CHEAP, 0)]
    assert [fold for _, fold in tasks(2)] == [1]
    group, row = folds.find(CHEAP)
    (found,) = read(store.file_of(group, tmp_path))
    assert len(read(store.file_of(group, tmp_path, path=True))) == len(row.steps)
    assert 0.8 < float(found["accuracy"]) <= 1.0
    assert -0.7 < float(found["log_score"]) < 0.0
    assert int(found["n_train"]) + int(found["n_test"]) == 357


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
