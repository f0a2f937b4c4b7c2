"""FINDINGS.md against the rows: each number that comes from stored rows, in its sentence."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lab import rows as kept_rows
from lab import tables
from lab.findings import patients
from lab.known_truth import known_truth
from lab.known_truth import report as of_truth
from lab.known_truth.results import Results
from lab.matrix import rows
from lab.matrix.declared import AGAIN, EXACT, FLAT, OWN_SETTINGS, PAPERS
from lab.matrix.pages import RIGHT_WIDTH, held
from lab.papers import authors, compared, jcfo_grid
from lab.papers.compared import CLEAR
from lab.papers.pages import signed

LAB = Path(__file__).parents[1]
PAGE, TALK = (LAB.parent / name for name in ("FINDINGS.md", "docs/talk.md"))
FRAME = rows.read()
KNOWN = held(FRAME)
TABLE = pd.read_csv(LAB / "paper_check" / "rows.csv", dtype={"step": str}).query("step.isna()")
APART = pd.read_csv(LAB / "paper_check" / "differences.csv")
GENES = KNOWN["D"] >= 2000
SPARSE = (KNOWN["prior"] == "sparse") & GENES


def ends(values, form=".2f", between=" to "):
    low, high = (f"{x + 0.0:{form}}" for x in (min(values), max(values)))
    return low if low == high else f"{low}{between}{high}"


def cell(name, which=slice(None)):
    mine = KNOWN[which]
    return mine[mine["cell"] == name]


def pairs(paper, first, second):
    mine = APART[APART["paper"] == paper]
    return mine[(mine["first"] == first) & (mine["second"] == second)]


def clear(frame, column, sign):
    return int((sign * frame[column] > CLEAR * frame[f"{column}_error"]).sum())


def value(place, column):
    table, data, row = place.split("/")
    mine = TABLE[(TABLE["table"] == table) & (TABLE["data"] == data) & (TABLE["row"] == row)]
    return mine.iloc[0][column]


def difference(paper, data, first, second):
    mine = pairs(paper, first, second).set_index("data").loc[data]
    return signed(mine["log_score"], mine["log_score_error"], 2)


def of_picture():
    frame = patients.stored()
    off = (frame["paper"] - frame["exact"]).abs().groupby(frame["model"]).mean()
    *first, last = (f"{off[panel.name]:.2f}" for panel in patients.PANELS)
    yield f"The four are off by {', '.join(first)} and {last} on average"


def of_exact():
    exact = FRAME[(FRAME["cell"] == EXACT) & (FRAME["prior"] != FLAT)]
    converged = (exact["status"] == "finished").sum()
    yield f"It converged on {converged} of {len(exact)} posteriors"
    yield f"differs on average by at most {cell(AGAIN)['p_off'].max():.4f}"


def within():
    """Of each paper, on how many tables its algorithm is within the spread, and on how many not."""
    for name, paper in compared.PAPERS.items():
        mine = TABLE[(TABLE["row"] == paper.algorithm) & (TABLE["folds"] == TABLE["of"])]
        mine = mine[mine["table"].str.startswith(name.lower())]
        gap = (mine[paper.measure] - mine[f"printed_{paper.measure}"]).dropna()
        near = gap.abs() <= CLEAR * mine[f"{paper.measure}_error"].loc[gap.index]
        yield name, near, gap


def of_own_settings():
    counts = [(near.sum(), len(near)) for _, near, _ in within()]
    near, found = (sum(x) for x in zip(*counts, strict=True))
    yield f"the printed accuracy or F1 comes out on {near} of {found} tables."
    for table, paper in (("pfcvm-6", "pfcvm_lp"), ("jcfo-1", "jcfo-printed")):
        colon, golub = (
            f"{value(f'{table}/{data}/{paper}', 'accuracy'):.1f} % of {data}" for data in
            ("colon", "golub")
        )  # fmt: skip
        said = [
            f"{value(f'{table}/{x}/{paper}', 'printed_accuracy'):g}" for x in ("colon", "golub")
        ]
        has = colon.replace(" of colon", " of colon right")
        yield f"has {has} (printed {said[0]}) and {golub} (printed {said[1]})."
    grid = tables.read(jcfo_grid.STORED).groupby("grid")["accuracy"].mean() * 100
    change = f"{grid['open'] - grid['five']:+.1f} points"
    yield f"changes accuracy by {change}: {grid['five']:.1f} to {grid['open']:.1f} %"
    (masks, gap) = next((near, gap) for name, near, gap in within() if name == "FSKLR")
    yield f"is within on {masks.sum()} of {len(masks)} tables"
    assert (gap[~masks] > 0.0).all()
    yield f"above the print on the other {(~masks).sum()}"
    small = [
        tuple(value(f"fsklr-3/{data}/fsklr-whole-{a}", x) for x in ("f1", "samples"))
        for data in ("sonar", "heart")
        for a in ("0.5", "0.01")
    ]
    assert {samples for _, samples in small} == {100.0}
    yield f"F1 is {ends([f1 for f1, _ in small], '.1f')}."


def of_the_authors_program():
    frame = tables.read(authors.STORED)
    theirs = frame[frame["by"] == authors.THEIRS].set_index(["data", "fold"])
    ours = frame[frame["by"] == authors.OURS].set_index(["data", "fold"]).loc[theirs.index]
    example = theirs.loc[authors.EXAMPLE].iloc[0]
    kept = f"{example['features']} of {example['of_features']} features"
    right = f"{example['right']} of {example['test']} test rows right"
    yield f"stored example: {example['iterations']} iterations, {kept}, {right}"
    colon = theirs.loc["colon_discrete"]
    share = 100 * colon["right"] / colon["test"]
    printed = [
        value("rfvm-3-4/colon_discrete/rfvm_vb-elbo", f"printed_{x}")
        for x in ("accuracy", "accuracy_sd")
    ]
    shown = f"{share.mean():.1f} +- {(share.var() / len(share)) ** 0.5:.1f}"
    yield "On colon it has {} % right (printed {:g} +- {:g})".format(shown, *printed)
    ended = colon["ended"] == "no number"
    few = ends(colon[~ended]["features"], ".0f", " or ")
    yield f"In {(~ended).sum()} of {len(colon)} folds {few} of 2000 genes are left."
    yield "it stops with {} and {}".format(*sorted(colon[ended]["features"]))
    alike = theirs[["iterations", "vectors", "right"]] == ours[["iterations", "vectors", "right"]]
    yield f"ends alike on {alike.all(axis=1).sum()} of {len(alike)} runs"


def of_table():
    """The table: distances of P(y = 1), and what that costs on rows left out."""
    every = KNOWN["D"] > 0
    for name, model, prior, which, scored in (
        ("PFCVM, genes", "pfcvm", "sparse", GENES, ("PFCVM", "exact", "pfcvm_lp-model")),
        ("PFCVM", "pfcvm", "dense", every, ("PFCVM", "exact-dense", "pfcvm_lp-dense")),
        ("RFVM, genes", "rfvm", "sparse", GENES, ("RFVM", "exact", "rfvm_vb-model")),
        ("RFVM", "rfvm", "dense", every, ("RFVM", "exact-dense", "rfvm_vb-dense")),
        ("FS-SKLR", "fsklr", "independent", every, ("FSKLR", "fsklr-exact", "fsklr")),
    ):
        mine = which & (KNOWN["model"] == model) & (KNOWN["prior"] == prior)
        exact, paper = cell(EXACT, mine), cell(PAPERS, mine)["p_off"]
        cells = (
            name, prior, f"{exact['p_off_base'].median():.2f}", f"{exact['p_draw'].median():.2f}",
            f"{paper.median():.2f} ({ends(paper)})", ends(pairs(*scored)["log_score"], "+.2f"),
        )  # fmt: skip
        yield f"| {' | '.join(cells)} |"


def of_algorithms():
    gammas = pd.read_csv(LAB / "paper_check" / "jcfo_gammas.csv", comment="#")
    prior = (gammas["prior"] * gammas["folds"]).sum() / gammas["folds"].sum()
    kept, active = (value(f"jcfo-1/colon/{x}", "features") for x in ("jcfo-one", "exact-chosen"))
    yield f"keeps {kept:.3g} of colon's 50 prefiltered genes"
    yield f"the posterior has {active:.3g} active, its prior {prior:.3g}"
    yield f"Exact minus algorithm is {difference('JCFO', 'colon', 'exact-chosen', 'jcfo-one')} in"
    own, *others = (cell(name, SPARSE)["p_off"] for name in (OWN_SETTINGS, "ADVI", "Laplace"))
    yield f"On all {len(own)} gene sets they are nearer"
    assert (own.to_numpy() < np.minimum(*(x.to_numpy() for x in others))).all()
    yield f"off by {ends(own)}, against {ends(others[0])} and {ends(others[1])}."
    width = cell(OWN_SETTINGS, SPARSE).groupby("model")["eta_width"]
    wide, narrow = (ends(width.get_group(x), y) for x, y in (("pfcvm", ".0f"), ("rfvm", ".2f")))
    yield f"intervals of eta are {wide} (PFCVM) and {narrow} (RFVM) times"
    fits = KNOWN[KNOWN["cell"].isin((PAPERS, "ADVI", "Laplace")) & KNOWN["p_off"].notna()]
    right = fits["near"] & fits["eta_width"].between(*RIGHT_WIDTH)
    yield f"Of {len(fits)} fits under the same prior {fits['near'].sum()} are within 0.02"
    yield f"{right.sum()} of these are right in width too"


def of_predictions():
    same = pd.concat([pairs(name, *paper.same) for name, paper in compared.PAPERS.items()])
    l1 = pd.concat([pairs(name, p.exact, "l1_logistic") for name, p in compared.PAPERS.items()])
    better, worse = clear(same, "log_score", 1), clear(same, "log_score", -1)
    yield f"a clearly better log score on {better} of {len(same)} tables"
    yield f"a clearly worse one on {worse}."
    golub = l1[l1["data"].isin(("golub", "leukemia_discrete", "allaml"))]
    counts = [clear(l1, "log_score", 1), len(l1), clear(l1, "log_score", -1)]
    yield "clearly better on {} of {} tables and clearly worse on {}, of which".format(*counts)
    yield f"of which {clear(golub, 'log_score', -1)} are the same 72 patients"
    printed = ends(pairs("RFVM", "exact", "rfvm_vb-elbo")["log_score"], "+.2f")
    colon, golub = (difference("PFCVM", x, "exact", "pfcvm_lp") for x in ("colon", "golub"))
    yield f"ahead by {printed} for RFVM and {colon} for PFCVM on colon, and behind on golub"
    yield f"golub ({golub})."


def of_advice():
    fits = kept_rows.read(known_truth.FITS)
    truth, horseshoe = Results(fits, known_truth.METHODS), "horseshoe, exact"
    kept = truth.converged([horseshoe])
    power = truth.mean(horseshoe, "power_20")
    yield f"finds {100 * power.value:.1f} ± {100 * power.error:.1f} % of the active features"
    yield f"{of_truth.signed(truth.more(horseshoe, 'L1', 'power_20'), 'power_20')} points over L1"
    converged = truth.more(horseshoe, "L1", "power_20", kept)
    yield f"{of_truth.signed(converged, 'power_20')} where it converged"
    yield f"({kept.sum()} of {truth.sets} sets)"
    for method, said in (("pfcvm, exact", "by exact PFCVM"), (horseshoe, "by the horseshoe")):
        false, promised = truth.false(method, "half"), 100 * truth.expected(method, "half")
        share = f"{100 * false.value:.1f} ± {100 * false.error:.1f} %"
        yield f"{share}{' are false' * (method != horseshoe)} {said} (promised {promised:.1f})"
    exact = [row for row in fits if row["method"] in of_truth.EXACT]
    ended = sum(row["status"] == "not_converged" for row in exact)
    yield f"{ended} of {len(exact)} fits had not converged"


PARTS = (
    of_own_settings, of_the_authors_program, of_picture, of_exact, of_table, of_algorithms,
    of_predictions, of_advice,
)  # fmt: skip


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_each_number_stands_in_its_sentence(part):
    page = PAGE.read_text()
    for said in part():
        assert said in page


def test_the_talk_has_the_same_table_and_distances():
    talk = TALK.read_text()
    for said in of_table():
        assert said in talk
    column = [float(said.split("|")[3]) for said in of_table()]
    assert f"one answer for all patients: {ends(column)}" in talk
    states = cell(PAPERS, KNOWN["model"].isin(("fsklr", "sklr")))["p_draw"]
    assert f"one single draw from the posterior: {ends(states)}" in talk
    assert f"two runs of the exact sampler: {cell(AGAIN)['p_off'].max():.4f} at most" in talk


def test_the_dots_of_the_picture_are_those_of_the_matrix():
    frame = patients.stored()
    assert not patients.missing()
    for panel in (p for p in patients.PANELS if p.block):
        mine = frame[frame["model"] == panel.name]
        fit = cell(PAPERS, KNOWN["block"] == panel.block).iloc[0]
        off = (mine["paper"] - mine["exact"]).abs().mean()
        assert (len(mine), off) == (fit["N"], pytest.approx(fit["p_off"], abs=0.01))


def test_what_is_said_of_the_dots():
    """The titles of the panels; the first three posteriors put every row into its class."""
    dots = dict(iter(patients.stored().groupby("model")))
    assert np.ptp(dots["PFCVM"]["paper"]) < 0.1
    assert np.ptp(dots["RFVM"]["paper"]) < 0.02
    unsure = (dots["JCFO"][["exact", "paper"]] - 0.5).abs()
    assert (unsure["paper"] < unsure["exact"]).mean() > 0.75
    masks = dots["FS-SKLR"]
    assert masks[["exact", "paper"]].corr().iloc[0, 1] > 0.95
    assert (masks["paper"] - masks["exact"]).abs().max() > 0.2
    wrong = {name: ((mine["exact"] > 0.5) != mine["y"]).sum() for name, mine in dots.items()}
    assert [name for name, count in wrong.items() if count] == ["FS-SKLR"]
