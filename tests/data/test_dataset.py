from hashlib import sha256

import numpy as np
import pandas as pd
import pytest

from ardvark.common.validate import InputError
from ardvark.data import Dataset
from tests.support import rng, seed


def small(**changes):
    arguments = {
        "X": np.arange(12.0).reshape(4, 3),
        "y": np.array([0, 1, 0, 1]),
        "feature_names": ["a", "b", "c"],
        "sample_names": ["p", "q", "r", "s"],
        "class_names": ("no", "yes"),
    }
    return Dataset(**(arguments | changes))


def test_holds_what_it_was_given():
    data = small(name="toy", citation="nobody", transform="log")
    assert (data.N, data.D, data.counts) == (4, 3, (2, 2))
    assert data.X.dtype == np.float64
    assert data.X.flags.c_contiguous
    assert data.y.dtype == np.int64
    assert data.feature_names == ("a", "b", "c")
    assert data.sample_names == ("p", "q", "r", "s")
    assert (data.name, data.citation, data.transform) == ("toy", "nobody", "log")
    assert repr(data) == "Dataset('toy', N=4, D=3, 'no': 2, 'yes': 2)"


def test_is_frozen_and_apart_from_the_callers_array():
    X = np.arange(12.0).reshape(4, 3)
    view = X[:]
    view.flags.writeable = False
    for given in (X, view):
        data = small(X=given)
        before = data.X.copy()
        X += 1
        np.testing.assert_array_equal(data.X, before)
        with pytest.raises(ValueError, match="read-only"):
            data.X[0, 0] = 7
    with pytest.raises(ValueError, match="read-only"):
        data.y[0] = 1
    with pytest.raises(AttributeError):
        data.name = "other"


def test_from_arrays_makes_up_names():
    data = Dataset.from_arrays(np.eye(3), ["b", "a", "b"])
    assert data.feature_names == ("x1", "x2", "x3")
    assert data.sample_names == ("0", "1", "2")
    assert data.class_names == ("a", "b")
    assert data.y.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["no", "yes", "no"], ("no", "yes")),
        (np.array(["no", "yes", "no"], dtype=object), ("no", "yes")),
        (pd.Series(["no", "yes", "no"]), ("no", "yes")),
        (pd.Series(["no", "yes", "no"], dtype="category"), ("no", "yes")),
        ([-1, 1, -1], ("-1", "1")),
        ([2.0, 4.0, 2.0], ("2.0", "4.0")),
        ([False, True, False], ("False", "True")),
    ],
)
def test_from_arrays_takes_any_two_labels(labels, classes):
    data = Dataset.from_arrays(np.eye(3), labels)
    assert data.class_names == classes
    assert data.y.tolist() == [0, 1, 0]


def test_from_arrays_takes_a_frame():
    frame = pd.DataFrame({"height": [1, 2, 3], "weight": [4.0, 5.0, 6.0]}, index=["u", "v", "w"])
    labels = pd.Series([0, 1, 1], index=frame.index)
    data = Dataset.from_arrays(frame, labels, class_names=("well", "ill"))
    assert data.feature_names == ("height", "weight")
    assert data.sample_names == ("u", "v", "w")
    assert data.class_names == ("well", "ill")
    np.testing.assert_array_equal(data.X, frame.to_numpy())
    with pytest.raises(InputError, match="different indices"):
        Dataset.from_arrays(frame, labels[::-1])


def test_constant_features_are_kept_and_named():
    data = Dataset.from_arrays([[1, 5, 0], [2, 5, 0]], [0, 1])
    assert data.D == 3
    assert data.constant_features == ("x2", "x3")


def test_fingerprint_is_that_of_the_canonical_arrays():
    data = small()
    expected = sha256(data.X.astype("<f8").tobytes() + data.y.astype(np.int8).tobytes())
    assert data.fingerprint == expected.hexdigest()
    assert small(name="other").fingerprint == data.fingerprint
    assert small(y=[1, 0, 0, 1]).fingerprint != data.fingerprint
    assert small(X=np.arange(12.0).reshape(4, 3, order="F")).fingerprint != data.fingerprint


def test_take_follows_indices_and_masks():
    data = small(name="toy")
    for rows in ([3, 0], np.array([3, 0]), [-1, 0]):
        part = data.take(rows)
        assert part.sample_names == ("s", "p")
        assert part.y.tolist() == [1, 0]
        np.testing.assert_array_equal(part.X, data.X[[3, 0]])
    masked = data.take([True, False, False, True])
    assert masked.sample_names == ("p", "s")
    assert masked.name == "toy"
    assert not masked.X.flags.writeable


def test_take_of_one_class_must_be_asked_for():
    data = small()
    with pytest.raises(InputError, match="two classes"):
        data.take([0, 2])
    fold = data.take([0, 2], both=False)
    assert fold.y.tolist() == [0, 0]
    assert fold.class_names == ("no", "yes")
    assert data.take([1], both=False).y.tolist() == [1]


@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize(("zeros", "ones"), [(2, 2), (2, 30), (37, 20)])
@pytest.mark.parametrize("test", [0.01, 0.3, 0.99])
def test_split_is_stratified_disjoint_and_exhaustive(number, zeros, ones, test):
    y = rng(number).permutation(np.repeat([0, 1], [zeros, ones]))
    data = Dataset.from_arrays(np.arange(2.0 * len(y)).reshape(-1, 2), y)
    train, held = data.split(test=test, random_seed=seed(number))
    rows = [[int(name) for name in part.sample_names] for part in (train, held)]
    assert sorted(rows[0] + rows[1]) == list(range(data.N))
    assert rows == [sorted(rows[0]), sorted(rows[1])]
    for size, got in zip((zeros, ones), held.counts, strict=True):
        assert got == min(max(round(test * size), 1), size - 1)
    again = data.split(test=test, random_seed=seed(number))
    assert [part.sample_names for part in again] == [train.sample_names, held.sample_names]


def test_split_depends_on_the_seed():
    data = Dataset.from_arrays(np.arange(80.0).reshape(40, 2), np.arange(40) % 2)
    held = {data.split(random_seed=seed(k))[1].sample_names for k in range(10)}
    assert len(held) > 5
