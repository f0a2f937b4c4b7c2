"""What the papers' pages say holds for the stored folds, whose means are computed once more."""

import csv
import math
import re
import shutil
from collections import Counter
from pathlib import Path
from statistics import fmean, variance

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import ardvark as av
from ardvark.inference.fits.prior_activity import prior_activity
from lab import pages, records
from lab.lines import read
from lab.papers import figures, goals, rows, run, store
from lab.papers.figures import CLEAR, Found
from lab.papers.fold import FLOOR, find
from lab.papers.sheets import BY_PAPER, SHEETS
from lab.papers.tables import GROUPS, SELECTORS, costly
from tests.support import rng

FILES = sorted(pages.FOLDS.glob("*.csv"))
FOUND = Found(pages.FOLDS)
CSV = records.HERE / rows.FILE
SAME = 1.5  # points: so far the mean over folds of a class's share is from its share


def mean(name, column):
    return FOUND.of(name).mean(column)[0]


def minus(first, second, column="log_score"):
    """The difference of two rows by their full names, and its +-."""
    return FOUND.of(first).beside(FOUND.of(second), column)


def all_of(paper, first, second, column="log_score"):
    """The differences on all data sets of a paper, by data set."""
    return FOUND.pairs((first, second), paper, column)


def is_clear(pair):
    return abs(pair[0]) > CLEAR * pair[1]


def constant(paper, label):
    """The data sets on which a row is about as accurate as answering the larger class."""
    groups = FOUND.groups(BY_PAPER[paper])
    return {g.data for g in groups
            if abs(mean(f"{g.name}/{label}", "accuracy") - 100 * g.sizes[2]) < SAME}  # fmt: skip


# --- the means, by the standard library -----------------------------------------------------------


def error(values, binomial):
    p, n = fmean(values), len(values)
    return math.sqrt(p * (1 - p) / n if binomial else variance(values) / n)


def test_each_mean_of_the_table_once_more():
    """Means, errors and differences to L1 of every row, from the files of folds."""
    stored = {}
    for path in FILES:
        with path.open(newline="") as file:
            for x in csv.DictReader(file):
                stored.setdefault((x["row"], x["step"]), {})[int(x["fold"])] = x
    with CSV.open(newline="") as file:
        told = list(csv.DictReader(file))
    checked = 0
    for line in told:
        table, data, row, step = (line[k] for k in ("table", "data", "row", "step"))
        folds = stored[f"{table}/{data}/{row}", step]
        group, _ = find(f"{table}/{data}/{row}")
        left_out = group.protocol.folds is None
        for column in ("accuracy", "f1", "log_score", "features", "samples"):
            if not line[column]:
                continue
            value = {k: float(x[column]) for k, x in folds.items() if x[column]}
            unit = dict.fromkeys(value, 1.0 if column == "log_score" else 100.0)
            if column in ("features", "samples"):
                size = {k: group.sizes[1] if column == "features" else int(folds[k]["n_train"])
                        for k in value}  # fmt: skip
                unit = {k: 100.0 / size[k] if group.percent else 1.0 for k in value}
            scaled = [unit[k] * value[k] for k in value]
            binomial = left_out and column == "accuracy"
            spread = 100.0 * error(list(value.values()), True) if binomial else error(scaled, False)
            assert float(line[column]) == pytest.approx(fmean(scaled), rel=1e-4, abs=1e-9)
            assert float(line[f"{column}_error"]) == pytest.approx(spread, rel=1e-4, abs=1e-9)
            checked += 1
            if line.get(f"{column}_l1") and not step:
                l1 = stored[f"{table}/{data}/l1_logistic", ""]
                apart = [unit[k] * (value[k] - float(l1[k][column])) for k in value]
                assert float(line[f"{column}_l1"]) == pytest.approx(
                    fmean(apart), rel=1e-4, abs=1e-9
                )
                assert float(line[f"{column}_l1_error"]) == pytest.approx(
                    error(apart, False), rel=1e-4, abs=1e-9
                )
    assert checked > 2000
    whole = {(x["table"], x["data"], x["row"]) for x in told if x["folds"] == x["of"]}
    assert len(whole) == figures.summary(FOUND)["rows"]


