"""FINDINGS.md: its length, its picture, and what its sentences claim, from what is stored."""

import re

import numpy as np
import pytest
from scipy import special

from lab import pages, records
from lab.findings import figures, patients
from lab.matrix.declared import BLOCKS, DIFFUSE, EXACT, OWN_SETTINGS, PAPERS
from lab.matrix.figures import held, stored
from lab.papers.figures import CLEAR, Found, chosen
from lab.papers.tables import GROUPS

FRAME = stored(pages.MATRIX)
KNOWN = held(FRAME)
FOUND = Found(pages.FOLDS)
ROWS = patients.stored()
PAGE = (records.HERE / pages.FINDINGS).read_text()
GENES = 2000


def of_panel(name):
    return ROWS[ROWS["model"] == name]


def pairs(paper, first, second, column="log_score"):
    return FOUND.pairs((first, second), paper, column).values()


def sparse_on_genes(cell):
    which = (KNOWN["prior"] == "sparse") & (KNOWN["D"] >= GENES) & (KNOWN["cell"] == cell)
    return KNOWN[which]


def test_the_page_is_read_in_minutes_and_opens_with_its_answer_and_the_picture():
    assert len(re.findall(r"\w+", PAGE)) <= 1200
    _, answer, picture, *_ = PAGE.split("\n\n")
    assert answer.startswith("**")
    assert "(lab/figures/findings.png)" in picture
    for link in re.findall(r"\]\(([^)#]+)\)", PAGE):
        assert (records.HERE.parent / link).is_file()


# --- the picture ----------------------------------------------------------------------------------


def test_the_picture_has_a_panel_a_paper_and_is_small():
    picture = patients.draw(ROWS)
    assert len(picture.figure.axes) == len(patients.PANELS) == 4
    assert all(panel.name in picture.alt for panel in patients.PANELS)
    assert patients.PICTURE.stat().st_size < 200_000
    assert not patients.missing()


@pytest.mark.parametrize("panel", [p for p in patients.PANELS if p.block], ids=lambda p: p.name)
def test_the_dots_are_those_of_the_matrix(panel):
    block = BLOCKS[panel.block]
    fit = KNOWN[(KNOWN["block"] == block.name) & (KNOWN["cell"] == PAPERS)].iloc[0]
    mine = of_panel(panel.name)
    assert len(mine) == fit["N"]
    assert patients.off(mine) == pytest.approx(fit["p_off"], abs=0.01)
    base = np.abs(mine["y"].mean() - mine["exact"]).mean()
    assert base == pytest.approx(fit["p_off_base"], abs=0.01)


@pytest.mark.parametrize("name", ["PFCVM", "RFVM"])
def test_pfcvm_and_rfvm_give_every_patient_about_the_same_answer(name):
    mine = of_panel(name)
    widest = {"PFCVM": 0.1, "RFVM": 0.02}[name]  # "nearly the same", "the same"
    assert np.ptp(mine["paper"]) < widest
    assert (np.abs(mine["exact"] - mine["exact"].mean()) > 0.2).mean() > 0.9  # tells them apart


def test_pfcvms_panel_is_the_worst_of_its_gene_sets():
    off = sparse_on_genes(PAPERS).set_index(["model", "data"])["p_off"]["pfcvm"]
    assert len(off) == 3
    assert off.idxmax() == next(p.data for p in patients.PANELS if p.name == "PFCVM")


def test_three_of_the_four_posteriors_put_every_fitted_row_into_its_class():
    wrong = {p.name: ((of_panel(p.name)["exact"] > 0.5) != of_panel(p.name)["y"]).sum()
             for p in patients.PANELS}  # fmt: skip
    assert [name for name, count in wrong.items() if count == 0] == ["PFCVM", "RFVM", "JCFO"]


