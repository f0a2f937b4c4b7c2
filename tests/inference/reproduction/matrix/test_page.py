"""The page of the matrix: its words from the rows, its sentences recomputed."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ardvark.inference.reproduction.matrix import mechanisms
from ardvark.inference.reproduction.matrix.declared import CELLS
from ardvark.inference.reproduction.matrix.numbers import NAMES
from ardvark.inference.reproduction.matrix.page import PAGE, fate, page, sentences
from ardvark.inference.reproduction.matrix.rows import COLUMNS, ROWS, read, whole

STORED = Path(__file__).parents[4] / "benchmarks" / "matrix"


def row(**given):
    texts = {n: "" for n in COLUMNS if n not in NAMES}
    base = {
        "model": "pfcvm", "data": "colon", "prior": "sparse", "status": "finished", "N": 62,
        "D": 2000, "rhat": 1.0, "ess": 1500.0, "seconds": 36.0,
    }  # fmt: skip
    return {**texts, **dict.fromkeys(NAMES, np.nan), **base, **given}


@pytest.mark.parametrize(
    ("words", "p_off", "ratio", "active"),
    [
        ("close", 0.01, 1.1, 9.0),
        ("P right", 0.01, 1.6, 9.0),
        ("P right, few active", 0.01, np.nan, 4.0),
        ("narrow, at zero", 0.3, 0.1, 0.0),
        ("a point", 0.3, np.nan, 9.0),
        ("narrow", 0.05, 0.3, 9.0),
        ("wide, few active", 0.05, 7.0, 4.9),
        ("shifted", 0.05, 0.9, 5.1),
        ("", np.nan, np.nan, np.nan),
    ],
)
def test_fates(words, p_off, ratio, active):
    given = row(p_off=p_off, eta_sd_ratio=ratio, active=active, active_exact=10.0)
    assert fate(pd.Series(given)) == words


def test_without_an_active_feature_none_is_missing():
    given = row(p_off=0.3, eta_sd_ratio=1.0, active=0.0, active_exact=0.4)
    assert fate(pd.Series(given)) == "shifted"


def test_sentences_count_and_give_ranges():
    rows = []
    for data, off in (("colon", 0.2), ("golub", 0.3), ("sonar", 0.9)):
        state = "not_converged" if data == "sonar" else "finished"
        rows += [
            row(data=data, cell="exact", status=state, p_off_base=off + 0.05),
            row(data=data, cell="exact, again", p_off=off / 100, eta_sd_ratio=1.0),
            row(data=data, cell="ADVI", p_off=off, eta_sd_ratio=0.9, active=0.1, active_exact=9.0),
            row(data=data, cell="ADVI, more", p_off=off - 0.1, eta_sd_ratio=0.9),
        ]
    said = sentences(pd.DataFrame(rows))
    assert "Of 3 posteriors `exact` converged on 2" in said[0]
    assert "by 0.0025 in the median, and by 0.003 at most" in said[0]
    assert (
        "pfcvm (2 posteriors), by 0.20 to 0.30 with ADVI (a constant: by 0.25 to 0.35)" in said[1]
    )
    assert "no active feature left in 2 and fewer than half in 0 more of 2 cells" in said[1]
    assert "within 0.005 in 0 of 2 cells, and nearer by more than 0.02 in 2" in said[2]
    assert len(said) == 3  # nothing is said of what was not run


def test_cells_are_marked():
    both = {"p_off": 0.3, "eta_sd_ratio": 0.1, "active": 5.0, "active_exact": 9.0}
    rows = [
        row(cell="exact", sampler="gibbs", rhat_eta=1.001, active=9.0, p_off_base=0.3),
        row(cell="exact, again", p_off=0.002, active_prior=8.0),
        row(cell="ADVI", **both),
        row(cell="Laplace", **both | {"status": "not_converged"}),
        row(cell="paper's, own settings", log_score=-0.2, **both),
    ]
    others = {c.label for c in CELLS["pfcvm"]} - {r["cell"] for r in rows}
    rows += [row(cell=label, status="absent") for label in others]
    text = page(pd.DataFrame(rows))
    assert "| 0.300, 0.1 narrow |" in text
    assert "| 0.300, 0.1† narrow |" in text
    assert "does not apply" in text
    assert "sparse: 0.300, 0.1 |" in text.split("at their own settings")[1]
    rows[0]["status"] = "not_converged"
    text = page(pd.DataFrame(rows))
    assert "**not converged**" in text
    assert "| 0.300, 0.1 |" in text  # nothing is said beside an exact fit that is none


def test_the_stored_page_is_what_its_rows_say():
    frame = whole(read(STORED / ROWS))
    assert (STORED / PAGE).read_text() == page(frame, mechanisms.told())