def test_the_table_is_what_the_folds_say():
    stored = pd.read_csv(CSV)
    now = rows.table(FOUND.rows)
    assert list(stored.columns) == list(now.columns)
    numbers = now.select_dtypes("number").columns
    pd.testing.assert_frame_equal(stored[numbers], now[numbers], rtol=1e-4, check_dtype=False)


# --- what is claimed in words ---------------------------------------------------------------------


def test_the_claims_of_the_summary():
    given = figures.summary(FOUND)
    assert given["near"] / given["pairs"] == pytest.approx(0.5, abs=0.05)
    assert given["exact_same_log_score_lower"] == given["exact_l1_log_score_higher"] == 0
    gaps = {(s.name, data): gap for s in SHEETS
            for data, (gap, _) in FOUND.gaps(s, s.algorithm).items()}  # fmt: skip
    assert {min(gaps, key=gaps.get), max(gaps, key=gaps.get)} == {
        ("PFCVM", "colon"), ("FS-SKLR", "ionosphere")
    }  # fmt: skip
    assert sorted(gaps, key=gaps.get)[1] == ("JCFO", "colon")
    assert gaps["FS-SKLR", "ionosphere"] == pytest.approx(15.0, abs=0.5)
    assert FOUND.wrong("pfcvm-6/colon/pfcvm_lp") == "12 of 62 (the paper: 2)"
    assert FOUND.wrong("jcfo-1/colon/jcfo-printed") == "10 of 62 (the paper: 2)"
    rfvm = FOUND.gaps(BY_PAPER["RFVM"], "rfvm_vb-elbo")
    near = [f"rfvm-3-4/{data}/rfvm_vb-elbo" for data, (gap, sd) in rfvm.items()
            if abs(gap) <= CLEAR * sd]  # fmt: skip
    assert [FOUND.of(name).finished for name in near] == [0, 0, 0]
    for paper, count in (("PFCVM", 2), ("RFVM", 5)):
        of_genes = all_of(paper, *BY_PAPER[paper].same)
        assert len(of_genes) == count
        assert all(is_clear(pair) and pair[0] > 0 for pair in of_genes.values())
    larger = len(constant("PFCVM", "pfcvm_lp-model")) + len(constant("RFVM", "rfvm_vb-model"))
    assert larger == 6  # of 7: "on most sets"
    savb = all_of("FSKLR", "fsklr-exact", "fsklr")
    assert all(0.005 < x < 0.025 for x, _ in savb.values())
    assert not is_clear(minus("jcfo-1/colon/exact-chosen", "jcfo-1/colon/jcfo-one"))
    better = [s.paper for s in SHEETS
              for x, sd in FOUND.pairs((s.algorithm, "l1_logistic"), s.paper, s.measure).values()
              if x > CLEAR * sd]  # fmt: skip
    assert set(better) == {"FSKLR"}
    for data, most in (("colon", 18), ("golub", 4)):
        assert round(max(gains(data).values())) == most


def test_the_laboratorys_readme_says_so():
    given, said = figures.summary(FOUND), (records.HERE / "README.md").read_text()
    assert f"on {given['near']} of {given['pairs']} pairs of a paper and a data set" in said
    better, of = given["exact_same_log_score_higher"], given["exact_same_of"]
    claim = "under the same prior the exact posterior has the better log score on"
    assert f"{claim} {better} of {of}" in said


def gains(data):
    return {x: minus(f"pfcvm-6/{data}/select-{x}-outside", f"pfcvm-6/{data}/select-{x}-inside",
                     "accuracy")[0] for x in SELECTORS}  # fmt: skip


