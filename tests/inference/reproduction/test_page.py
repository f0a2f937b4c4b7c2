"""The page of the matrix: its words from the rows, its sentences recomputed."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ardvark.inference.reproduction.numbers import NAMES
from ardvark.inference.reproduction.page import PAGE, fate, page, sentences
from ardvark.inference.reproduction.rows import COLUMNS, ROWS, read, whole

STORED = Path(__file__).parents[3] / "benchmarks" / "matrix"


def row(**given):
    texts = {n: "" for n in COLUMNS if n not in NAMES}
    base = {
        "model": "pfcvm", "data": "colon", "prior": "sparse", "status": "finished", "N": 62,
        "D": 2000, "rhat": 1.0, "ess": 1500.0, "seconds": 36.0,
    }  # fmt: skip
    return {**texts, **dict.fromkeys(NAMES, np.nan), **base, **given}


@pytest.mark.parametrize(
    ("word", "p_off", "ratio", "error", "active"),
    [
        ("close", 0.01, 1.1, 0.2, 9.0),
        ("at zero", 0.3, 0.1, 2.0, 0.0),
        ("a point", 0.3, np.nan, 2.0, 9.0),
        ("narrow", 0.05, 0.3, 0.5, 9.0),
        ("wide", 0.01, 7.0, 0.5, 9.0),
        ("elsewhere", 0.05, 0.9, 0.5, 9.0),
        ("elsewhere", 0.01, 1.6, 1.5, 9.0),
        ("rough", 0.01, 1.6, 0.5, 9.0),
        ("", np.nan, np.nan, np.nan, np.nan),
    ],
)
def test_fates(word, p_off, ratio, error, active):
    given = row(p_off=p_off, eta_sd_ratio=ratio, eta_error=error, active=active, active_exact=10.0)
    assert fate(pd.Series(given)) == word


def test_sentences_count_and_take_medians():
    rows = []
    for data, off in (("colon", 0.2), ("golub", 0.3), ("sonar", 0.9)):
        state = "not_converged" if data == "sonar" else "finished"
        rows += [
            row(data=data, cell="exact", status=state),
            row(data=data, cell="exact, again", p_off=off / 100, eta_sd_ratio=1.0),
            row(data=data, cell="ADVI", p_off=off, eta_sd_ratio=0.9, active=1.0, active_exact=9.0),
            row(data=data, cell="ADVI, more", p_off=off - 0.1, eta_sd_ratio=0.9),
        ]
    said = sentences(pd.DataFrame(rows))
    assert "Of 3 posteriors `exact` converged on 2" in said[0]
    assert "0.0025 in the median and 0.003 at most" in said[0]
    assert "ADVI 0.25 (sd ratio 0.9); in 2 of 2 cells" in said[1]
    assert "in 2 of 2 cells" in said[2]
    assert len(said) == 3  # nothing is said of what was not run


@pytest.mark.skipif(not STORED.exists(), reason="no matrix is stored")
def test_the_stored_page_is_what_its_rows_say():
    frame = whole(read(STORED / ROWS))
    assert (STORED / PAGE).read_text() == page(frame)
