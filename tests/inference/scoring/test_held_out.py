"""Measures of predictions: by hand, against scikit-learn, and their standard errors."""

import itertools

import numpy as np
import pytest
from sklearn import metrics
from sklearn.calibration import calibration_curve

from ardvark.inference.scoring import held_out
from ardvark.inference.scoring.held_out import frame, measures, weighted, wrong_and_sure
from tests.support import rng, seed, z_limit


def test_every_small_case_against_scikit_learn():
    """All labels and decisions of three samples, with tied scores."""
    p = np.array([0.2, 0.7, 0.7])
    for bits in itertools.product((0, 1), repeat=6):
        y, decided = np.array(bits[:3]), np.array(bits[3:])
        found = {k: v[0] for k, v in weighted(np.ones((1, 3)), y, decided, p, p).items()}
        assert found["accuracy"] == metrics.accuracy_score(y, decided)
        assert found["brier"] == pytest.approx(metrics.brier_score_loss(y, p, pos_label=1))
        if y.any() or decided.any():
            assert found["f1"] == pytest.approx(metrics.f1_score(y, decided, zero_division=0.0))
        else:
            assert np.isnan(found["f1"])
        if len(set(bits)) == 1:  # one class, and nothing else decided
            assert np.isnan(found["kappa"])
        else:
            assert found["kappa"] == pytest.approx(metrics.cohen_kappa_score(y, decided))
        if 0 < y.sum() < 3:
            assert found["auc"] == pytest.approx(metrics.roc_auc_score(y, p))
        else:
            assert np.isnan(found["auc"])


@pytest.mark.parametrize("M", [7, 60, 400])
def test_resampled_rows_against_scikit_learn(M):
    """A row of counts W is the sample with each row repeated so often."""
    random = rng(M)
    p = np.round(random.uniform(size=M), 2)  # ties, and values on the edges of bins
    y = (random.uniform(size=M) < p).astype(int)
    W = random.multinomial(M, np.full(M, 1 / M), size=3)
    found = weighted(W, y, p > 0.5, p, p)
    for r, counts in enumerate(W):
        again = np.repeat(np.arange(M), counts)
        t, q = y[again], p[again]
        if len(set(t)) < 2:
            continue
        assert found["auc"][r] == pytest.approx(metrics.roc_auc_score(t, q))
        assert found["kappa"][r] == pytest.approx(metrics.cohen_kappa_score(t, q > 0.5))
        assert found["f1"][r] == pytest.approx(metrics.f1_score(t, q > 0.5))
        assert found["brier"][r] == pytest.approx(metrics.brier_score_loss(t, q))
        assert found["log_score"][r] == pytest.approx(-metrics.log_loss(t, np.c_[1 - q, q]))
        share, mean = calibration_curve(t, q, n_bins=10)
        edges = np.linspace(0, 1, 11)[1:-1]
        held = np.bincount(np.searchsorted(edges, q), minlength=10)
        assert found["ece"][r] == pytest.approx(held[held > 0] @ np.abs(share - mean) / M)


@pytest.mark.statistical
def test_standard_errors_are_those_of_the_mean():
    """Of accuracy, Brier and log score the bootstrap's sd is known: sd / sqrt(M), for given rows.

    The sd of R resamples has relative error sqrt(1 / (2 R)) for a normal mean; the limit is five
    and a half of these (false alarm below 1e-6 in three comparisons).
    """
    random = rng(1)
    p = random.uniform(0.05, 0.95, size=200)
    y = (random.uniform(size=200) < p).astype(int)
    found = measures(y, p > 0.5, p=p, seed=int(random.integers(2**31)))
    true = np.where(y == 1, p, 1 - p)
    rows = {"accuracy": true > 0.5, "brier": (p - y) ** 2, "log_score": np.log(true)}
    for name, values in rows.items():
        expected = values.std() / np.sqrt(200)
        error = np.sqrt(0.5 / held_out.RESAMPLES)
        assert abs(found[f"{name}_se"] / expected - 1) < 5.5 * error


@pytest.mark.statistical
def test_a_calibrated_p_is_at_its_floor_and_an_overconfident_one_is_not():
    """The floor is a 95 % quantile: of 30 calibrated samples, P(more than 10 beyond) < 1e-6.

    The overconfident one says 0.99 and 0.01 where 0.7 and 0.3 are right: an ECE near 0.29, whose
    standard error with 300 samples is 0.03, against a floor of 0.02.
    """
    random, beyond = rng(3), 0
    for _ in range(30):
        p = random.uniform(size=100)
        y = (random.uniform(size=100) < p).astype(int)
        found = measures(y, p > 0.5, p=p, seed=int(random.integers(2**31)))
        beyond += found["ece"] > found["ece_floor"]
    assert beyond <= 10
    right = np.where(random.uniform(size=300) < 0.5, 0.7, 0.3)
    y = (random.uniform(size=300) < right).astype(int)
    said = np.where(right > 0.5, 0.99, 0.01)
    found = measures(y, said > 0.5, p=said)
    assert found["ece"] > found["ece_floor"] + 0.05