def test_jcfo_is_less_sure_than_the_posterior():
    mine = of_panel("JCFO")
    assert len(mine) == 62
    paper, exact = (special.logit(mine[name].clip(1e-4, 1 - 1e-4)) for name in ("paper", "exact"))
    assert np.polyfit(exact, paper, 1)[0] < 0.8
    assert (np.abs(mine["paper"] - 0.5) < np.abs(mine["exact"] - 0.5)).mean() > 0.75


def test_fs_sklr_is_about_right_but_off_for_single_patients():
    mine = of_panel("FS-SKLR")
    apart = mine["paper"] - mine["exact"]
    assert abs(apart.mean()) < 0.05
    assert np.corrcoef(mine["paper"], mine["exact"])[0, 1] > 0.95
    assert apart.abs().max() > 0.2
    assert ((mine["paper"] > 0.5) == (mine["exact"] > 0.5)).mean() > 0.95


# --- what is claimed in words ---------------------------------------------------------------------


def test_no_fit_is_close_and_under_the_sparse_prior_each_algorithm_answers_with_a_constant():
    fits = KNOWN[KNOWN["cell"].isin((PAPERS, "ADVI", "Laplace"))]
    assert not fits["close"].any()
    near = fits[fits["near"] & fits["eta_width"].between(0.8, 1.25)]
    assert (near["p_worst"] > 0.1).all()  # "off by more than 0.1 in some row"
    assert sparse_on_genes(PAPERS)["share"].between(0.95, 1.05).all()
    masks = KNOWN[(KNOWN["model"] == "fsklr") & (KNOWN["prior"] == "independent")]
    off = masks[masks["cell"] == PAPERS]["p_off"].median()
    draw = masks[masks["cell"] == EXACT]["p_draw"].median()
    assert off / draw == pytest.approx(1.0, abs=0.35)  # "about as much as one exact draw"
    assert masks[masks["cell"] == PAPERS]["eta_width"].isna().all()


def test_own_settings_are_nearer_on_every_gene_set_and_their_widths_far_off():
    genes = [sparse_on_genes(cell).set_index(["model", "data"])
             for cell in (OWN_SETTINGS, "ADVI", "Laplace")]  # fmt: skip
    own, *others = (frame["p_off"] for frame in genes)
    assert len(own) == 8
    assert all((own < other).all() for other in others)
    width = genes[0]["eta_width"]
    assert width["pfcvm"].min() > 4.0
    assert width["rfvm"].max() < 0.2


def test_more_effort_changes_next_to_nothing():
    for name in ("ADVI, more", "Laplace, more", f"{PAPERS}, more"):
        rows = KNOWN[(KNOWN["cell"] == name) & ~KNOWN["model"].isin(("fsklr", "sklr"))]
        assert rows["p_between"].median() < 0.01


def test_jcfo_drops_most_genes_and_is_not_clearly_behind():
    kept, active = (FOUND.of(f"jcfo-1/colon/{x}").mean("features")[0]
                    for x in ("jcfo-one", "exact-chosen"))  # fmt: skip
    assert kept < 0.3 * active
    told = chosen(FOUND)  # the prior's number stands beside the posterior's
    assert abs(told["posterior"].mean() - told["prior"].mean()) < 2.0
    assert active == pytest.approx(told["posterior"].mean())
    ((mean, error),) = pairs("JCFO", "exact-chosen", "jcfo-one")
    assert abs(mean) < CLEAR * error


def test_on_genes_exact_is_clearly_better_and_on_fs_sklrs_tables_by_little():
    for paper, algorithm, count in (("PFCVM", "pfcvm_lp-model", 2), ("RFVM", "rfvm_vb-model", 5)):
        found = list(pairs(paper, "exact", algorithm))
        assert len(found) == count
        assert all(mean > CLEAR * error for mean, error in found)
    assert all(0.0 < mean < 0.03 for mean, _ in pairs("FSKLR", "fsklr-exact", "fsklr"))
    sizes = [g.sizes[1] for g in GROUPS if g.paper == "FSKLR" and g.name in _with_rows()]
    assert (min(sizes), max(sizes)) == (9, 64)
    assert len(list(pairs("PFCVM", "exact-dense", "pfcvm_lp-dense"))) == 1  # colon alone


