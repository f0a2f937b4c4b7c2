"""Any frame is the same data set from each kind of file, or a clear error, in any order."""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ardvark as av
from tests.support import rng

WRITERS = {
    "csv": lambda frame, path: frame.to_csv(path, index=False),
    "tsv": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    "xlsx": lambda frame, path: frame.to_excel(path, index=False),
    "parquet": lambda frame, path: frame.to_parquet(path, index=False),
}
QUIET = settings(max_examples=20, derandomize=True, deadline=None, database=None)
# blanks at the ends of cells and lines in them are no part of what a table means
words = st.text("abcXYZ09 ,;.\"'|-", min_size=1, max_size=5).map(str.strip).filter(bool)
kinds = [
    st.integers(-(10**6), 10**6),
    st.floats(-1e6, 1e6),
    st.floats(0.001, 10).map(lambda x: round(x, 3)),
    st.one_of(st.none(), st.floats(-5, 5)),
    st.sampled_from(["a", "b", "None", "1", "2.5", "NA"]),
    st.sampled_from(["1,5", "2,25", "1.234", "900"]),
    st.booleans(),
    words,
]


@st.composite
def frames(draw):
    N = draw(st.integers(4, 10))
    names = draw(st.lists(words, min_size=1, max_size=4, unique_by=str.casefold))
    found = {
        name: draw(st.lists(draw(st.sampled_from(kinds)), min_size=N, max_size=N))
        for name in names
        if name.casefold() != "y"
    }
    found["y"] = draw(st.permutations(["u"] * 2 + ["v"] * (N - 2)))
    return pd.DataFrame(found)


def outcome(source):
    """Return the data set, or the headings of what stands against it."""
    asked = {"encode": "onehot", "impute": "median", "target": "y"}
    try:
        return av.table(source, **asked)
    except av.InputError as error:
        return error


@QUIET
@given(frames())
def test_a_frame_is_the_same_from_a_file_or_refused(frame):
    expected = outcome(frame)
    with tempfile.TemporaryDirectory() as folder:
        for kind, write in WRITERS.items():
            path = Path(folder) / f"own.{kind}"
            write(frame, path)
            found = outcome(path)
            if isinstance(found, av.InputError) or isinstance(expected, av.InputError):
                continue  # a question in one of them: nothing was guessed
            assert found.feature_names == expected.feature_names, kind
            assert found.class_names == expected.class_names
            np.testing.assert_allclose(found.X, expected.X, rtol=1e-12, err_msg=kind)
            np.testing.assert_array_equal(found.y, expected.y)


def plain(N=40):
    draws = rng(0)
    frame = pd.DataFrame(draws.normal(size=(N, 4)), columns=list("abcd"))
    frame["site"] = draws.choice(["north", "south", "west"], N)
    frame.loc[draws.choice(N, 5, replace=False), "b"] = np.nan
    return frame.assign(y=np.where(frame["a"] + draws.normal(size=N) > 0, "u", "v"))


@pytest.mark.parametrize("kind", WRITERS)
def test_a_clear_table_is_read_from_each_kind_of_file(kind, tmp_path):
    WRITERS[kind](plain(), tmp_path / f"own.{kind}")
    expected, found = outcome(plain()), outcome(tmp_path / f"own.{kind}")
    assert found.feature_names == expected.feature_names
    np.testing.assert_allclose(found.X, expected.X, rtol=1e-12)


def predictions(frame, new):
    data = av.table(frame, "y", encode="onehot", impute="median")
    problem = av.problem("pfcvm", data)
    fit = av.fit(problem, "pfcvm_em", random_seed=0, progressbar=False)
    return av.predict(problem, fit, data.clean(new)).mean(("chain", "draw"))


def test_predictions_do_not_depend_on_the_order_of_rows_and_columns():
    """By a method without draws; its steps add numbers in another order."""
    frame, new = plain(), plain(60).tail(20)
    known = predictions(frame, new)
    draws = rng(1)
    for _ in range(3):
        rows, columns = draws.permutation(len(frame)), draws.permutation(frame.shape[1])
        mixed = frame.iloc[rows, columns].set_axis(range(len(frame)), axis=0)
        found = predictions(mixed, new.iloc[::-1, draws.permutation(new.shape[1])])
        np.testing.assert_allclose(found.values[::-1], known.values, atol=1e-6)
    for k in range(len(new)):
        np.testing.assert_allclose(predictions(frame, new.iloc[[k]]), known[[k]], atol=1e-9)
        if k > 1:
            break