@pytest.mark.statistical
def test_the_floor_of_the_calibration_error_is_its_known_quantile():
    """P = 1/2 in all M rows: the error is |N(0, 1)| / (2 M^1/2), whose 95 % quantile is 1.96.

    All labels are 1, so the error itself is 1/2. A quantile of 500 numbers has an sd of 0.083 where
    their density is 0.117, and errors are multiples of 2 / M^1/2 = 0.067.
    """
    M, runs = 900, 6
    y, p = np.ones(M, dtype=int), np.full(M, 0.5)
    floors = [measures(y, y, p=p, seed=seed(k))["ece_floor"] for k in range(runs)]
    floor = 2.0 * np.sqrt(M) * np.mean(floors)
    assert abs(floor - 1.96) < z_limit() * 0.083 / np.sqrt(runs) + 0.067


def test_measures_as_a_table():
    found = {"a": {"auc": 1.0, "auc_se": 0.1, "brier": 0.25}, "b": {"ece": 0.3, "ece_floor": 0.2}}
    table = frame(found, ["brier", "auc", "ece"])
    assert table.fillna(-1.0).to_numpy().tolist() == [
        ["a", "brier", 0.25, -1.0, -1.0],
        ["a", "auc", 1.0, 0.1, -1.0],
        ["b", "ece", 0.3, -1.0, 0.2],
    ]
    assert list(table) == ["fit", "measure", "value", "se", "floor"]


def test_rows_that_are_all_right_have_no_standard_error():
    y = np.repeat([0, 1], 20)
    found = measures(y, y, p=np.where(y == 1, 0.9, 0.2))
    assert (found["f1"], found["kappa"], found["auc"]) == (1.0, 1.0, 1.0)
    for name in ("accuracy", "f1", "kappa", "auc"):
        assert np.isnan(found[f"{name}_se"])
    assert found["brier_se"] > 0


def test_a_score_alone_has_no_probability():
    found = measures(np.array([0, 1, 1]), np.array([0, 1, 0]), np.array([-1.0, 2.0, -0.5]))
    assert set(found) == {"accuracy", "f1", "kappa", "auc"} | {
        "f1_se",
        "kappa_se",
        "auc_se",
        "accuracy_se",
    }


def test_wrong_and_sure_by_hand():
    """Of 20 draws, whose 5 % and 95 % quantiles leave out one at either end."""
    low, high = np.full(20, 0.2), np.full(20, 0.8)
    one, two = low.copy(), low.copy()
    one[0], two[:2] = 0.9, 0.9
    draws = np.stack([low, high, one, two, high], axis=-1)  # (20, rows)
    y = np.array([1, 0, 1, 1, 1])  # the last is right
    assert wrong_and_sure(y, draws) == {"wrong": 4.0, "wrong_sure": 3.0}
    parts = draws.reshape(4, 5, 5)  # chains
    assert wrong_and_sure(y, parts) == wrong_and_sure(y, draws)
    assert wrong_and_sure(1 - y, draws) == {"wrong": 1.0, "wrong_sure": 1.0}


def test_a_single_state_is_sure_of_all_but_ties():
    """At 1/2 the class is 0, as in `classes`, and nobody is sure of it."""
    p = np.array([[0.5, 0.5, 0.49, 0.51]])
    assert wrong_and_sure(np.array([0, 1, 1, 0]), p) == {"wrong": 3.0, "wrong_sure": 2.0}
    either = np.array([[0.0], [1.0]])  # the mean is 1/2, the interval 0.05 to 0.95
    assert wrong_and_sure(np.array([1]), either) == {"wrong": 1.0, "wrong_sure": 0.0}


def test_resamples_come_in_chunks(monkeypatch):
    y = np.array([0, 1, 1, 0, 1])
    p = np.array([0.1, 0.8, 0.4, 0.7, 0.6])
    whole = measures(y, p > 0.5, p=p)
    monkeypatch.setattr(held_out, "_CHUNK", 20)
    assert measures(y, p > 0.5, p=p) == pytest.approx(whole)
