"""A messy table: all of it is reported at once, the remedy mends it, and rows are cleaned alike."""

import gzip
import pickle
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ardvark as av
from ardvark.data import Dataset, Table
from ardvark.data.cleaning import Cleaning
from ardvark.data.columns import in_order, profile, tidied
from ardvark.data.faults import TableError
from ardvark.data.missing_codes import in_table
from tests.support import rng

FRAME = pd.DataFrame(
    {
        "age": [31.0, np.nan, 52, 40, 45, 60],
        "site": ["A", "B", "A", "C", "A", "B"],
        "sex": list("fmfmfm"),
        "y": list("uvuvuv"),
    }
)


def report(frame, target="y", **given):
    with pytest.raises(TableError) as found:
        av.table(frame, target, **given)
    return found.value


def answered(error, which=0):
    """Return the settings that the report composes, with an answer to each question."""
    found = error.mended.declared()
    for question in error.questions:
        for name, value in question.answers[min(which, len(question.answers) - 1)][0].items():
            found[name] = [*found.get(name, ()), *value] if isinstance(value, list) else value
    return found


# --- one column -----------------------------------------------------------------------------------


def looked(name, values):
    return profile(tidied(pd.DataFrame({name: pd.Series(values)}))).loc[name]


@pytest.mark.parametrize(
    ("values", "kind", "missing"),
    [
        ([1, 2, 2], "numbers", 0),
        (["1", "2.5", None], "numbers", 1),
        ([True, False, None], "numbers", 1),
        (pd.array([1, None, 3], dtype="Int64"), "numbers", 1),
        (pd.Categorical([1, 2, 1]), "numbers", 0),
        (["red", "blue", "red"], "text", 0),
        (["red", "blue", None], "id", 1),
        (["p1", "p2", "p3"], "id", 0),
        (["1", "2", "?"], "mixed", 0),
        (["2024-01-31", "2024-02-01", None], "dates", 1),
        (["31.01.2024", "1.2.2024", "3.2.24"], "dates", 0),
        (["3 Jan 2024", "4 Feb 2024", "4 Feb 2024"], "dates", 0),
        (pd.to_datetime(["2024-01-31", "2024-02-01"]), "dates", 0),
        (pd.to_timedelta(["1 D", "2 D"]), "dates", 0),
        ([None, np.nan, pd.NA], "empty", 3),
        ([1j, 2j, 1j], "text", 0),
        ([[1], [2], {}], "id", 0),
    ],
)
def test_a_column_is_told_by_its_values(values, kind, missing):
    seen = looked("a", values)
    assert (seen["kind"], seen["missing"]) == (kind, missing)


@pytest.mark.parametrize(
    ("name", "numbered"), [("patient_id", True), ("SampleNo", True), ("acid", False), ("n", False)]
)
def test_a_whole_number_is_an_id_by_its_name(name, numbered):
    assert looked(name, [7, 3, 5])["numbered"] == numbered
    assert not looked(name, [7, 3, 3])["numbered"]
    assert not looked(name, [7.5, 3, 5])["numbered"]


def test_words_are_sorted_with_their_numbers():
    found = in_order(["stage 10", "stage 2", "10", "9", "b"])
    assert found == ["9", "10", "b", "stage 2", "stage 10"]


# --- the report and its remedy --------------------------------------------------------------------


def test_the_call_in_the_error_is_python_that_mends_the_table():
    frame = FRAME.assign(odd=[1, 2, "?", 4, 5, 6], name=[f"p{k}" for k in range(6)], none=None)
    error = report(frame)
    call = str(error).split("This mends all of it:\n\n")[1].strip()
    assert "drop=['none'], encode='onehot', impute='median', row_names='name', na=['?']" in call
    data = eval(call, {"av": av, "frame": frame})
    assert data.N == 6
    assert data.fingerprint == av.table(frame, **error.mended.declared()).fingerprint


# --- cleaning -------------------------------------------------------------------------------------


