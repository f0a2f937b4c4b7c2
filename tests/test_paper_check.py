"""The pure parts of `benchmarks.paper_check`: folds, statistics, storage, choice of options."""

import itertools
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import f1_score

import ardvark as av
from ardvark.data import Dataset
from ardvark.data.builtin import BUILTIN, waveform
from ardvark.data.sources import SOURCES
from ardvark.inference import BACKENDS
from ardvark.inference.fitting import make_options
from ardvark.models import ZOO
from tests.support import rng, z_limit

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(Path(__file__).parents[1]))
    from benchmarks import paper_check as check
    from benchmarks import paper_folds as folds
    from benchmarks import paper_protocols as protocols

ROWS = [(g, r) for g in protocols.GROUPS for r in g.rows]
NAMES = [f"{group.name}/{row.label}" for group, row in ROWS]


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
            for candidate in ({}, row.light, *row.grid):
                make_options(row.method, {**row.options, **candidate})
    assert set(row.reported) <= {
        "accuracy", "f1", "features", "samples", "jaccard", "pearson", "noise"
    }  # fmt: skip


# --- folds ----------------------------------------------------------------------------------------


def noise(N, D=3):
    return Dataset.from_arrays(rng(0).standard_normal((N, D)), np.arange(N) % 3 == 0)


@pytest.mark.parametrize("protocol", [protocols.LEAVE_ONE_OUT, protocols.FIVE_FOLD])
def test_each_row_is_tested_once(protocol):
    data = noise(31)
    tested: Counter = Counter()
    for fold in range(protocol.folds(data.N, full=False)):
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


def by_pairs(selected):
    """(16) to (19), set by set."""
    D, jaccard, pearson = selected.shape[1], [], []
    for s, t in itertools.combinations(selected, 2):
        a, b = set(np.flatnonzero(s)), set(np.flatnonzero(t))
        jaccard.append(len(a & b) / len(a | b))
        pearson.append(np.corrcoef(s, t)[0, 1])
    assert D > 2
    return np.mean(jaccard), np.mean(pearson)


def test_stability_is_the_mean_over_pairs():
    generator = rng(0)
    S = generator.random((6, 10)) < 0.4
    S[:, :2] = True, False  # a constant row has no correlation
    found = check.agreement(S)
    assert (found["jaccard"], found["pearson"]) == pytest.approx(by_pairs(S))


def test_stability_at_its_ends():
    one = np.array([True, True, False, False])
    assert check.agreement(np.array([one, one])) == pytest.approx({"jaccard": 1.0, "pearson": 1.0})
    ends = check.agreement(np.array([one, ~one]))
    assert ends == pytest.approx({"jaccard": 0.0, "pearson": -1.0})
    everything = check.agreement(np.ones((3, 4), dtype=bool))
    assert everything["jaccard"] == 1.0
    assert np.isnan(everything["pearson"])


@pytest.mark.statistical
def test_jackknife_against_repeated_draws():
    # the error over many repetitions of an experiment, each with 12 splits
    generator = rng(1)
    p = np.linspace(0.05, 0.95, 30)
    runs = [generator.random((12, 30)) < p for _ in range(800)]
    spread = np.std([check.agreement(S)["jaccard"] for S in runs], ddof=1)
    claimed = np.sqrt(np.mean([check.jackknife(S, "jaccard") ** 2 for S in runs[:200]]))
    # The jackknife's error is 6 % too large here. sd of the ratio: 1 / sqrt(2 * 800) of the spread,
    # 0.47 / (2 sqrt(200)) of the mean of 200 jackknives, whose own relative sd is 0.47
    sd = 1.06 * np.hypot(1600**-0.5, 0.47 / 2 / 200**0.5)
    assert abs(claimed / spread - 1.06) < z_limit() * sd
    # as if the 66 pairs were independent: 0.4
    naive = np.mean([of_pairs(S).std() / 66**0.5 for S in runs[:20]])
    assert naive / spread < 0.75


def of_pairs(S):
    return np.array([check.agreement(S[[i, j]])["jaccard"] for i, j in
                     itertools.combinations(range(len(S)), 2)])  # fmt: skip