def test_the_claims_of_pfcvms_page():
    colon, golub = "pfcvm-6/colon", "pfcvm-6/golub"
    assert constant("PFCVM", "pfcvm_lp-model") == {"colon", "golub"}
    assert max(gains("colon"), key=gains("colon").get) == "jcfo"
    settings = [r for r in FOUND.rows.values() if r.group.name in (colon, golub)
                and r.row.reading == "as printed" and r.whole and not r.collapsed]  # fmt: skip
    for r in settings:  # none has the printed number with the printed accuracy
        if r.row.printed:
            few = r.mean("features")[0] < 2 * r.row.printed["features"]
            assert not (few and abs(r.mean("accuracy")[0] - r.row.printed["accuracy"]) < 2.0)
    assert FOUND.of(f"{golub}/pfcvm_lp-50/30").collapsed == 72
    assert not is_clear(minus(f"{colon}/exact-dense", f"{colon}/pfcvm_lp-dense"))
    assert not is_clear(minus(f"{colon}/exact-dense", f"{colon}/pfcvm_lp-dense", "accuracy"))
    assert is_clear(minus(f"{golub}/exact", f"{golub}/pfcvm_lp"))
    for group in (colon, golub):
        for column in ("accuracy", "log_score"):
            assert not is_clear(minus(f"{group}/exact", f"{group}/pcvm", column))
    for data, kept in (("colon", 2000), ("golub", 7129)):  # active ones: as the prior expects
        assert mean(f"pfcvm-6/{data}/exact", "features") < 0.01 * kept
    selector, row = (find(f"{colon}/{x}")[1] for x in ("select-pfcvm-inside", "pfcvm_lp-50/30"))
    assert (selector.model, selector.method, selector.hypers, selector.options) == (
        row.model, row.method, row.hypers, row.options
    )  # fmt: skip
    assert not any(name.startswith("pfcvm-1/") for name in FOUND.rows)  # waveform was not run


def test_the_claims_of_jcfos_page():
    colon, golub = "jcfo-1/colon", "jcfo-1/golub"
    for column in ("accuracy", "log_score"):
        assert not is_clear(minus(f"{colon}/exact-chosen", f"{colon}/jcfo-one", column))
    assert all(mean(f"{group}/exact", "features") < 0.01 for group in (colon, golub))
    for label in ("jcfo-filled", "sparse_probit-filled"):
        assert set(FOUND.of(f"{colon}/{label}").by_fold("features").values()) == {0.0}
    # P = 0.5 throughout, so every sample is put into the smaller class
    assert mean(f"{colon}/sparse_probit-filled", "accuracy") == pytest.approx(35.5, abs=0.1)
    assert mean(f"{colon}/sparse_probit-filled", "log_score") == pytest.approx(
        math.log(0.5), abs=1e-3
    )
    scores = list(FOUND.of(f"{golub}/jcfo-printed").by_fold("log_score").values())
    at_bound = [x for x in scores if x < math.log(FLOOR) + 1e-3]
    assert len(at_bound) == 2
    assert sum(at_bound) / len(scores) == pytest.approx(-0.38, abs=0.005)
    assert "jcfo-1/colon/jcfo" not in FOUND.rows  # the best of six starts was not run


@pytest.mark.parametrize("gamma2", [0.25, 2.5, 25.0, 250.0])
def test_what_jcfos_prior_expects_is_what_draws_of_it_have(gamma2):
    """400 draws of the model's own prior; their number of active features has an sd below 6."""
    data = (rng(0).standard_normal((61, 50)), np.arange(61) % 2)
    problem = av.problem("jcfo", data, gamma1=61.0, gamma2=gamma2, scale="fixed")
    drawn = prior_activity(problem, 0.1)
    expected = figures.expected_active(61.0, gamma2, 61, 50)
    error = drawn.active["feature"].sum(axis=1).std() / len(drawn.active["feature"]) ** 0.5
    assert drawn.number("feature")[0] == pytest.approx(expected, abs=5.0 * error)


def test_the_active_genes_of_jcfos_posterior_are_those_of_its_prior():
    told = figures.chosen(FOUND)
    assert len(told) == 62
    near = (told["posterior"] - told["prior"]).abs().groupby(told["gamma2"]).mean()
    assert near.idxmax() == 250.0  # only under the strongest penalty the data say otherwise
    assert near.drop(250.0).max() < 2.0