def coded(**more):
    ages = [31.0, 42.0, 35.0, 60.0, 55.0, 47.0, 38.0, 29.0]
    return pd.DataFrame({"age": ages, "b": range(8), "y": list("uvuvuvuv")}).assign(**more)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([31, -99, 35, 60, 55, 47, -99, 29], {"-99": 2}),
        ([31, -999, 35, 60, 55, 47, 9999, 29], {"-999": 1, "9999": 1}),
        (["31", "999.0", "35", "60", "<5", "47", "38", "29"], {"999": 1}),
        ([7, 7, 7, 7, 7, 7, 7, 99], {"99": 1}),
        ([0, 1, 2, 1, 0, 2, -9, -9], {"-9": 2}),
        ([0, 1, 2, 3, 0, 4, -1, 2], {"-1": 1}),
        ([50.5, 60.5, 55.5, 70.5, 65.5, 999.9, 51.5, 52.5], {"999.9": 1}),
        ([-1, 0, 1, 0, 1, -1, 1, 1], {}),  # three levels
        ([31, 99, 35, 70, 55, 47, 38, 29], {}),  # older than the others, not by as much
        ([310, 999, 350, 6000, 55, 47, 38, 29], {}),
        ([31, -98, 35, 60, 55, 47, 38, 29], {}),  # far outside, and no code
        ([999] * 4 + [1, 2, 3, 4], {}),  # too few others
    ],
)
def test_codes_far_outside_are_reported_and_stay(values, said):
    found = in_table(coded(age=values)[["age", "b"]], Cleaning(target="y"))
    counts = ", ".join(f"{code} {n}" for code, n in said.items())
    assert (f"age ({counts}). It is used as a number." in found) == bool(said)
    assert (f"--na={','.join(said)} --impute median" in found) == bool(said)
    assert bool(found) == bool(said)


def test_a_code_is_a_number_until_it_is_declared(caplog):
    frame = pd.concat(3 * [coded(age=[31, -99, 35, 60, 55, 47, -99, 29])], ignore_index=True)
    data = av.table(frame, "y")
    assert data.X[1, 0] == -99
    assert "age (-99 6)" in caplog.text
    assert any("--na=-99" in remark for remark in data.remarks)
    assert any("--na=-99" in remark for remark in data.split(0.4)[0].remarks)
    caplog.clear()
    data = av.table(frame, "y", na=["-99"], impute="median")  # as the finding says
    assert data.X[1, 0] == 41
    assert "-99" not in caplog.text + " ".join(data.remarks)
    # a table that must be mended for another reason: the call leaves the code to the reader
    with pytest.raises(TableError, match=r"codes +1 column") as raised:
        av.table(frame.assign(site=list("ab" * 12)), "y")
    assert raised.value.mended.na == ()


# --- what is learned ------------------------------------------------------------------------------


def messy(N=60):
    generator = rng(3)
    frame = pd.DataFrame({"a": generator.normal(size=N), "b": generator.normal(size=N)})
    frame["site"] = generator.choice(["A", "B", "C"], N)
    frame.loc[generator.choice(N, 12, replace=False), "a"] = np.nan
    frame["y"] = np.resize(["u", "v"], N)
    return frame


def test_a_split_learns_on_the_training_rows_only():
    frame = messy()
    data = av.table(frame, "y", encode="onehot", impute="median")
    train, test = data.split(0.3, random_seed=1)
    rows = list(map(int, train.sample_names))
    fill = frame["a"].iloc[rows].median()
    assert fill != frame["a"].median()
    for part in (train, test):
        assert isinstance(part, Table)
        own = frame.iloc[list(map(int, part.sample_names))]
        np.testing.assert_array_equal(part.X[:, 0], own["a"].fillna(fill))
        np.testing.assert_array_equal(part.y, own["y"] == "v")
    assert train.encoder.levels_ == {"site": ["A", "B", "C"]}
    whole = av.table(frame.iloc[rows], "y", encode="onehot", impute="median")
    np.testing.assert_array_equal(train.X, whole.X)
    assert test.feature_names == train.feature_names


@pytest.mark.parametrize("encode", ["onehot", "ordinal"])
def test_a_level_that_no_training_row_had_is_an_average_row(encode, caplog):
    """So that it adds nothing to a linear eta: its standardised columns are zero."""
    data = av.table(messy().dropna(), "y", encode=encode)
    new = pd.DataFrame({"a": [0.0], "b": [0.0], "site": ["Z"]})
    X = data.clean(new)
    own = [k for k, name in enumerate(data.feature_names) if name.startswith("site")]
    standardized = av.problem("rfvm", data).standardized(X.to_numpy())
    np.testing.assert_allclose(standardized[0, own], 0.0, atol=1e-12)
    assert "column 'site' has levels that no training row has (Z), in 1 row(s)" in caplog.text