def _with_rows():
    return {r.group.name for r in FOUND.rows.values()}


def test_the_algorithm_costs_more_than_the_prior_and_less_under_the_dense_one():
    converged = FOUND.of("rfvm-3-4/prostate_ge/exact-dense")
    assert converged.finished < len(converged.lines)  # left out of the page's span
    every = FOUND.pairs(("exact-dense", "exact"), "RFVM", "log_score")
    prior = max(abs(mean) for data, (mean, _) in every.items() if data != "prostate_ge")
    sparse = [mean for mean, _ in pairs("RFVM", "exact", "rfvm_vb-model")]
    dense = [mean for mean, _ in pairs("RFVM", "exact-dense", "rfvm_vb-dense")]
    assert min(sparse + dense) > prior  # "less than the algorithm costs"
    assert max(dense) < max(sparse)
    assert sum(sparse) > 2.0 * sum(dense)
    assert all(mean > 0.0 for mean, _ in pairs("RFVM", "exact", "rfvm_vb-elbo"))
    colon, golub = pairs("PFCVM", "exact", "pfcvm_lp")
    assert golub[0] < -CLEAR * golub[1]  # "where it is behind"
    assert colon[0] > CLEAR * colon[1]


def test_at_a_filled_prior_jcfo_has_no_active_gene_and_is_far_from_l1():
    for data in ("colon", "golub"):
        assert FOUND.of(f"jcfo-1/{data}/exact").mean("features")[0] < 0.05
    assert all(mean < -20.0 for mean, _ in pairs("JCFO", "exact", "l1_logistic", "accuracy"))


def test_what_to_use():
    rows = [row.split(",") for row in (records.HERE / pages.TIMES).read_text().splitlines()[1:]]
    genes = [row for row in rows if GENES <= int(row[5]) < 10_000 and row[0] in ("pfcvm", "rfvm")]
    assert all(4.0 < float(row[6]) < 200.0 for row in genes)  # "seconds to minutes"
    large = [row for row in rows if int(row[5]) == 100_000]
    assert {row[-1] for row in large} == {"no"}
    given = figures.truth()
    assert float(given["horseshoe_over_l1_log_score"].split()[0]) > 0.0
    more, error = map(float, given["horseshoe_over_l1_power_20_converged"].split(" ± "))
    assert 0.0 < more < CLEAR * error  # "which is not clear"
    for name in ("pfcvm", "horseshoe"):
        assert float(given[f"{name}_false"].split()[0]) > float(given[f"{name}_promised"])


def test_what_is_not_known():
    rows = FRAME[(FRAME["prior"] == DIFFUSE) & (FRAME["cell"] == EXACT) & (FRAME["D"] >= GENES)]
    assert len(rows) > 0
    assert set(rows["status"]) == {"not_converged"}


# --- the talk -------------------------------------------------------------------------------------

TALK = (records.HERE / pages.TALK).read_text()


def test_the_talk_has_twelve_slides_of_few_words():
    slides = re.split(r"^##? ", TALK, flags=re.MULTILINE)[1:]
    assert len(slides) == 12
    said = [re.sub(r"^\|.*|!\[.*\]\(.*\)", "", slide, flags=re.MULTILINE) for slide in slides]
    assert max(len(re.findall(r"\w+", slide)) for slide in said) <= 80


def test_the_scale_that_the_talk_gives_is_that_of_the_table():
    """One answer for all is the third column of the table, which is computed row by row."""
    column = [float(line.split("|")[3]) for line in figures.table(KNOWN, FOUND).splitlines()[2:]]
    given = figures.figures(FRAME, FOUND)["constant"]
    assert given == f"{min(column):.2f} to {max(column):.2f}"
