"""FINDINGS.md against the rows: each number that comes from stored rows, in its sentence."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lab import rows as kept_rows
from lab import tables
from lab.findings import distances, left_out, patients
from lab.known_truth import known_truth, two_targets
from lab.known_truth import report as of_truth
from lab.known_truth.results import Results
from lab.matrix import rows
from lab.matrix.declared import AGAIN, EXACT, FLAT, OWN_SETTINGS, PAPERS
from lab.matrix.pages import held
from lab.papers import authors, compared
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


def dots():
    """The patients left out of each table, by model and data."""
    frame = patients.stored()
    return {(p.name, p.data): (p, patients.of_panel(frame, p)) for p in patients.PANELS}


def of_patients():
    found = {
        name: [(patients.off(rows, "own"), patients.wrong_and_sure(rows, kind).sum()) for kind in
               ("own", "exact")]
        for name, (_, rows) in dots().items()
    }  # fmt: skip
    (colon, exact), (golub, of_golub) = (found["PFCVM", data] for data in ("colon", "golub"))
    yield (
        f"PFCVM is off by {colon[0]:.2f} on colon and {golub[0]:.2f} on golub, and wrong and sure "
        f"of {colon[1]} and {golub[1]} patients (exact: {exact[1]} and {of_golub[1]})"
    )


def sure_of_the_wrong(place, label):
    """How many rows left out a row of the tables gives a tenth or less of P for their label."""
    frame = folds(place)
    p = np.exp(frame[frame["row"] == f"{place}/{label}"]["log_score"])
    return int((p <= 1.0 - patients.SURE).sum())


def folds(place):
    return pd.read_csv(patients.FOLDS / f"{place.replace('/', '_')}.csv", low_memory=False)


def of_rows_left_out():
    frame = tables.read(distances.STORED).set_index(["set", "method"])
    exact, own, same = (frame.xs(x, level="method") for x in ("exact", left_out.OWN, left_out.SAME))
    sonar, heart, masks, colon = (
        f"{x}/{prior}" for x, prior in (("pfcvm/sonar", "sparse"), ("fsklr/heart", "independent"),
                                        ("fsklr/sonar", "independent"),
                                        ("rfvm/colon_discrete", "sparse"))
    )  # fmt: skip
    mine, page = own.loc[sonar], (LAB / "papers" / "pfcvm.md").read_text()
    assert f"off by {mine['off']:.2f} from the exact posterior's under our sparse prior" in page
    sure = f"{mine['sure']} of {mine['rows']} rows (exact: {exact.loc[sonar, 'sure']});"
    beside = [frame.loc[(sonar, name), "off"] for name in (left_out.SAME, "ADVI", "Laplace")]
    said = "under that prior too it is off by {:.2f}, ADVI by {:.2f}, Laplace by {:.2f}."
    assert f"wrong and sure of {sure} {said.format(*beside)}" in page
    off = [x.loc[name, "off"] for x in (own, same) for name in (heart, masks)]
    first, second = "FS-SKLR is off by {:.2f} on heart and {:.2f} on sonar", "by {:.2f} and {:.2f}."
    yield f"{first}, under the same prior {second}".format(*off)
    three = [frame.loc[(colon, name), "off"] for name in (left_out.SAME, "ADVI", "Laplace")]
    yield f"it, ADVI and Laplace: {ends(three)}."
    program = frame.loc[(colon, left_out.PROGRAM)]
    assert program["status"].startswith("1 failed")
    yield (
        f"RFVM, with our stop, is off by {own.loc[colon, 'off']:.2f} on colon_discrete, its "
        f"authors' program by {program['off']:.2f} (it fails in 1 of {own.loc[colon, 'folds']} "
        "folds)."
    )


def of_exact():
    exact = FRAME[(FRAME["cell"] == EXACT) & (FRAME["prior"] != FLAT)]
    converged = (exact["status"] == "finished").sum()
    yield f"It converged on {converged} of {len(exact)} posteriors"


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
    own = pd.concat([pairs(name, p.exact, p.algorithm) for name, p in compared.PAPERS.items()])
    better, worse = (clear(own, "log_score", sign) for sign in (1, -1))
    score = f"log score on {better} of the {len(own)}, a clearly worse one on {worse}."
    yield f"has a clearly better {score}"
    named = TABLE["row"].str.startswith("pfcvm_lp") & (TABLE["reading"] == "as printed")
    mine = TABLE[named & (TABLE["table"] == "pfcvm-6") & (TABLE["data"] == "colon")]
    yield f"others of ours have up to {mine['accuracy'].max():.1f} % of colon right."
    jaccard, error, printed = (
        value("pfcvm-1/waveform/pfcvm_lp", x)
        for x in ("jaccard", "jaccard_error", "printed_jaccard")
    )
    yield f"on waveform agree by {jaccard:.2f} ± {error:.2f} (Jaccard; printed {printed:g})."
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
    (masks, gap) = next((near, gap) for name, near, gap in within() if name == "FSKLR")
    yield f"is within on {masks.sum()} of {len(masks)} tables"
    assert (gap[~masks] > 0.0).all()
    yield f"above the print on the other {(~masks).sum()}, as L1 and an SVM are."
    above = TABLE.loc[gap[~masks].index, "data"]
    for place in (f"fsklr-3/{data}/{row}" for data in above for row in ("l1_logistic", "rbf_svm")):
        assert value(place, "f1") > value(place, "printed_f1")
    small = [
        value(f"fsklr-3/{data}/fsklr-whole-{a}", "samples")
        for data in ("sonar", "heart")
        for a in ("0.5", "0.01")
    ]
    assert set(small) == {100.0}  # as its page says
    kept = [value(f"jcfo-1/{data}/jcfo-printed", "features") for data in ("colon", "golub")]
    assert [round(x) for x in kept] == [10, 10]
    yield "It keeps about ten genes, fewer than half of sparse probit's, as claimed."
    colon, golub = (
        value(place, "accuracy") for place in ("jcfo-1/colon/jcfo-open",
                                               "jcfo-1-five/golub/jcfo-open-five")
    )  # fmt: skip
    yield f"it has {colon:.1f} % of colon, and {golub:.1f} % of golub by five folds."
    ahead = [
        sum(value(f"{place}/fsklr-printed", "f1") > value(f"{place}/{row}", "f1") for place in (
            "fsklr-2/digits38_noisy", *(f"fsklr-3/{data}" for data in UCI)
        ))
        for row in ("sklr", "fs_skr", "rbf_svm")
    ]  # fmt: skip
    yield "on {} and {} of 7, as claimed, and of the SVM on {}, not 7.".format(*ahead)


UCI = ("australian", "breast_wisconsin", "heart", "ionosphere", "messidor", "sonar")


def of_both_targets():
    linear, curved = (
        two_targets.table(kept_rows.read(two_targets.HERE / f"two_targets_{x}.csv"), x)
        .set_index("method") for x in two_targets.TARGETS
    )  # fmt: skip

    def percent(frame, column, *which):
        return [f"{100 * float(frame.loc[m, column].split()[0]):.0f}" for m in which]

    both, false = ("jcfo_em", "fsklr_savb"), "own list: false"
    found, lost = percent(linear, "power", *both), percent(linear, false, *both)
    yield (
        f"algorithms find {found[0]} and {found[1]} % of the active ones of a linear target, and "
        f"{lost[0]} and {lost[1]} % of what they keep is false;"
    )
    (slab,) = percent(linear, false, two_targets.LINEAR)
    assert percent(linear, "power", two_targets.LINEAR) == ["100"]
    yield f"a plain spike and slab finds all, with {slab} % false."
    yield "On a curved target they find {} and {} %.".format(*percent(curved, "power", *both))


def of_the_authors_program():
    frame = tables.read(authors.STORED)
    theirs = frame[frame["by"] == authors.THEIRS].set_index(["data", "fold"])
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
    yield "it has {} % right (printed {:g}, sd {:g})".format(shown, *printed)
    ended = colon["ended"] == "no number"
    few = ends(colon[~ended]["features"], ".0f", " or ")
    yield f"in {(~ended).sum()} of {len(colon)} folds {few} of 2000 genes are left;"
    yield "in the others, where it breaks off, {} and {}.".format(*sorted(colon[ended]["features"]))


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


def of_medians():
    """What the table comes to, in the page's sentence."""
    row = [said.split(" | ") for said in of_table()]
    off = [cells[4].split()[0] for cells in row]
    yield f"PFCVM's algorithm is off by {off[0]} in the median and RFVM's by {off[2]};"
    yield f"one answer for all patients is by {row[0][2]} and {row[2][2]}."
    yield f"they are off by {off[1]} and {off[3]}, and FS-SKLR's, under its own, by {off[4]}."


