import numpy as np
import pytest
from scipy import stats

import ardvark as av
from ardvark.common.validate import InputError
from ardvark.data import Dataset, available, load
from ardvark.data.builtin import BUILTIN, Builtin, digits38, digits38_noisy, fat, waveform
from tests.support import ALARM, seed, z_limit


@pytest.mark.parametrize("name", BUILTIN)
def test_registry_says_what_is_made(name):
    data, entry, row = load(name), BUILTIN[name], available().loc[name]
    assert data.name == name
    assert data.X.shape == entry.shape == (row["n"], row["d"])
    assert data.counts == entry.counts == (row["class_0"], row["class_1"])
    assert data.class_names[1] == entry.positive == row["positive"]
    assert row["present"] == "built-in"
    assert data.citation
    assert load(name).fingerprint == data.fingerprint


def rings():
    """A toy set: a class inside a ring of the other, 12 and 20 points."""
    angle = np.linspace(0.0, 2.0 * np.pi, 32, endpoint=False)
    radius = np.repeat([3.0, 1.0], [20, 12])
    X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle), np.cos(2 * angle)])
    labels = np.repeat(["ring", "core"], [20, 12])
    return Dataset.from_arrays(X, labels, name="rings", citation="made here")


def test_a_toy_data_set_is_one_function_and_one_line(monkeypatch):
    entry = Builtin(rings, (32, 3), (12, 20), "ring", "made here", "a core in a ring")
    monkeypatch.setitem(BUILTIN, "rings", entry)
    test_registry_says_what_is_made("rings")
    assert av.problem("rvm", "rings", kernel="rbf").X.shape == (32, 3)
    with pytest.raises(InputError, match="'rings'"):
        load("ring")


def test_digits38_are_scikit_learns_threes_and_eights():
    data = digits38()
    assert data.X.shape == (357, 64)
    assert data.class_names == ("3", "8")
    assert data.counts == (183, 174)
    assert data.feature_names[:2] == ("pixel_0_0", "pixel_0_1")
    assert data.feature_names[-1] == "pixel_7_7"
    assert len(data.constant_features) == 10
    assert (data.X.min(), data.X.max()) == (0, 1)
    raw = load("digits38", raw=True)
    np.testing.assert_array_equal(raw.X, data.X * 16)
    assert (raw.transform, data.transform) == ("", "/16")


@pytest.mark.statistical
def test_noise_of_digits38_noisy_is_uniform():
    clean, noisy = digits38(), digits38_noisy(random_seed=seed(1))
    noise = noisy.X - clean.X  # (357, 64)
    assert noise.min() >= -1e-15
    assert noise.max() <= 1 + 1e-15
    assert stats.kstest(noise.ravel(), "uniform").pvalue > ALARM
    assert noisy.constant_features == ()
    np.testing.assert_array_equal(noisy.y, clean.y)
    assert digits38_noisy().fingerprint != noisy.fingerprint


def class_z(data, means):
    """Greatest distance of class means from `means` (2, D), in standard errors of `data`."""
    worst = []
    for label, mean in enumerate(means):
        rows = data.X[data.y == label]
        worst.append(np.abs(rows.mean(0) - mean) / (rows.std(0, ddof=1) / np.sqrt(len(rows))))
    return np.max(worst)


MEANS = z_limit(2 * 40)  # of two classes and 40 features


@pytest.mark.statistical
def test_waveform_follows_its_definition():
    k = np.arange(1, 22)
    h1, h2, h3 = (np.clip(6 - np.abs(k - peak), 0, None) for peak in (7, 15, 11))
    tail = np.zeros(19)
    means = np.array([np.r_[(h1 + h2) / 2, tail], np.r_[(h1 + h3) / 2, tail]])
    n = 20_000
    data = waveform(n_per_class=n, random_seed=seed())
    assert class_z(data, means) < MEANS
    swapped = means[::-1]
    assert class_z(data, swapped) > 10 * MEANS
    # the variance of u h + (1 - u) g + e is 1 + (h - g)^2 / 12; its estimate has a relative
    # error of at most sqrt(2 / n), a normal variable's
    for label, other in ((0, h2), (1, h3)):
        variance = data.X[data.y == label].var(0)
        expected = 1 + np.r_[(h1 - other) ** 2 / 12, tail]
        np.testing.assert_allclose(variance, expected, rtol=MEANS * np.sqrt(2 / n))


@pytest.mark.statistical
@pytest.mark.data
def test_waveform_has_the_class_means_of_ucis_file(shared):
    real = load("waveform_uci")
    # so many that only the file's error counts; it and the set of 200 a class are fixed
    drawn = waveform(n_per_class=200_000, random_seed=seed())
    means = np.array([drawn.X[drawn.y == label].mean(0) for label in (0, 1)])
    assert drawn.feature_names == real.feature_names
    assert class_z(real, means) < MEANS
    assert class_z(real, means[::-1]) > 10 * MEANS
    assert class_z(waveform(), np.array([real.X[real.y == j].mean(0) for j in (0, 1)])) < MEANS


@pytest.mark.statistical
def test_fat_names_its_informative_features():
    data = fat(random_seed=seed())
    assert data.X.shape == (60, 2000)
    planted = [name for name in data.feature_names if name.startswith("informative_")]
    assert len(planted) == 10
    columns = [int(name.split("_")[1]) - 1 for name in planted]
    assert [data.feature_names[k] for k in columns] == planted
    gap = data.X[data.y == 1].mean(0) - data.X[data.y == 0].mean(0)
    se = 2 / np.sqrt(60)  # of unit normals, 30 a class
    assert (np.abs(np.abs(gap[columns]) - 1.5) < z_limit(2000) * se).all()
    assert (np.abs(np.delete(gap, columns)) < z_limit(2000) * se).all()
    other = fat(n=20, d=50, random_seed=1)
    assert other.X.shape == (20, 50)
    assert sum("informative" in name for name in other.feature_names) == 10


def test_bad_sizes_are_named():
    with pytest.raises(InputError, match="fat needs n >= 4 and d >= 10, got n=60, d=9"):
        fat(d=9)
    with pytest.raises(InputError, match="n_per_class must be at least 1, got 0"):
        waveform(n_per_class=0)
