"""Tables that can be read in two ways: an error that names the option, and never a guess."""

import gzip

import numpy as np
import pandas as pd
import pytest

import ardvark as av
from ardvark.data.faults import TableError
from ardvark.data.numerals import Marks, decided, kinds, number
from ardvark.data.reading import is_file, stem
from tests.support import rng

N = 12
LABELS = ["ill", "well"] * (N // 2)
X1 = [0.25, 1.5, -2.75, 3.125, 4.5, -5.25, 6.0, 7.5, -8.25, 9.75, 10.5, 11.0]


def joined(*columns, names, sep=","):
    rows = [sep.join(map(str, row)) for row in zip(*columns, strict=True)]
    return "\n".join([sep.join(names), *rows]) + "\n"


@pytest.fixture
def file(tmp_path):
    def write(text, name="own.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def refused(source, *words, target="status", **given):
    with pytest.raises(av.InputError) as found:
        av.table(source, target, **given)
    text = " ".join(str(found.value).split())
    for word in words:
        assert word in text
    return found.value


# --- numbers ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "marks", "value"),
    [
        ("1.5", Marks(), 1.5),
        ("\u22121.5", Marks(), -1.5),  # a minus sign, as it is printed
        ("\u20131.5", Marks(), -1.5),
        ("+2", Marks(), 2.0),
        ("1e-3", Marks(), 0.001),
        ("12,5", Marks(","), 12.5),
        ("1.234,5", Marks(",", grouped=True), 1234.5),
        ("1,234,567", Marks(grouped=True), 1234567.0),
        ("1 234,5", Marks(","), 1234.5),
        ("1'234.5", Marks(), 1234.5),
        ("12.5%", Marks(percent=True), 12.5),
        ("inf", Marks(), np.inf),
        ("True", Marks(boolean=True), 1.0),
    ],
)
def test_a_word_is_a_number_by_the_marks_of_its_column(word, marks, value):
    assert number(word, marks) == value


@pytest.mark.parametrize(
    ("word", "marks"),
    [
        ("1,234", Marks()),  # nothing grouped thousands in training
        ("1.5", Marks(",", grouped=True)),
        ("12,34", Marks(grouped=True)),
        ("12.5", Marks(percent=True)),
        ("True", Marks()),
        ("<5", Marks()),
        ("5 mg", Marks()),
        (".", Marks()),
        ("-", Marks()),
        ("1.2.3", Marks()),
        ("1", Marks(text=True)),
    ],
)
def test_what_is_written_otherwise_is_no_number(word, marks):
    assert np.isnan(number(word, marks))


@pytest.mark.parametrize(
    ("words", "evidence", "sep", "found"),
    [
        (["0.5", "1.234"], (), ";", Marks()),
        (["0,5", "12"], (), ";", Marks(",")),
        (["1.234,5", "900"], (), ";", Marks(",", grouped=True)),
        (["1,234.5", "900"], (), ",", Marks(grouped=True)),
        (["5.994", "1.234"], (), ",", Marks()),  # in such a file no comma is decimal
        (["5.994", "1.234"], ["point"], ";", Marks()),
        (["5.994", "1.234"], (), ";", None),
        (["5.994", "900"], (), ",", None),  # 900 beside three decimals
        (["5.994", "1.234"], ["comma"], ";", None),
        (["1,234", "900"], ["point"], ",", None),
        (["0.5", "0,5"], (), ";", None),
        (["0.5", "1,234"], (), ";", None),
        (["3", "4"], ["comma"], ";", Marks(",")),
    ],
)
def test_marks_are_decided_by_the_column_and_the_file(words, evidence, sep, found):
    assert decided(words, kinds(words), evidence, sep, None) == found


def test_a_point_may_group_thousands(file):
    cells = [f"{k}.{k}00" for k in range(1, 10)] + ["700", "800", "900"]
    decimals = [f"{k},5" for k in range(N)]
    path = file(joined(cells, decimals, LABELS, names=["cells", "dose", "status"], sep=";"))
    error = refused(path, "cells (1.100 is 1.1 or 1100)", "decimal='.'", "decimal=','")
    assert error.mended.declared() == {"target": "status"}  # and no column is dropped
    data = av.table(path, "status", decimal=",")
    assert data.X[:2].tolist() == [[1100.0, 0.5], [2200.0, 1.5]]


def test_other_columns_tell_what_a_mark_is(file):
    thousands = [f"{k}.994" for k in range(1, N + 1)]
    names = ["cells", "dose", "status"]
    path = file(joined(thousands, LABELS, names=["cells", "status"], sep=";"))
    refused(path, "cells (1.994 is 1.994 or 1994)")
    path = file(joined(thousands, [abs(x) + 0.5 for x in X1], LABELS, names=names, sep=";"))
    assert av.table(path, "status").X[0, 0] == 1.994
    path = file(joined(thousands, [f"{k},5" for k in range(N)], LABELS, names=names, sep=";"))
    refused(path, "cells (1.994 is 1.994 or 1994)")


def test_numbers_in_print_are_read(file):
    minus = [str(x).replace("-", "\u2212") for x in X1]
    path = file(joined(minus, LABELS, names=["shift", "status"]))
    np.testing.assert_array_equal(av.table(path, "status").X[:, 0], X1)


@pytest.mark.parametrize("write", ["{:.1f}%", "{:,.2f}"])
def test_a_measurement_that_differs_in_each_row_names_none(write):
    values = np.linspace(10.0, 9000.0, N)
    data = av.table(
        pd.DataFrame({"a": [write.format(v) for v in values], "status": LABELS}), "status"
    )
    np.testing.assert_allclose(data.X[:, 0], values, atol=0.051)


def test_codes_are_told_in_frames_and_arrays_too():
    values = [*X1[:-1], -999.0]
    frame = pd.DataFrame({"a": values, "b": X1, "status": LABELS})
    for data in (
        av.problem("rfvm", frame, "status").data,
        av.problem("rfvm", frame[["a", "b"]].to_numpy(), LABELS).data,
    ):
        assert "-999" in " ".join(data.remarks)


# --- what a column is ---------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["None", "NA", "null"])
def test_a_word_for_nothing_may_be_a_level(file, word):
    smoking = [word, "former", "current"] * 4
    path = file(joined(X1, smoking, LABELS, names=["a", "smoking", "status"]))
    error = refused(path, f"'{word}' may be a level: smoking ({word} 4)")
    assert error.mended.na == ()
    data = av.table(path, "status", measured=[word], encode="onehot")
    assert f"smoking={word}" in data.feature_names
    assert data.clean(path).to_numpy().tolist() == data.X.tolist()
    data = av.table(path, "status", na=[word], impute="median", encode="onehot")
    assert data.feature_names == ("a", "smoking=former")
    among_numbers = file(joined([word, *X1[1:]], LABELS, names=["a", "status"]))
    assert np.isnan(av.table(among_numbers, "status", impute="mean").raw["a"].iloc[0])


def test_a_column_may_be_named_by_a_number():
    frame = pd.DataFrame({0: X1, 1: X1[::-1], 2: LABELS})
    assert av.table(frame, 2).feature_names == ("0", "1")
    assert av.problem("rfvm", frame, 2).feature_names == ("0", "1")
    columns = pd.MultiIndex.from_product([["a"], ["x", "y"]])
    levels = pd.DataFrame([[1.0, "u"], [2.0, "v"]], columns=columns)
    refused(levels, "2 levels of column names")
    refused(frame.set_axis([None, "b", "status"], axis=1), "column 1 of the table has no name")


# --- the shape of a file --------------------------------------------------------------------------


def test_a_comma_without_quotes_shifts_the_row(file):
    ages = [60, 41] * 6
    path = file(joined(ages, [f"{abs(x)}".replace(".", ",") for x in X1], LABELS,
                       names=["age", "dose", "status"]))  # fmt: skip
    refused(path, "each row has 4 fields, and the header has 3", "decimal comma")
    names = [f"p{k}" for k in range(N)]
    path = file(joined(names, X1, LABELS, names=["a", "status"]).replace("a,", "a,", 1))
    assert av.table(path, "status").sample_names == tuple(names)  # as R writes tables
    refused(file("a,b,status\n1,2,u\n3,v\n"), "rows have 2 fields, but the header has 3")


def test_a_header_of_numbers_may_be_a_row(file):
    path = file(joined(X1, X1[::-1], LABELS, names=["0.75", "1.25", "ill"]))
    refused(path, "may be a header or a row", "header=False", "header=True", target="ill")
    data = av.table(path, "x3", header=False)
    assert (data.N, data.feature_names) == (N + 1, ("x1", "x2"))
    assert av.table(path, "ill", header=True).N == N
    positions = ["400.5", "401.0", "401.5", "status"]
    data = av.table(file(joined(X1, X1, X1, LABELS, names=positions)), "status")
    assert data.feature_names == ("400.5", "401.0", "401.5")  # rising, and outside of the values
    columns = pd.DataFrame(np.outer(X1, [1, 2, 3])).assign(status=LABELS)
    assert av.table(file(columns.to_csv(index=False)), "status").D == 3  # as pandas numbers them


def test_the_rows_decide_what_separates(file):
    values = range(N), [f"{k}.5" for k in range(N)], LABELS
    text = joined(*values, names=["a, b", "c, d", "e"], sep=";")
    assert av.table(file(text), "e").feature_names == ("a, b", "c, d")


def expression():
    values = rng(0).normal(size=(3, N)).round(3)
    names = [f"s{k}" for k in range(N)]
    return pd.DataFrame(values, index=["g1", "g2", "g3"], columns=names)


def test_features_in_rows_and_labels_apart(file):
    matrix = expression()
    path = file(matrix.to_csv(index_label="gene", sep="\t"), "genes.tsv")
    refused(path, "transpose=True", "labels='clinical.tsv', on='sample'")
    clinical = pd.DataFrame({"sample": matrix.columns[::-1], "age": range(40, 40 + N)})
    clinical["status"] = LABELS
    other = file(clinical.to_csv(index=False, sep="\t"), "clinical.tsv")
    data = av.table(path, "status", transpose=True, labels=other, on="sample")
    assert data.feature_names == ("age", "g1", "g2", "g3")
    assert data.sample_names == tuple(matrix.columns)
    np.testing.assert_array_equal(data.X[:, 1:], matrix.to_numpy().T)
    np.testing.assert_array_equal(data.X[:, 0], range(40 + N - 1, 39, -1))
    by_hand = av.table(matrix.T.assign(age=data.X[:, 0], status=LABELS[::-1]), "status")
    assert by_hand.class_names == data.class_names
    np.testing.assert_array_equal(by_hand.y, data.y)
    refused(path, "no sample of the table", transpose=True, labels=other, on="age")
    refused(path, "labels needs on", transpose=True, labels=other)
    new = data.clean(path, labels=other, on="sample")  # transposed, as the training table was
    np.testing.assert_array_equal(new, data.X)
    rows = pd.DataFrame(data.X, columns=data.feature_names).assign(sample=data.sample_names)
    plain = file(rows.to_csv(index=False), "new.csv")
    with pytest.raises(av.InputError, match="--no-transpose"):
        data.clean(plain)
    new = data.clean(plain, transpose=False)  # its rows have the names that the labels' file had
    np.testing.assert_array_equal(new, data.X)
    assert tuple(new.index) == data.sample_names


def test_a_workbook_of_several_sheets_is_asked_about(tmp_path):
    path = tmp_path / "book.xlsx"
    frame = pd.DataFrame({"a": X1, "status": LABELS})
    with pd.ExcelWriter(path) as book:
        pd.DataFrame({"made": ["today"]}).to_excel(book, sheet_name="about", index=False)
        frame.to_excel(book, sheet_name="values", index=False)
        pd.DataFrame().to_excel(book, sheet_name="empty", index=False)
    refused(path, "2 sheets: about, values", "sheet='values'")
    assert av.table(path, "status", sheet="Values").N == N


def test_a_name_that_is_no_text_is_refused(tmp_path):
    refused(f"{tmp_path}/\udcfc.csv", "is not UTF-8 text")


def test_files_are_known_by_their_names(file):
    assert is_file("values.txt.gz")
    assert is_file("values.tsv.bz2")
    assert not is_file("digits38")
    assert stem("a/study.2024.csv") == "study.2024"
    text = joined(X1, LABELS, names=["a", "status"])
    assert av.table(file(gzip.compress(text.encode()), "v.txt.gz"), "status").name == "v"


# --- what is no measurement, and predicts -------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [["02139", "10001", "00501"], ["8E2", "1E5", "3e1"], [str(10**17 * k) for k in (1, 2, 3)]],
)
def test_numbers_written_as_codes_are_words(file, words):
    path = file(joined(X1, words * (N // 3), LABELS, names=["a", "code", "status"]))
    refused(path, "code (", "Remedy: make each level a column", "decimal='.'")
    levels = av.table(path, "status", encode="onehot")
    assert set(levels.feature_names) == {"a", *(f"code={word}" for word in words)}
    assert levels.clean(path).to_numpy().tolist() == levels.X.tolist()
    numbers = av.table(path, "status", decimal=".", measured=["code"])
    np.testing.assert_array_equal(numbers.X[:3, 1], [float(word) for word in words])


def test_a_gene_that_became_a_number_is_asked_about():
    frame = pd.DataFrame({"TP53": X1, "ABL1": X1, "44256": X1, "KIT": X1, "2.31E+13": X1}).assign(
        status=LABELS
    )
    refused(frame, "2 columns with a date or a number for a name: 44256, 2.31E+13")
    numbered = frame.set_axis([*map(str, range(44250, 44255)), "status"], axis=1)
    assert av.table(numbered, "status").D == 5  # all are numbers: so are they called


def said(frame, caplog, **given):
    caplog.clear()
    data = av.table(frame, "status", encode="onehot", impute="median", **given)
    return data, " ".join(caplog.text.split())


def test_what_only_the_outcome_can_have_made_is_told(caplog):
    """A column that says what the labels say, or number the rows, stays, and is named."""
    values = rng(0).normal(size=(24, 2))
    frame = pd.DataFrame(values, columns=["a", "dose"])
    frame["status"] = ["ill", "well"] * 10 + ["well"] * 4
    _, text = said(frame, caplog)
    assert text == ""
    ill = frame["status"] == "ill"
    telling = frame.assign(alive=np.where(ill, "no", "yes"), code=np.where(ill, 1, 0))
    data, text = said(telling.assign(dose=frame["dose"].where(ill)), caplog)
    assert "code (its values), alive (its words), dose (where it is missing)" in text
    assert data.D == 4
    for row, other in ((0, 1), (23, 0)):  # one row that breaks the rule
        broken = telling.copy()
        broken.loc[row, ["alive", "code"]] = broken.loc[other, ["alive", "code"]]
        assert "labels follow" not in said(broken, caplog)[1]
    data, text = said(frame.assign(old=range(3, 27)), caplog)
    assert "1 column that may number the rows: old" in text
    assert data.D == 3
    assert "number the rows" not in said(frame.assign(old=[*range(23), 25]), caplog)[1]
    assert said(frame.assign(old=range(3, 27)), caplog, measured=["old"])[1] == ""


# --- new rows -------------------------------------------------------------------------------------


def test_a_row_is_read_without_the_others(file):
    cells = [f"{k}.{k}00,5" for k in range(1, 10)] + ["700,5", "80,25", "9"]
    yes = ["TRUE", "FALSE", "TRUE"] * 4
    site = ["1", "A", "B"] * 4
    names = ["cells", "yes", "site", "status"]
    path = file(joined(cells, yes, site, LABELS, names=names, sep=";"))
    data = av.table(path, "status", encode="onehot")
    np.testing.assert_array_equal(data.clean(path), data.X)
    for k in range(N):
        one = joined(*([column[k]] for column in (cells, yes, site, LABELS)), names=names, sep=";")
        np.testing.assert_array_equal(data.clean(file(one, "one.csv")), data.X[[k]])
    with pytest.raises(av.InputError, match=r"'cells' must contain numbers.*'1.5'"):
        data.clean(file("cells;yes;site\n1.5;TRUE;A\n", "one.csv"))
    with pytest.raises(av.InputError, match="'yes' must contain numbers"):
        data.clean(file("cells;yes;site\n1,5;2;A\n", "one.csv"))


def test_new_rows_may_repeat_a_patient_and_say_what_was_filled(caplog):
    frame = pd.DataFrame({"patient": [f"P{k}" for k in range(N)], "a": X1, "status": LABELS})
    frame.loc[2, "a"] = np.nan
    data = av.table(frame, "status", row_names="patient", impute="median")
    new = data.clean(frame.iloc[[0, 0, 2]])
    assert new.index.tolist() == ["P0", "P0", "P2"]
    assert new.attrs["filled"] == ["", "", "a"]
    assert "1 missing values of new rows were filled by the median" in caplog.text
    some = data.clean(frame[["patient"]].assign(a=[*X1]), names=["a"])
    np.testing.assert_array_equal(some["a"], X1)


# --- groups and references ------------------------------------------------------------------------


def visits(patients=20):
    ids = np.repeat([f"P{k:02d}" for k in range(patients)], 3)
    draws = rng(1)
    label = np.repeat(draws.permutation(["ill", "well"] * (patients // 2)), 3)
    site = draws.choice(["north", "south", "west"], len(ids))
    values = draws.normal(size=(len(ids), 2)) + (label == "ill")[:, None]
    return pd.DataFrame({"a": values[:, 0], "b": values[:, 1], "site": site,
                         "patient": ids, "status": label})  # fmt: skip


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_a_split_keeps_a_patient_together(share):
    data = av.table(visits(), "status", groups="patient", encode="onehot")
    for number_ in range(5):
        train, test = data.split(share, random_seed=number_)
        assert not set(train.groups) & set(test.groups)
        assert abs(test.N / data.N - share) < 0.15
        assert min(train.counts) > 0
    with pytest.raises(av.InputError, match="all rows belong to one group"):
        av.table(visits().assign(patient="P"), "status", groups="patient", encode="onehot").split()


@pytest.mark.parametrize("always", [(), ("site",)])
@pytest.mark.parametrize("named", [False, True])
def test_a_problem_takes_groups(always, named):
    frame = visits().drop(columns=[] if always else ["site"])
    ids = frame["patient"]
    rows = frame if named else frame.drop(columns="patient")
    problem = av.problem("rfvm", rows, "status", always=always, groups="patient" if named else ids)
    assert problem.data.groups == tuple(ids)
    assert "patient" not in " ".join(problem.feature_names)
    fold = problem.take(range(30))
    assert fold.data.groups == tuple(ids[:30])
    labels = rows.pop("status")
    if not always and not named:
        assert av.problem("rfvm", (rows, labels), groups=ids).data.groups == tuple(ids)
        assert av.problem("rfvm", problem.data, groups=ids[::-1]).data.groups == tuple(ids[::-1])
        with pytest.raises(av.InputError, match="names a column of a frame"):
            av.problem("rfvm", problem.data, groups="patient")
        with pytest.raises(av.InputError, match="groups has 59 entries, expected one a row: 60"):
            av.problem("rfvm", rows.assign(y=labels), "y", groups=ids[1:])


def test_a_reference_level_is_what_others_are_compared_with():
    frame = visits().drop(columns="patient")
    given = {"encode": "onehot", "reference": ["site=south"]}
    data = av.table(frame, "status", **given)
    assert data.feature_names == ("a", "b", "site=north", "site=west")
    assert "(0 is south)" in " ".join(data.remarks)
    problem = av.problem("rfvm", data, always=["site"])
    assert problem.always == ("site=north", "site=west")
    usual = av.problem("rfvm", av.table(frame, "status", encode="onehot"), always=["site"])
    assert usual.always == ("site=south", "site=west")
    train, _ = data.split(0.3)
    assert "site=south" not in train.feature_names
    refused(frame, "unknown level of 'site' 'east'", encode="onehot", reference={"site": "east"})
    refused(frame, "column=level", encode="onehot", reference="site")


def test_a_report_says_what_is_composed_and_what_is_asked():
    frame = visits().assign(note=[f"seen {k % 30}" for k in range(60)])
    error = refused(frame, "encode='onehot'", "This mends the rest. Add your choice for groups:")
    assert isinstance(error, TableError)
    assert [q.heading for q in error.questions] == ["groups", "groups"]
    assert error.mended.drop == ()