def test_the_claims_of_rfvms_page():
    printed = "rfvm_vb-elbo"
    groups = FOUND.groups(BY_PAPER["RFVM"])
    names = [f"{g.name}/{printed}" for g in groups if FOUND.get(f"{g.name}/{printed}")]
    kept = [mean(name, "features") for name in names]
    released = [mean(name.replace(printed, "rfvm_vb-example"), "features") for name in names]
    assert (round(min(released), 1), round(max(released), 1)) == (0.1, 0.4)
    assert (round(min(kept)), round(max(kept))) == (60, 100)
    assert [round(x, 2) for x in sorted(find(name)[1].printed["features"] for name in names)][
        :: len(names) - 1
    ] == [0.12, 3.74]
    long = [mean(f"{g.name}/rfvm_vb", "features") for g in groups]
    assert (round(min(long), 1), round(max(long))) == (0.1, 3)
    early = all_of("RFVM", "rfvm_vb@300", "rfvm_vb@20000", "accuracy")
    assert sum(x > 0.05 for x, _ in early.values()) == 4
    assert len(early) == 5
    limit = stats.t.ppf(0.975, 4)
    assert [d for d, (x, sd) in early.items() if abs(x) > limit * sd] == ["lymphoma_discrete"]
    sparse = all_of("RFVM", "exact", "rfvm_vb-model", "accuracy")
    assert sorted(round(x) for x, _ in sparse.values())[:: len(sparse) - 1] == [16, 36]
    assert len(constant("RFVM", "rfvm_vb-model")) == 4
    dense, score = (all_of("RFVM", "exact-dense", "rfvm_vb-dense", x)
                    for x in ("accuracy", "log_score"))  # fmt: skip
    assert round(max(x for x, _ in dense.values())) == 11
    assert all(x > 0.0 for x, _ in score.values())
    prior = all_of("RFVM", "exact-dense", "exact", "accuracy")
    assert max(abs(x) for x, _ in prior.values()) < 3.05
    assert max(abs(x) for x, _ in all_of("RFVM", "exact-dense", "exact").values()) < 0.105
    cut = all_of("RFVM", "rfvm_vb-truncated", "rfvm_vb", "accuracy")
    assert sorted(round(x) for x, _ in cut.values())[:: len(cut) - 1] == [1, 12]
    share = [mean(f"{g.name}/rfvm_vb-truncated", "features") for g in groups]
    assert (round(min(share)), round(max(share))) == (4, 22)
    assert all(mean(f"{g.name}/xolon", "features") < 1.0 for g in groups)
    xolon = [find(f"{g.name}/xolon")[1].printed["features"] for g in groups]
    assert (round(min(xolon)), round(max(xolon))) == (51, 90)
    against = all_of("RFVM", "exact", printed)
    assert len(against) == 4
    assert all(x > 0 for x, _ in against.values())
    assert [data for data, pair in against.items() if not is_clear(pair)] == ["leukemia_discrete"]
    for g in groups:
        for label in ("rfvm_vb-model", "rfvm_vb-dense"):  # nothing is pruned
            assert mean(f"{g.name}/{label}", "features") == 100.0


def test_the_claims_of_fsklrs_page():
    sheet = BY_PAPER["FSKLR"]
    for label in figures.OTHER_CLASS:
        gaps = FOUND.gaps(sheet, label)
        assert gaps["ionosphere"][0] > 0
        assert gaps["sonar"][0] > 0
    same = all_of("FSKLR", "fsklr-exact", "fsklr", "f1")
    assert all(x > -0.05 for x, _ in same.values())
    assert all(0.0 < x < 0.025 for x, _ in all_of("FSKLR", "fsklr-exact", "fsklr").values())
    shared = all_of("FSKLR", "fsklr-exact-printed", "fsklr-printed", "f1")
    assert set(shared) == {"heart", "sonar"}
    assert all(x < 0.0 for x, _ in shared.values())
    groups = FOUND.groups(sheet)
    assert all(mean(f"{g.name}/fsklr-printed", "samples") > 99.9 for g in groups)
    kept = [mean(f"{g.name}/fsklr", "samples") for g in groups]
    assert (round(min(kept)), round(max(kept))) == (2, 9)
    prior = {d: x for d, (x, _) in all_of("FSKLR", "fsklr-printed", "fsklr", "f1").items()}
    assert max(prior, key=prior.get) == "sonar"
    assert prior["sonar"] == pytest.approx(10.5, abs=0.2)
    literal = [r for name, r in FOUND.rows.items() if name.endswith("/fsklr-literal")]
    assert [(r.finished, r.mean("features")[0]) for r in literal] == [(0, 100.0), (0, 100.0)]
    matched = all_of("FSKLR", "fsklr-matched", "l1_logistic-matched", "f1")
    assert set(matched) == {"sonar"}
    assert is_clear(matched["sonar"])
    assert matched["sonar"][0] > 0.0


