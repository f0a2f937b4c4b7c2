"""The page of the matrix: its words from the rows, its sentences recomputed."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lab.matrix import mechanisms
from lab.matrix.declared import CELLS, OWN_SETTINGS, PAPERS
from lab.matrix.findings import chances, sentences
from lab.matrix.numbers import NAMES
from lab.matrix.page import PAGE, page
from lab.matrix.rows import COLUMNS, ROWS, read, whole
from lab.matrix.words import fate

STORED = Path(__file__).parents[3] / "lab" / "matrix"


def row(**given):
    texts = {n: "" for n in COLUMNS if n not in NAMES}
    base = {
        "model": "pfcvm", "data": "colon", "prior": "sparse", "status": "finished", "N": 62,
        "D": 2000, "rhat": 1.0, "ess": 1500.0, "seconds": 36.0, "divergences": 0,
    }  # fmt: skip
    return {**texts, **dict.fromkeys(NAMES, np.nan), **base, **given}


@pytest.mark.parametrize(
    ("words", "p_off", "worst", "ratio", "active"),
    [
        ("close", 0.01, 0.05, 1.1, 9.0),
        ("near", 0.01, 0.05, 1.6, 9.0),
        ("near", 0.01, 0.2, 1.1, 9.0),
        ("near, few active", 0.01, 0.05, np.nan, 4.0),
        ("narrow, at zero", 0.3, 0.6, 0.1, 0.0),
        ("a point", 0.3, 0.6, np.nan, 9.0),
        ("narrow", 0.05, 0.1, 0.3, 9.0),
        ("wide, few active", 0.05, 0.1, 7.0, 4.9),
        ("shifted", 0.05, 0.1, 0.9, 5.1),
        ("shifted, many active", 0.05, 0.1, 0.9, 20.1),
        ("", np.nan, np.nan, np.nan, np.nan),
    ],
)
def test_fates(words, p_off, worst, ratio, active):
    given = row(p_off=p_off, p_worst=worst, eta_width=ratio, active=active, active_exact=10.0)
    assert fate(pd.Series(given)) == words
    # SKLR cannot lose a feature, and where there is less than one there is none to lose
    for other in ({"model": "sklr"}, {"active": 0.09 * active, "active_exact": 0.9}):
        assert fate(pd.Series(given | other)) == words.split(",")[0]


def made():
    rows = []
    for data, off in (("colon", 0.2), ("golub", 0.3), ("sonar", 0.9)):
        state = "not_converged" if data == "sonar" else "finished"
        near = {"p_off": off / 100, "p_worst": off / 10, "eta_width": 1.0}
        fit = {"eta_width": 0.9, "slope": 0.7, "active_exact": 9.0, "p_active_most": 0.4,
               "method": "advi"}  # fmt: skip
        base = {"p_off_base": off + 0.05}
        rows += [
            row(data=data, cell="exact", status=state, active=9.0, **base),
            row(data=data, cell="exact, again", **near),
            row(data=data, cell="ADVI", p_off=off, active=0.1, **fit, **base),
            row(data=data, cell="ADVI, more", p_off=off - 0.1, p_between=off / 2, **fit),
            row(data=data, cell="ADVI, other form", p_off=off + 0.01, p_between=off, **fit),
        ]
    rows += [row(data="colon", cell="exact, other sampler", p_off=0.001, p_worst=0.01)]
    return pd.DataFrame(rows)


def test_sentences_count_and_give_ranges():
    said = sentences(made())
    assert "`exact` converged on 2 of 3 posteriors" in said[0]
    assert "(0 of 1 are under `diffuse`" in said[0]
    assert "by 0.0025 on the median posterior and by at most 0.0030" in said[0]
    assert "and in the worst single row by 0.030" in said[0]
    assert "on the 1 posterior where both ran, by at most 0.0010, and 0.010" in said[0]
    assert said[1].startswith("Of 2 fits")
    assert "2 have a width of eta; none of these is close" in said[1]
    assert "Of all, 0 are within 0.02" in said[1]
    assert (
        "pfcvm (2 posteriors), by 0.20 to 0.30 with ADVI (median 0.25, 80 to 86 % of a "
        "constant's distance)" in said[2]
    )
    assert "off by 0.20 to 0.30 in the default form, by 0.21 to 0.31 in the other" in said[3]
    assert "In 2 of these 2 fits the differences of P(y = 1)" in said[4]
    assert "0 and 0 of 2 with ADVI" in said[4]
    assert "(2 fits), the mean number of active features is below a twentieth" in said[5]
    assert "one in 2, below a half in 0 more, and above twice in 0" in said[5]
    assert "in 2 of the 2 with too few" in said[5]
    assert len(said) == 6  # nothing is said of what was not run


def test_a_state_is_told_beside_one_exact_draw_and_an_empty_mode_as_such():
    draw = {"p_draw": 0.1, "p_off_base": 0.3}
    rows = []
    for model, off, fit in (
        ("fsklr", 0.05, {"active": 4.0, "slope": 1.1}),
        ("sklr", 0.2, {"active": 4.0, "slope": 1.1}),
        ("jcfo", 0.2, {"active": 0.0, "slope": 0.0}),
    ):
        rows += [
            row(model=model, cell="exact", **draw),
            row(model=model, cell="exact, again", p_off=0.001, p_worst=0.01),
            row(model=model, cell=PAPERS, p_off=off, active_exact=9.0, **fit, **draw),
        ]
    said = " ".join(sentences(pd.DataFrame(rows)))
    assert "On 1 of 1 posteriors of JCFO and sparse probit" in said
    assert "is off by 0.10; the one state" in said
    assert "less than that on 1 of 2 posteriors" in said
    assert "In 1 of these 3 fits the differences of P(y = 1)" in said
    assert "a constant in 1 of them), in 0 they are too large" in said


def test_what_does_not_aim_at_the_posterior_is_told_where_it_is_nearer():
    rows = []
    for data, own, xolon in (("colon", 0.1, 0.05), ("golub", 0.4, 0.5)):
        fits = {"exact": np.nan, PAPERS: 0.3, "ADVI": 0.2, "Laplace": 0.3,
                OWN_SETTINGS: own, "XOLON": xolon}  # fmt: skip
        rows += [
            row(model="rfvm", data=data, cell=cell, p_off=off, p_off_base=0.3, active=3.0,
                active_exact=9.0, slope=0.9)
            for cell, off in fits.items()
        ]  # fmt: skip
        rows += [row(model="rfvm", data=data, cell="exact, again", p_off=0.001, p_worst=0.01)]
    said = " ".join(sentences(pd.DataFrame(rows)))
    assert "less far off on 1 of 2 posteriors at their own settings" in said
    assert "less far off than all three methods on 1 of 2 of RFVM's" in said


def test_further_settings_are_compared_with_the_first_where_exact_has_converged():
    rows = made()
    more, other = chances(rows)
    assert more == ["`advi`", "more", "2", "0.125", "0.150", "2", "0", "0"]
    assert other == ["`advi`", "other form", "2", "0.250", "0.300", "0", "0", "0"]
    failed = (rows["data"] == "golub") & (rows["cell"] == "ADVI, more")
    rows.loc[failed, "status"] = "not_converged"
    assert chances(rows)[0] == ["`advi`", "more", "2", "0.125", "0.150", "1", "0", "1"]


def test_cells_are_marked():
    both = {"p_off": 0.3, "p_worst": 0.5, "eta_width": 0.1, "active": 5.0, "active_exact": 9.0}
    rows = [
        row(cell="exact", sampler="gibbs", rhat_eta=1.001, active=9.0, p_off_base=0.3, p_draw=0.17),
        row(cell="exact, again", p_off=0.002, active_prior=8.0),
        row(cell="ADVI", **both),
        row(cell="Laplace", **both | {"status": "not_converged"}),
        row(cell="paper's, own settings", log_score=-0.2, log_score_exact=-0.5, **both),
    ]
    others = {c.label for c in CELLS["pfcvm"]} - {r["cell"] for r in rows}
    rows += [row(cell=label, status="absent") for label in others]
    text = page(pd.DataFrame(rows))
    assert "| 0.300, 0.50; 0.1 narrow |" in text
    assert "| 0.300, 0.50; 0.1† narrow |" in text
    assert "does not apply" in text
    assert "| 0.002 | 0.170 | 0.300 |" in text  # noise, one draw, constant
    assert "sparse: 0.300, 0.50; 0.1 |" in text.split("at their own settings")[1]
    assert "-0.20; exact -0.50 (sparse)" in text
    rows[0] |= {"status": "not_converged", "divergences": 3}
    rows[1] |= {"status": "not_converged"}
    text = page(pd.DataFrame(rows))
    assert "3 divergences, **not converged**" in text
    assert "| 0.002† |" in text
    assert "| 0.300, 0.50; 0.1 |" in text  # nothing is said beside an exact fit that is none


def test_the_stored_page_is_what_its_rows_say():
    frame = whole(read(STORED / ROWS))
    assert (STORED / PAGE).read_text() == page(frame, mechanisms.told())


def test_what_is_said_of_the_diffuse_prior_holds():
    """PRIORS: `exact` converges under it on sonar with a linear kernel only."""
    frame = whole(read(STORED / ROWS))
    exact = frame[(frame["cell"] == "exact") & (frame["prior"] == "diffuse")]
    done = exact[exact["status"] == "finished"]
    assert [(r["kernel"], r["data"]) for _, r in done.iterrows()] == [("", "sonar")]


def test_the_readme_says_what_the_matrix_shows():
    """In shares of a constant's distance, on the posteriors where `exact` has converged."""
    frame = whole(read(STORED / ROWS)).fillna({"kernel": ""})
    frame["share"] = frame["p_off"] / frame["p_off_base"]
    block = ["model", "kernel", "data", "prior"]
    done = frame[(frame["cell"] == "exact") & (frame["status"] == "finished")]
    converged = frame.merge(done[block], on=block)
    off, share = (
        converged.pivot_table(index=[*block, "D"], columns="cell", values=value).reset_index("D")
        for value in ("p_off", "share")
    )
    labels = ["paper's, this prior", "ADVI", "Laplace"]
    said = " ".join((STORED.parents[1] / "README.md").read_text().split())

    assert "RFVM's own mean field, ADVI and Laplace are all off by about a quarter" in said
    assert "about as far as the answer that ignores all genes" in said
    colon = ("rfvm", "", "colon_discrete", "sparse")
    assert off.loc[colon, labels].between(0.2, 0.3).all()
    assert share.loc[colon, labels].between(0.9, 1.15).all()
    sparse = share[share["D"] >= 2000].xs("sparse", level="prior")
    assert "the paper's algorithm, RFVM's or PFCVM's, is as far off as that answer" in said
    assert sparse["paper's, this prior"].between(0.95, 1.05).all()
    assert "ADVI is nearer to the exact posterior on all of them, by two thirds of the way" in said
    assert sparse["ADVI"].between(0.3, 0.97).all()

    assert (
        "No fit of ADVI, of Laplace or of a paper's algorithm that has intervals is close" in said
    )
    assert "About one fit in ten is within 0.02 in P(y = 1), on average over the rows" in said
    fits = converged[converged["cell"].isin(labels) & converged["p_off"].notna()]
    words = [fate(fit).split(",")[0] for _, fit in fits.iterrows()]
    assert "close" not in words
    assert 0.08 < words.count("near") / len(words) < 0.12

    assert "Under a dense prior they are off by at most half as much as the answer that" in said
    dense = share.xs("dense", level="prior")
    genes = (dense.index.get_level_values("model") == "rfvm") & (dense["D"] >= 2000)
    assert "except for Laplace on RFVM's genes" in said
    assert dense.loc[genes, "Laplace"].gt(0.5).all()
    assert dense.loc[~genes, "Laplace"].max() <= 0.5
    assert dense[labels[:2]].max(axis=None) <= 0.5

    assert "nearer to it by more than 0.02, and once took Laplace much farther away" in said
    assert (off["Laplace, more"] - off["Laplace"]).nlargest(2).iloc[0] > 0.3
    assert (off["Laplace, more"] - off["Laplace"]).nlargest(2).iloc[1] < 0.1
    other = []
    for label in ("ADVI", "Laplace"):
        assert (off[label] - off[f"{label}, more"]).max() < 0.02
        other += [off[label] - off[f"{label}, other form"]]
    assert "in other coordinates sometimes brings them nearer, sometimes farther" in said
    assert max(x.max() for x in other) > 0.1
    assert min(x.min() for x in other) < -0.1