def of_predictions():
    same = pd.concat([pairs(name, *paper.same) for name, paper in compared.PAPERS.items()])
    l1 = pd.concat([pairs(name, p.exact, "l1_logistic") for name, p in compared.PAPERS.items()])
    for frame, sign, form in (
        (same, 1, "a clearly better log score on {} of {} tables ({} of {} sets of subjects)"),
        (l1, -1, "of {1} tables and clearly worse on {0} ({2} of {3} sets of subjects)"),
    ):
        yield form.format(clear(frame, "log_score", sign), len(frame), *subjects(frame, sign))
    yield f"a clearly worse one on {clear(same, 'log_score', -1)}."
    own = pairs("FSKLR", "fsklr-exact-printed", "fsklr-printed").set_index("data").loc["sonar"]
    assert own["log_score"] < -CLEAR * own["log_score_error"]
    shown = signed(own["log_score"], own["log_score_error"], 2)
    yield f"Under the mask prior of FS-SKLR's algorithm it is clearly worse on sonar ({shown})."
    yield f"clearly better on {clear(l1, 'log_score', 1)} of {len(l1)} tables"


def test_the_conclusion_beside_l1():
    page = (LAB / "PAPER_CHECK.md").read_text()
    sentence = "and clearly worse on {}; by log score better on {} and worse on {}."
    for role, form in (
        ("algorithm", "in accuracy or F1 on {} of {} pairs, all of FS-SKLR, " + sentence),
        ("exact", "in accuracy or F1 on {} of {} " + sentence),
    ):
        mine = pd.concat(
            [pairs(n, getattr(p, role), "l1_logistic") for n, p in compared.PAPERS.items()]
        )
        counts = [clear(mine, x, sign) for x in ("measure", "log_score") for sign in (1, -1)]
        assert form.format(counts[0], len(mine), *counts[1:]) in page
    better = APART["measure"] > CLEAR * APART["measure_error"]
    first = APART["first"].isin([p.algorithm for p in compared.PAPERS.values()])
    assert set(APART[better & first & (APART["second"] == "l1_logistic")]["paper"]) == {"FSKLR"}