def test_a_page_names_its_rows():
    declared = {row.label for group in GROUPS for row in group.rows}
    for file, text in pages.written().items():
        labels = re.findall(r"`(\w+[-/\w]*)`", text)
        if file.startswith("papers/"):
            assert len(declared & set(labels)) > 5


# --- the pages and the files ----------------------------------------------------------------------


def test_the_goals_count_printed_figures_that_are_near():
    for goal in goals.goals(pages.FOLDS):
        paper, _, rest = goal.goal.partition(", ")
        reading = "baseline" if rest.startswith("its") else "as printed"
        near = []
        for name, r in FOUND.rows.items():
            if r.group.paper != paper or r.row.reading != reading or not r.whole:
                continue
            for what in {"accuracy", "f1"} & set(r.row.printed):
                ours = FOUND.of(name).mean(what)
                if ours is not None:
                    close = abs(ours[0] - r.row.printed[what]) <= 2.0 * ours[1]
                    near.append(close and not r.collapsed)
        if near:
            assert goal.measured == f"{sum(near)} of {len(near)} figures"


def test_a_changed_fold_changes_its_pages(tmp_path):
    for file in FILES:
        shutil.copy(file, tmp_path)
    file = tmp_path / "fsklr-3_sonar.csv"
    head, first, *rest = file.read_text().splitlines()
    cells = first.split(",")
    cells[3] = str(1.0 - float(cells[3]) + 0.001)  # accuracy, of L1
    file.write_text("\n".join([head, ",".join(cells), *rest]) + "\n")
    before, after = rows.table(FOUND.rows), rows.table(Found(tmp_path).rows)
    changed = before[~before["accuracy"].eq(after["accuracy"]) & before["accuracy"].notna()]
    assert changed[["data", "row"]].to_numpy().tolist() == [["sonar", "l1_logistic"]]


def test_a_row_that_is_partial_is_in_no_table(tmp_path):
    for file in FILES:
        shutil.copy(file, tmp_path)
    file = tmp_path / "jcfo-1_colon.csv"
    lines = [
        x for x in file.read_text().splitlines() if not x.startswith("jcfo-1/colon/jcfo-one,3")
    ]
    file.write_text("\n".join(lines) + "\n")
    found = Found(tmp_path)
    assert found.get("jcfo-1/colon/jcfo-one") is None
    assert "colon" not in found.pairs(("jcfo-one", "l1_logistic"), "JCFO", "accuracy")
    with pytest.raises(KeyError, match="jcfo-one"):
        figures.jcfo(found)


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_each_stored_line_is_of_a_declared_row(file):
    seen = Counter()
    for line in read(file):
        group, row = find(line["row"])
        assert file == store.file_of(group, pages.FOLDS, path=line["step"] != "")
        assert line["identity"] == store.identity(group, row), f"{line['row']}: run it again"
        assert 0 <= int(line["fold"]) < group.folds
        assert line["status"] in ("finished", "not_converged", "failed") or line["step"]
        if line["status"] != "failed":
            seen[line["row"], line["fold"], line["step"]] += 1
            assert 0.0 <= float(line["accuracy"]) <= 1.0
    assert set(seen.values()) <= {1}


def test_the_command_makes_exactly_the_rows_shown():
    """Every row but the costly ones, with all of its folds; of the costly ones what was run."""
    stored = Counter(x["row"] for file in FILES for x in read(file) if not x["step"])
    declared = {f"{g.name}/{r.label}": g.folds for g in GROUPS for r in g.rows}
    default = {name for name in declared if not costly(name)}
    asked = run.chosen([t for t in run.tables() if t != "pfcvm-1"])  # of which all are costly
    assert default == {f"{group.name}/{row.label}" for group, row in asked}
    assert {name: stored[name] for name in default} == {name: declared[name] for name in default}
    assert all(costly(name) for name in set(stored) - default)


def test_the_figures_of_paths_are_drawn(tmp_path):
    from lab.papers import curves

    curves.write(tmp_path, pages.FOLDS)
    drawn = {path.name for path in tmp_path.iterdir()}
    assert drawn == {path.name for path in (records.HERE / run.FIGURES).iterdir()}
    shown = set(
        re.findall(r"paper_check/figures/([\w-]+\.png)", " ".join(pages.written().values()))
    )
    assert shown <= drawn
    assert Path(tmp_path / "rfvm_stops.png").stat().st_size > 5000
