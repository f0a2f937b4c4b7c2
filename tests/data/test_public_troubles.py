"""Troubles that people report of other readers of tables, and that ours had in silence."""

import openpyxl
import pytest

import ardvark as av


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