def test_standard_errors():
    right = [1.0] * 50 + [0.0] * 12
    mean, error = check.mean_error(right, leave_one_out=True)
    assert (mean, error) == pytest.approx((50 / 62, (50 / 62 * 12 / 62 / 62) ** 0.5))
    x = [0.9, 0.8, 1.0, 0.7, 0.9]
    assert check.mean_error(x, leave_one_out=False) == pytest.approx(
        (0.86, np.std(x, ddof=1) / 5**0.5)
    )
    assert np.isnan(check.mean_error([0.9], leave_one_out=False)[1])


def test_f1_is_that_of_scikit_learn():
    generator = rng(0)
    for _ in range(20):
        label, true = generator.random((2, 30)) < generator.random((2, 1))
        assert folds.f1(label, true) == pytest.approx(f1_score(true, label, zero_division=0))
    none = np.zeros(4, dtype=bool)
    assert folds.f1(none, none) == 0.0


# --- choice of options ----------------------------------------------------------------------------


def test_the_candidate_with_the_least_error_is_chosen_whatever_its_place():
    data = av.load("fat")
    data = data.take(range(40))
    # in the first one every feature is pruned at once, so that the larger class is predicted
    prunes, keeps = {"feature_threshold": 1e-6}, {"feature_threshold": 1e3}
    for grid in ((prunes, keeps), (keeps, prunes)):
        row = protocols.Row(
            label="x", model="pfcvm", method="pfcvm_lp", hypers={"kernel": "linear"}, grid=grid
        )
        assert folds.choose(row, {}, data) == keeps


# --- storage --------------------------------------------------------------------------------------


def line(row, fold, **more):
    return {
        "row": row,
        "fold": fold,
        "identity": "a",
        "status": "finished",
        "selected": "1 2",
        **more,
    }


def test_a_torn_line_is_cut_off_and_the_last_one_counts(tmp_path):
    path = tmp_path / "folds.csv"
    check.append(path, line("x", 0, status="failed", reason="a, b"))
    check.append(path, line("x", 1))
    check.append(path, line("x", 0))
    whole = path.read_bytes()
    found = check.stored(path)
    assert set(found) == {("x", 0, "a"), ("x", 1, "a")}
    assert found["x", 0, "a"]["status"] == "finished"
    # a kill may tear the last line anywhere, its last field included
    for cut in range(1, len("x,0,a,ok,,,,,,,,,,,,,1 2")):
        path.write_bytes(whole[:-cut])
        assert check.stored(path)["x", 0, "a"]["status"] == "failed"
        check.append(path, line("x", 2))
        assert check.stored(path)["x", 2, "a"]["selected"] == "1 2"


def test_identity_follows_settings_and_data():
    group, row = ROWS[0]
    same = check.identity(group, row, False, "data")
    assert same == check.identity(group, row, False, "data")
    assert same != check.identity(group, row, False, "other")
    other = next(r for r in group.rows if r.options and r.model == row.model)
    assert same != check.identity(group, other, False, "data")
    light = next((g, r) for g, r in ROWS if r.light)
    assert check.identity(*light, False, "data") != check.identity(*light, True, "data")


def test_a_run_is_resumed(tmp_path, monkeypatch, capsys):
    def run(*more):
        only = ["--only", "fsklr-2/*/l1_logistic", "--jobs", "1", "--out", str(tmp_path)]
        monkeypatch.setattr(sys, "argv", ["paper_check", *only, *more])
        monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
        check.main()
        return capsys.readouterr().out

    assert "1 of 1 folds to compute" in run("--folds", "1")
    assert "1 of 2 folds to compute" in run("--folds", "2")
    stored = (tmp_path / "folds.csv").read_text()
    text = run("--folds", "2")
    assert "to compute" not in text
    assert (tmp_path / "folds.csv").read_text() == stored
    (row,) = (x for x in text.splitlines() if x.startswith("l1_logistic"))
    assert "2/5" in row
    assert (tmp_path / "table.txt").read_text() in text