def of_equal_tuning():
    every = tables.read(LAB / "findings" / "equal_tuning_differences.csv")
    judged = every[every["second"].isin(("L1", "elastic net", "ridge"))]
    mine = judged[judged["first"] == "exact, tuned"]["clear"]
    yield (
        f"ahead of L1, elastic net and ridge in {(mine == 1).sum()} of {len(mine)} differences, "
        f"behind in {(mine == -1).sum()};"
    )
    kernel = every[every["second"] == "kernel ridge"]
    assert clear(kernel, "log_score", -1) == 2
    yield "ridge on a kernel is ahead of it on two."
    l1 = pd.concat([pairs(name, p.exact, "l1_logistic") for name, p in compared.PAPERS.items()])
    behind = l1[l1["log_score"] < -CLEAR * l1["log_score_error"]]
    assert not set(behind["data"]) & set(every["data"])
    yield f"on four tables, none of these {len(behind)} (protocol fixed beforehand)"


def subjects(frame, sign):
    """How many sets of subjects have a clear table, and how many there are: each counts once."""
    same = {"colon_discrete": "colon", "leukemia_discrete": "golub", "allaml": "golub"}
    which = frame["data"].replace(same)
    found = sign * frame["log_score"] > CLEAR * frame["log_score_error"]
    return which[found].nunique(), which.nunique()


