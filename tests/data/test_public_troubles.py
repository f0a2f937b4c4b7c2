"""Troubles that people report of other readers of tables, and that ours had in silence."""

import numpy as np
import openpyxl
import pandas as pd
import pytest

import ardvark as av
from ardvark.data.faults import TableError


def test_levels_that_differ_in_case_only_are_a_question():
    """One level or two: "male" and "Male" were columns of their own without a word."""
    frame = pd.DataFrame(
        {
            "sex": ["male", "Male", "female", "male "] * 3,
            "age": np.arange(12.0) ** 2,
            "y": list("uvvuuv") * 2,
        }
    )
    with pytest.raises(TableError) as error:
        av.table(frame, "y", encode="onehot")
    assert "differ in case only: sex (male 6, Male 3)" in " ".join(str(error.value).split())
    data = av.table(frame, "y", encode="onehot", measured=["sex"])
    assert data.feature_names[:3] == ("sex=Male", "sex=female", "sex=male")
    lower = frame.assign(sex=frame["sex"].str.lower())
    assert av.table(lower, "y", encode="onehot").feature_names == ("sex=male", "age")


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        (["ill", "Ill", "well"], "ill, Ill differ in case only: write them alike"),
        (["ill", "Ill", "ill"], "they differ in case only. Write them alike"),
    ],
)
def test_labels_that_differ_in_case_only_are_said(labels, told):
    frame = pd.DataFrame({"age": np.arange(12.0) ** 2, "y": labels * 4})
    with pytest.raises(TableError) as error:
        av.table(frame, "y")
    assert told in " ".join(str(error.value).split())


def test_a_formula_without_its_value_is_no_missing_value(tmp_path):
    """As a program writes it: its column was called empty, and to be dropped."""
    book = openpyxl.Workbook()
    for k in range(8):
        book.active.append([k**2, f"=A{k + 1}*2", "ill" if k % 3 else "well"])
    book.active.insert_rows(1)
    for column, name in enumerate(("a", "b", "y"), start=1):
        book.active.cell(1, column, name)
    book.save(tmp_path / "own.xlsx")
    with pytest.raises(av.InputError, match="cell B2 has a formula, and its value is not"):
        av.table(tmp_path / "own.xlsx", "y")
    for row in range(2, 10):
        book.active.cell(row, 2).value = None if row == 4 else 3.5 * row
    book.save(tmp_path / "own.xlsx")
    assert av.table(tmp_path / "own.xlsx", "y", impute="median").D == 2