def test_a_rare_level_may_be_in_the_held_out_rows_only(caplog):
    frame = messy().dropna().reset_index(drop=True)
    frame.loc[0, "site"] = "Z"
    data = av.table(frame, "y", encode="onehot")
    seed = next(s for s in range(50) if "0" in data.split(0.3, s)[1].sample_names)
    train, test = data.split(0.3, seed)
    assert "site=Z" not in train.feature_names
    assert train.feature_names == test.feature_names
    assert "no training row has (Z)" in caplog.text


def test_a_column_without_a_value_in_the_training_rows_is_refused():
    frame = messy().assign(c=np.nan)
    frame.loc[0, "c"] = 1.0
    data = av.table(frame, "y", encode="onehot", impute="mean")
    plain = Dataset(data.X, data.y, data.feature_names, data.sample_names, data.class_names)
    seed = next(s for s in range(50) if "0" in plain.split(0.3, s)[1].sample_names)
    with pytest.raises(av.InputError, match="column 'c' has no value in the 42 rows"):
        data.split(0.3, seed)


def test_new_rows_are_cleaned_as_the_training_rows():
    frame = messy().assign(patient=[f"p{k}" for k in range(60)])
    given = {"encode": "onehot", "impute": "median", "row_names": "patient"}
    data = av.table(frame, "y", **given)
    new = data.clean(frame.sample(frac=1.0, random_state=0)[["site", "patient", "b", "a"]])
    assert tuple(new.columns) == data.feature_names
    np.testing.assert_array_equal(new.loc[list(data.sample_names)], data.X)
    pd.testing.assert_frame_equal(pickle.loads(pickle.dumps(data)).clean(frame), data.clean(frame))


def test_a_table_is_a_data_set():
    data = av.table(messy(), "y", encode="onehot", impute="median")
    fold = av.problem("rfvm", data).take(range(20))
    assert fold.data.N == 20
    np.testing.assert_array_equal(fold.data.X, data.X[:20])
    assert repr(data) == "Table('data', N=60, D=5, 'u': 30, 'v': 30)"


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "package"), [("t.xlsx", "openpyxl"), ("t.parquet", "pyarrow")])
def test_a_package_that_is_missing_is_named(name, package, tmp_path, monkeypatch):
    write = FRAME.to_excel if name.endswith("xlsx") else FRAME.to_parquet
    write(tmp_path / name)
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setitem(sys.modules, "fastparquet", None)
    message = "a package is missing: pip install 'ardvark.tables.'"
    with pytest.raises(av.InputError, match=message):
        av.table(tmp_path / name, "y")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv.gz", gzip.compress(b"a,y\n1,2\n", mtime=0)[:-9]),
        ("t.xlsx", b"no"),
        ("t.parquet", b"no"),
    ],
)
def test_a_broken_file_is_one_sentence(name, content, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(av.InputError, match=r"cannot be (decompressed|read)"):
        av.table(tmp_path / name, "y")


# --- any table ------------------------------------------------------------------------------------

cells = st.one_of(
    st.sampled_from(["", "a", "B", "a,b", 'q"', "?", "NA", "2024-01-03", "True", "inf", "1e9"]),
    st.integers(-3, 3),
    st.floats(-5, 5),
    st.sampled_from([None, np.nan, np.inf, pd.NaT, pd.Timestamp("2024-01-03"), 1j]),
)


@st.composite
def frames(draw):
    N = draw(st.integers(2, 12))
    kinds = [cells, st.sampled_from("abc"), st.integers(0, 5), st.floats(-5, 5)]
    found = {}
    for k in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(kinds))
        found[f"c{k}, {k}"] = draw(st.lists(kind, min_size=N, max_size=N))
    labels = st.sampled_from(["u", "v", "v", "w", None])
    return pd.DataFrame(found | {"y": draw(st.lists(labels, min_size=N, max_size=N))})


@settings(max_examples=30, derandomize=True, deadline=None, database=None)
@given(frames())
def test_the_remedies_of_any_table_mend_it(frame):
    """A second report may follow the first, since an answer leaves rows and columns out."""
    given = {"target": "y"}
    for _ in range(6):
        try:
            data = av.table(frame, **given)
        except TableError as error:
            if error.mended is None:
                return
            given = answered(error)
        except av.InputError:  # too little is left
            return
    assert np.isfinite(data.X).all()
    assert min(data.counts) >= 1