def of_advice():
    fits = kept_rows.read(known_truth.FITS)
    truth, horseshoe = Results(fits, known_truth.METHODS), "horseshoe, exact"
    kept = truth.converged([horseshoe])
    yield f"Where it converged ({kept.sum()} of {truth.sets} simulated sets)"
    power = truth.mean(horseshoe, "power_20", kept)
    more = of_truth.signed(truth.more(horseshoe, "L1", "power_20", kept), "power_20")
    share = f"{100 * power.value:.1f} ± {100 * power.error:.1f} %"
    yield f"at most 20 % false have {share} of the active features: {more} points over L1"
    for method, said in (
        ("pfcvm, exact", "are false by PFCVM's model under our prior"),
        (horseshoe, "by the horseshoe"),
    ):
        kept = truth.converged([method])
        false, promised = (truth.false(method, "half", kept), truth.expected(method, "half", kept))
        share = f"{100 * false.value:.1f} ± {100 * false.error:.1f} %"
        yield f"{share} {said} (promised {100 * promised:.1f})"


PARTS = (
    of_own_settings, of_the_authors_program, of_patients, of_rows_left_out, of_exact, of_medians,
    of_predictions, of_equal_tuning, of_advice, of_both_targets,
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
    fits = KNOWN[KNOWN["cell"].isin((PAPERS, "ADVI", "Laplace")) & KNOWN["p_off"].notna()]
    assert f"{len(fits)} fits. {fits['near'].sum()} are within 0.02 in P(y = 1)" in talk
    own, *others = (cell(name, SPARSE)["p_off"] for name in (OWN_SETTINGS, "ADVI", "Laplace"))
    assert (own.to_numpy() < np.minimum(*(x.to_numpy() for x in others))).all()
    assert "algorithms are nearer to the sparse posterior of genes than both." in talk
    assert f"two runs of the exact sampler: {cell(AGAIN)['p_off'].max():.4f} at most" in talk
    _, colon = dots()["PFCVM", "colon"]
    sure = [patients.wrong_and_sure(colon, kind).sum() for kind in ("own", "exact")]
    more = [sure_of_the_wrong("pfcvm-6/colon", x) for x in ("exact-dense", "l1_logistic")]
    counts = "as printed {}, exact posterior {} under the sparse prior, {} under the dense, L1 {}."
    assert counts.format(*sure, *more) in talk
    for said in of_advice():
        if "horseshoe)" not in said and "by the horseshoe" not in said:
            numbers = re.findall(r"[+-]?\d[\d.]*(?: ± [\d.]+)?(?: of \d+)?", said)
            assert all(number.rstrip(".") in talk for number in numbers), said


def test_the_patients_are_those_of_the_tables():
    """Each of their three rows has the log score of the papers' tables, and so every patient."""
    for (_, data), (panel, mine) in dots().items():
        assert len(mine) == {"colon": 62, "golub": 72}[data]
        for kind in ("exact", *patients.KINDS):
            label = getattr(panel, kind)
            of_label = np.where(mine["y"] == 1, mine[kind], 1.0 - mine[kind])
            stored = folds(f"{panel.table}/{data}").query("row == @place", local_dict={
                "place": f"{panel.table}/{data}/{label}"
            }).sort_values("fold")["log_score"]  # fmt: skip
            assert of_label == pytest.approx(np.exp(stored), abs=1e-4)
            mean = value(f"{panel.table}/{data}/{label}", "log_score")
            assert stored.mean() == pytest.approx(mean, abs=1e-4)


def test_under_the_sparse_prior_pfcvm_has_one_answer_for_every_patient():
    for (name, _), (_, mine) in dots().items():
        spread = np.ptp(mine["same"])
        assert (spread < 0.05) == (name == "PFCVM")
        assert np.ptp(mine["exact"]) > 0.8
