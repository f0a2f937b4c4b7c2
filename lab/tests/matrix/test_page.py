"""The page of the matrix: its figures from made-up rows, and what it claims."""

import numpy as np
import pandas as pd
import pytest

from lab import pages
from lab.matrix import figures
from lab.matrix.declared import DIFFUSE, EXACT, FLAT, PAPERS
from lab.matrix.figures import METHODS, held, stored
from lab.matrix.numbers import NAMES
from lab.matrix.rows import COLUMNS

FRAME = stored(pages.MATRIX)
KNOWN = held(FRAME)
FITS = KNOWN[KNOWN["cell"].isin(METHODS) & KNOWN["p_off"].notna()]


def row(**given):
    texts = {n: "" for n in COLUMNS if n not in NAMES}
    base = {
        "model": "pfcvm", "data": "colon", "prior": "sparse", "status": "finished", "N": 62,
        "D": 2000, "rhat": 1.0, "ess": 1500.0, "seconds": 36.0, "divergences": 0,
    }  # fmt: skip
    return {**texts, **dict.fromkeys(NAMES, np.nan), **base, **given}


@pytest.mark.parametrize(
    ("close", "near", "p_off", "worst", "width"),
    [
        (True, True, 0.01, 0.05, 1.1),
        (False, True, 0.01, 0.05, 1.6),
        (False, True, 0.01, 0.2, 1.1),
        (False, True, 0.01, 0.05, np.nan),
        (False, False, 0.3, 0.05, 1.1),
        (False, False, np.nan, np.nan, np.nan),
    ],
)
def test_a_fit_is_close_in_probability_in_every_row_and_in_width(close, near, p_off, worst, width):
    fit = row(cell="ADVI", p_off=p_off, p_worst=worst, eta_width=width, active_exact=0.9)
    found = held(pd.DataFrame([row(cell=EXACT), fit])).iloc[1]
    assert (found["close"], found["near"], found["droppable"]) == (close, near, False)


def made():
    rows = []
    for data, off in (("colon", 0.2), ("golub", 0.3), ("sonar", 0.9)):
        state = "not_converged" if data == "sonar" else "finished"
        fit = {"eta_width": 0.9, "slope": 0.7, "active_exact": 9.0, "method": "advi"}
        base = {"p_off_base": off + 0.05, "p_draw": 0.1}
        rows += [
            row(data=data, cell=EXACT, status=state, active=9.0, **base),
            row(data=data, cell="ADVI", p_off=off, active=0.1, **fit, **base),
            row(data=data, cell="ADVI, more", p_off=off - 0.1, p_between=off / 2, **fit),
            row(data=data, cell="ADVI, other form", p_off=off + 0.01, p_between=off, **fit),
        ]
    return pd.DataFrame(rows)


COUNTS = ["2", "2", "0", "2", "0", "0", "2", "2", "0", "0"]


def cells(table):
    return [[x.strip() for x in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def test_the_tables_count_where_exact_has_converged():
    known = held(made())
    assert cells(figures.distances(known)) == [
        ["pfcvm", "sparse", "2", "0.30", "0.10", "", "0.25 (0.20 to 0.30)", ""]
    ]
    fits = known[known["cell"] == "ADVI"]
    assert cells(figures.directions(fits))[1] == [
        "ADVI",
        *["2", "2", "0", "2", "0", "0", "2", "2", "0", "0"],
    ]
    more, other = cells(figures.chances(known))
    assert more == ["`advi`", "more", "2", "0.125", "0.150", "2", "0", "0"]
    assert other == ["`advi`", "other form", "2", "0.250", "0.300", "0", "0", "0"]
    rows = made()
    rows.loc[(rows["data"] == "golub") & (rows["cell"] == "ADVI, more"), "status"] = "not_converged"
    assert cells(figures.chances(held(rows)))[0][-3:] == ["1", "0", "1"]


# --- what is claimed in words ---------------------------------------------------------------------


def by_block(value):
    return KNOWN.fillna({"kernel": ""}).pivot_table(
        index=["model", "kernel", "data", "prior", "D"], columns="cell", values=value
    )


def test_no_fit_is_close_and_one_in_ten_is_near():
    assert not FITS["close"].any()
    assert 0.08 < FITS["near"].mean() < 0.12


def test_on_genes_under_the_sparse_prior_the_papers_algorithms_are_as_far_off_as_a_constant():
    share = by_block("share").xs("sparse", level="prior")
    genes = share[share.index.get_level_values("D") >= 2000]
    assert set(genes.index.get_level_values("model")) == {"pfcvm", "rfvm"}
    assert genes[PAPERS].between(0.95, 1.05).all()
    assert genes["ADVI"].between(0.3, 0.97).all()  # "by two thirds of the way at best"
    colon = ("rfvm", "", "colon_discrete", "sparse", 2000)
    assert by_block("p_off").loc[colon, list(METHODS)].between(0.2, 0.3).all()
    assert by_block("share").loc[colon, list(METHODS)].between(0.9, 1.15).all()


def test_under_the_dense_prior_all_but_laplace_on_rfvms_genes_are_half_as_far_off():
    dense = by_block("share").xs("dense", level="prior")
    D = dense.index.get_level_values("D")
    genes = (dense.index.get_level_values("model") == "rfvm") & (D >= 2000)
    assert dense.loc[genes, "Laplace"].gt(0.5).all()
    assert dense.loc[~genes, "Laplace"].max() <= 0.5
    assert dense[[PAPERS, "ADVI"]].max(axis=None) <= 0.5


def test_more_effort_changes_next_to_nothing_and_other_coordinates_go_either_way():
    off = by_block("p_off")
    worse = (off["Laplace, more"] - off["Laplace"]).nlargest(2)
    assert worse.iloc[0] > 0.3  # once much farther away
    assert worse.iloc[1] < 0.1
    for label in ("ADVI", "Laplace"):
        assert (off[label] - off[f"{label}, more"]).max() < 0.02
        assert by_block("p_between")[f"{label}, more"].median() < 0.01
        moved = off[label] - off[f"{label}, other form"]
        assert moved.max() > 0.02
        assert moved.min() < -0.02


def test_what_is_said_of_the_priors_and_the_methods():
    exact = FRAME[(FRAME["cell"] == EXACT) & (FRAME["prior"] == DIFFUSE)]
    done = exact[exact["status"] == "finished"]
    assert [(r["kernel"], r["data"]) for _, r in done.iterrows()] == [("", "sonar")]
    assert set(FRAME[FRAME["prior"] == FLAT]["status"]) == {"improper"}
    lost = FRAME[(FRAME["cell"] == "Laplace") & (FRAME["status"] == "absent")]
    assert set(zip(lost["model"], lost["D"], strict=True)) == {("sparse_probit", 7129)}
    exact = FRAME[FRAME["cell"] == EXACT]
    of_jcfo = exact[(exact["model"] == "jcfo") & (exact["D"] >= 2000)]
    assert of_jcfo["active"].max() < 0.05  # its posterior is close to its prior
    assert len(NAMES) == 23


def test_the_pages_say_so():
    page = (pages.MATRIX / "MATRIX.md").read_text()
    assert "none of these is close to the exact posterior" in page
    laboratory = (pages.MATRIX.parent / "README.md").read_text()
    assert f"none of {FITS['eta_width'].notna().sum()} fits is close" in laboratory
