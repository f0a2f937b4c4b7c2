"""The printed genes: the pieces that are stored, and each sentence computed once more."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest

from ardvark.data import Dataset
from ardvark.inference.fits.activity import activity, needed
from ardvark.inference.fits.groups import any_active
from ardvark.models.parts.effects import VISIBLE
from tests import support

ROOT = Path(__file__).parents[2]

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(ROOT))
    from benchmarks import printed_genes, records
    from benchmarks.genes import pieces, summary
    from benchmarks.genes.declared import HERE, TABLES, Fit, Folds, Gene, Table, asked_of, genes
    from benchmarks.genes.prior import prior_of
    from benchmarks.genes.summary import Stored

STORED = Stored.of(HERE)
SIZES = {"colon": 2000, "golub": 7129, "allaml": 7129}


def rows_of(name):
    path = HERE / f"{name}.csv"
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


# --- what is printed ------------------------------------------------------------------------------


def test_each_printed_row_has_one_column():
    tables = {row["table"] for row in rows_of("printed")}
    assert tables == {table.name for table in TABLES}
    for table in TABLES:
        numbers = [g.number for g in genes()[table.name]]
        assert len(set(numbers)) == len(numbers)
        assert min(numbers) >= 1
        assert max(numbers) <= SIZES[table.data]
        places = [g.place for g in genes()[table.name]]
        assert places == sorted(places)
        assert set(places) == set(range(1, max(places) + 1))
    names = {}
    for data in ("colon", "golub"):
        for number, name in asked_of(data).items():
            assert names.setdefault((data, number), name) == name


def test_columns_whose_printed_name_is_another_one_say_why():
    for row in rows_of("printed"):
        if row["table"] == "rfvm-5":  # prints descriptions, no names
            continue
        index, accession = row["as_printed"].split()
        shift = 1 if row["table"] == "jcfo-2" else 0  # it counts the heading
        assert int(index) - shift == int(row["number"]) or row["note"]
        assert row["gene"].startswith(accession) or row["note"]


def test_gene_377_is_another_one_than_its_printed_accession():
    printed = [r for r in rows_of("printed") if r["as_printed"] == "377 R39681"]
    assert [(r["number"], r["gene"]) for r in printed] == [("377", "Z50753"), ("337", "R39681")]
    rank = {r["gene"]: int(r["rank"]) for r in rows_of("posterior")
            if r["fit"] == "colon/pfcvm/as it is"}  # fmt: skip
    assert rank["Z50753"] == 1
    assert rank["R39681"] > 1000


def test_stored_genes_are_the_printed_ones():
    for fit in {x["fit"] for x in rows_of("posterior")}:
        found = [x for x in rows_of("posterior") if x["fit"] == fit]
        expected = asked_of(fit.split("/")[0])
        assert {int(x["number"]): x["gene"] for x in found} == expected
        assert len(found) == len(expected)


# --- pieces ---------------------------------------------------------------------------------------


class Quick(pieces.Posteriors):
    """Posteriors that are made up."""

    def start(self):
        return self.made

    def made(self, fit):
        if fit.model == "rfvm":
            raise ValueError("no such thing")
        with (self.folder / "made").open("a") as file:
            file.write(f"{fit.name}\n")
        return {"status": "finished", "seconds": 1}, [{"gene": "a", "p": 0.5}]


def test_a_stopped_run_goes_on(tmp_path):
    fits = [Fit(data="d", model=model) for model in ("pfcvm", "rfvm", "jcfo")]
    work = Quick(tmp_path, "abc", 100.0)
    assert work.run(fits[:1])[fits[0]][0]["status"] == "finished"
    pieces.append(tmp_path / "posterior.csv", [{"fit": fits[2].name, "gene": "a", "p": 0.1}])
    found = work.run(fits)  # genes of a fit without a row of its own: it was killed in between
    assert found[fits[1]][0]["status"] == "failed"
    assert (tmp_path / "made").read_text().splitlines() == [fits[0].name, fits[2].name]
    pieces.tidy(tmp_path)
    stored = pieces.read(tmp_path / "posterior.csv")
    assert [(x["fit"], x["p"]) for x in stored] == [(f.name, "0.5") for f in (fits[0], fits[2])]
    assert {x["fit"] for x in pieces.read(tmp_path / "fits.csv")} == {fits[0].name, fits[2].name}
    other = Quick(tmp_path, "abc", 200.0)
    assert not list(other.stored(fits))


def test_a_group_is_the_gene_and_what_is_correlated_with_it():
    x = support.rng(1).normal(size=(40, 4))
    X = np.column_stack([x, -x[:, 1] + 0.1 * x[:, 0], x[:, 3]])
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    assert sorted(pieces.group_of(X, 1)) == [1, 4]
    assert pieces.group_of(X, 1)[0] == 1
    assert sorted(pieces.group_of(X, 3)) == [3, 5]
    strangers = np.corrcoef(X.T)[2, [0, 1, 3]]
    assert np.abs(strangers).max() < 0.6
    assert pieces.group_of(X, 2).tolist() == [2]


@pytest.mark.statistical
@pytest.mark.parametrize("model", ["pfcvm", "jcfo", "sparse_probit"])
def test_the_prior_of_a_gene_is_that_of_counting(model):
    import ardvark as av

    rng = support.rng(2)
    X = rng.normal(size=(12, 30))
    X[:, 1] = X[:, 0] + 0.3 * rng.normal(size=12)
    problem = av.problem(model, Dataset.from_arrays(X, np.arange(12) % 2))
    members = [np.array([3]), np.array([0, 1]), np.arange(8)]
    found, error = prior_of(problem, members)
    one, draws = problem.inputs.at(problem.X[:1]), 600
    points = [problem.spec.simulate(rng, one, problem.hypers) for _ in range(draws)]
    each = {n: np.stack([np.asarray(p[n], dtype=float) for p in points])[None]
            for n in needed(problem)}  # fmt: skip
    active = activity(problem, each, VISIBLE, details=False)["feature"].active[0]
    counted = any_active(active, members).mean(axis=0)
    # `error` leaves out that the law of theta is itself a sample, of 6000 values
    law = 8.0 * np.sqrt(found * (1.0 - found) / 6000.0)
    spread = np.sqrt(counted * (1.0 - counted) / draws + error**2 + law**2)
    assert found[2] > found[0] > 0.0
    assert (np.abs(found - counted) < support.z_limit(3) * spread).all()


# --- what is said ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "error", "prior", "expected"),
    [
        (0.3, 0.05, 0.1, (0.2 / 0.8) / (0.1 / 0.9)),
        (0.3, 0.2, 0.1, 0.0),
        (0.0, np.nan, 0.1, 0.0),
        (0.2, 0.0, 0.2, 1.0),
    ],
)
def test_how_many_times_the_odds_were_raised(p, error, prior, expected):
    assert summary.raised(p, error, prior) == pytest.approx(expected)


def invented(tmp_path, top):
    gene = [Gene("t", k, k, f"g{k}", f"g{k}", 1.0, "", "") for k in (1, 2, 3)]
    folds = Folds(row="jcfo/x", label="one", count=4, total=4)
    kept = ["1:0.9 5:0.5 2:0.1", "5:0.9 1:-0.8", "2:0.4", ""]
    for k, text in enumerate(kept):
        row = {"row": folds.row, "fold": k, "status": "finished", "weights": text}
        pieces.append(tmp_path / "folds.csv", [row])
    table = Table(
        name="t", title="T", data="d", printed="", top=top, fits=(), folds=(folds,)
    )  # fmt: skip
    return Stored.of(tmp_path), table, folds, gene


def test_the_share_of_folds_that_select_a_gene(tmp_path):
    stored, table, folds, gene = invented(tmp_path, 0)
    assert [summary.frequency(stored, table, folds, g) for g in gene] == [0.5, 0.5, 0.0]
    assert summary.mean_weight(stored, folds, gene[0]) == pytest.approx(0.025)
    again = Table(name="t", title="T", data="d", printed="", top=1, fits=(), folds=(folds,))
    assert [summary.frequency(stored, again, folds, g) for g in gene] == [0.25, 0.25, 0.0]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_record_is_what_the_files_say(table):
    record = records.read(records.RESULTS / f"printed_genes-{table.name}.json")
    now = printed_genes.said(STORED, table)
    assert record.goals == now.goals
    assert record.measured == now.tables
    assert record.notes == now.notes
    assert (HERE / "figures" / f"{table.name}.png").exists()


# --- each sentence once more, from the files, by the standard library alone -----------------------


class Again:
    """A printed table, its posteriors and its folds, without the package's code."""

    def __init__(self, table):
        self.table = table
        self.names = [r["gene"] for r in rows_of("printed") if r["table"] == table.name]
        self.numbers = {r["gene"]: r["number"] for r in rows_of("printed")}
        run = {r["fit"]: r for r in rows_of("fits")}
        data = "golub" if table.data == "allaml" else table.data
        asked = [f"{data}/pfcvm/{x}" for x in ("as it is", "active_features halved",
                 "active_features doubled", "slab halved", "slab doubled")]  # fmt: skip
        self.priors = [fit for fit in asked if fit in run]
        self.fits = run
        self.rows = {(r["fit"], r["gene"]): r for r in rows_of("posterior")}

    def value(self, fit, gene, what):
        text = self.rows[fit, gene][what]
        return float(text) if text else np.nan

    def times(self, fit, gene, end=""):
        p, e, q = (self.value(fit, gene, f"{n}{end}") for n in ("p", "mcse", "prior"))
        low = p - 2 * e
        return low / (1 - low) / (q / (1 - q)) if low > 0 else 0.0

    def raised(self, fit, end=""):
        return [gene for gene in self.names if self.times(fit, gene, end) >= 3]

    def most(self, end=""):
        return max(self.names, key=lambda gene: self.times(self.priors[0], gene, end))

    def always(self, end=""):
        return [g for g in self.names if all(g in self.raised(fit, end) for fit in self.priors)]

    def largest(self, fit, what):
        return max(self.names, key=lambda gene: self.value(fit, gene, what))

    def ratios(self, name):
        out = []
        for fit in self.priors[1:]:
            if f"/{name} " in fit:
                for gene in self.names:
                    before = self.value(self.priors[0], gene, "p")
                    out += [self.value(fit, gene, "p") / before] if before >= 0.01 else []
        return out

    def shares(self, row):
        folds = [r["weights"].split() for r in rows_of("folds") if r["row"] == row]
        kept = [[pair.split(":")[0] for pair in fold] for fold in folds]
        top = self.table.top or None
        return len(folds), {
            gene: sum(self.numbers[gene] in fold[:top] for fold in kept) for gene in self.names
        }


def word(number):
    return "none" if number == 0 else str(number)


def names(text):
    return [] if text == "none" else text.split(", ")


def check_alone(again, said):
    first = again.priors[0]
    m = re.search(
        r"gives (\S+) of the (\d+) rows .* largest is (\S+) \((\S+), prior (\S+)\)\.", said
    )
    gene = again.largest(first, "p")
    above = sum(again.value(first, g, "p") > 0.5 for g in again.names)
    expected = (word(above), str(len(again.names)), f"{again.value(first, gene, 'p'):.3f}", gene,
                f"{again.value(first, gene, 'prior'):.3f}")  # fmt: skip
    assert m.groups() == expected


def check_ranks(again, said):
    ranks = sorted(again.value(again.priors[0], g, "rank") for g in again.names)
    m = re.search(
        r"\) (\S+) of the .* first (\d+) genes .* rank is (\d+), the middle one (\d+)", said
    )
    first = sum(rank <= 50 for rank in ranks)
    assert m.groups() == (word(first), "50", f"{ranks[0]:.0f}", f"{ranks[len(ranks) // 2]:.0f}")


def check_raised(again, said):
    m = re.search(r"3 times for (\d+) of (\d+): (.*)\.$", said)
    first = again.priors[0]
    told = [f"{gene} ({again.times(first, gene):.1f})" for gene in again.raised(first)]
    assert names(m[3]) == told
    assert (int(m[1]), int(m[2])) == (len(told), len(again.names))


def check_factors(again, said):
    m = re.search(r"odds of (\S+), which .* raised (\S+) to (\S+) times, by prior\.$", said)
    factors = [again.times(fit, again.most()) for fit in again.priors]
    assert m.groups() == (again.most(), f"{min(factors):.1f}", f"{max(factors):.1f}")


def check_none_raised(again, said):
    assert again.raised(again.priors[0]) == []


def check_each_prior(again, said):
    pattern = r"every one of the (\d) priors they do so for (.*); under at least one .* (\d+)\."
    m = re.search(pattern, said)
    ever = {g for fit in again.priors for g in again.raised(fit)}
    assert (int(m[1]), names(m[2]), int(m[3])) == (len(again.priors), again.always(), len(ever))


def check_ratio(again, said):
    m = re.search(r"doubling (\w+) multiplies P\(active\) by (\S+) to (\S+), where", said)
    ratios = again.ratios(m[1])
    assert (m[2], m[3]) == (f"{min(ratios):.2f}", f"{max(ratios):.2f}")


def check_group(again, said):
    first, gene = again.priors[0], again.most("_group")
    m = re.search(
        r"it, (\S+) is .* group of (\d+) is (\S+) \(prior (\S+)\), .* odds (\S+) times", said
    )
    p, q = (again.value(first, gene, f"{n}_group") for n in ("p", "prior"))
    factor = again.times(first, gene, "_group")
    members = again.rows[first, gene]["members"]
    assert m.groups() == (gene, members, f"{p:.2f}", f"{q:.2f}", f"{factor:.1f}")


def check_groups_raised(again, said):
    m = re.search(r"odds of (\d+) of \d+ groups at least 3 times: (.*)\.$", said)
    assert names(m[2]) == again.raised(again.priors[0], "_group")
    assert int(m[1]) == len(names(m[2]))


def check_groups_always(again, said):
    assert names(re.search(r"priors for (.*)\.$", said)[1]) == again.always("_group")


MODELS = {"JCFO": "jcfo", "Sparse probit": "sparse_probit", "RFVM": "rfvm"}


def check_other(again, said):
    m = re.search(r"^(.*) under its (\w+) prior expects (\S+) .* finds (\S+); .* at most (\S+) "
                  r"\((\S+), prior (\S+)\)\.", said)  # fmt: skip
    fit = f"{again.table.data}/{MODELS[m[1]]}/as it is"
    gene, row = again.largest(fit, "p"), again.fits[fit]
    assert m.groups()[2:] == (
        f"{float(row['prior_active']):.1f}", f"{float(row['active']):.1f}",
        f"{again.value(fit, gene, 'p'):.3f}", gene, f"{again.value(fit, gene, 'prior'):.3f}",
    )  # fmt: skip


def check_nothing_active(again, said):
    fit = f"{again.table.data}/{MODELS[said.split(' under')[0]]}/as it is"
    assert float(again.fits[fit]["p_leading"]) == 0.0
    assert float(again.fits[fit]["active"]) == 0.0
    assert said.endswith(f"below {float(again.fits[fit]['threshold']):g}.")


def check_computed(again, said):
    m = re.search(
        r"^The (exact posterior|paper's algorithm \((.*)\)) was .* in (\d+) of the (\d+)", said
    )
    again.row = next(f for f in again.table.folds if (f.exact or f.label == m[2]) and
                     (m[2] is None) == f.exact)  # fmt: skip
    assert int(m[3]) == again.shares(again.row.row)[0]
    assert m[4] == {"colon": "62", "golub": "72", "allaml": "5"}[again.table.data]


def check_folds(again, said):
    m = re.search(
        r"^Among (?:those kept|its (\d) genes of largest (\S+)) are (\S+) of the (\d+) rows in at "
        r"least one fold(, and (.*) in at least half of them; the most .* is (\S+), in (\d+))?\.$",
        said,
    )
    number, shares = again.shares(again.row.row)
    some = sum(count > 0 for count in shares.values())
    assert m[1] == (str(again.table.top) if again.table.top else None)
    assert m[2] == ({True: "P(active)", False: "weight"}[again.row.exact] if m[1] else None)
    assert m.groups()[2:4] == (word(some), str(len(again.names)))
    assert (m[5] is None) == (some == 0)
    if some:
        assert names(m[6]) == [g for g in again.names if 2 * shares[g] >= number]
        assert int(m[8]) == shares[m[7]] == max(shares.values())


def check_notebook(again, said):
    m = re.search(
        r"(\d+) of the (\d+) rows are among the (\d+) genes of largest P\(active\)(: .*)?; below "
        r"(\S+) are the others\.$",
        said,
    )
    found = leading_genes(again)
    told = dict(pair.rsplit(" ", 1) for pair in (m[4] or ": ")[2:].split(", ") if pair)
    expected = {g: f"{float(found[g]['p_active']):.3f}" for g in again.names if g in found}
    assert told == expected
    least = min(float(x["p_active"]) for x in found.values())
    assert m.groups()[:3] == (str(len(expected)), str(len(again.names)), str(len(found)))
    assert m[5] == f"{least:.3f}"


def leading_genes(again, end=""):
    data = "golub" if again.table.data == "allaml" else again.table.data
    lines = (ROOT / "notebooks" / f"genes_{data}{end}.csv").read_text().splitlines()[1:]
    key = "group" if end else "gene"
    return {row[key]: row for row in csv.DictReader(lines)}


def check_its_group(again, said):
    m = re.search(
        r"that (\S+) leads there has (\d+) genes, (\d+) of .* P (\S+) \(prior (\S+)\)", said
    )
    group, found = leading_genes(again, "_groups")["0"], leading_genes(again)
    inside = sum(found[g]["group"] == "0" for g in again.names if g in found)
    assert m.groups() == (
        group["leading"], group["genes"], str(inside),
        f"{float(group['p_any']):.2f}", f"{float(group['prior']):.2f}",
    )  # fmt: skip


CHECKS = {
    "Where the samples": check_notebook,
    "The group that": check_its_group,
    "The exact posterior of PFCVM": check_alone,
    "By P(active)": check_ranks,
    "The data raise the odds of being active": check_raised,
    "For none of them do": check_none_raised,
    "Under every one": check_each_prior,
    "Halving or doubling": check_ratio,
    "With the genes that are correlated": check_group,
    "The data raise the odds of": check_groups_raised,
    "Of the groups, they": check_groups_always,
    "The odds of": check_factors,
    "Among ": check_folds,
    "The exact posterior was": check_computed,
    "The paper's algorithm": check_computed,
}


def checked(again, said):
    if "has no active gene in any draw" in said:
        return check_nothing_active(again, said)
    for start, check in CHECKS.items():
        if said.startswith(start):
            return check(again, said)
    return check_other(again, said)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_each_sentence_once_more(table):
    record = records.read(records.RESULTS / f"printed_genes-{table.name}.json")
    paragraph = record.measured[0].note.split("\n\n")[0]
    sentences = re.split(r"(?<=\.) (?=[A-Z])", paragraph)
    again = Again(table)
    for said in filter(None, sentences):
        checked(again, said)
    if again.priors:
        assert len(sentences) >= 4


def test_what_is_said_in_short():
    record = records.read(records.RESULTS / "printed_genes-short.json")
    (table,) = record.measured
    again = [Again(t) for t in TABLES]
    totals = np.zeros(4, dtype=int)
    for found, row in zip(again, table.rows, strict=True):
        told = dict(zip(table.columns, row, strict=True))
        assert (told["rows"], told["priors run"]) == (len(found.names), len(found.priors))
        if not found.priors:
            continue
        p = [found.value(found.priors[0], gene, "p") for gene in found.names]
        raised = [found.raised(found.priors[0], end) for end in ("", "_group")]
        assert told["selected"] == sum(x > 0.5 for x in p)
        assert told["largest P"] == round(max(p), 3)
        assert [told["raised alone"], told["raised with group"]] == list(map(len, raised))
        assert told["raised alone, each prior"] == len(found.always())
        assert told["raised with group, each prior"] == len(found.always("_group"))
        totals += [len(p), told["selected"], *map(len, raised)]
    m = re.search(
        r"Of (\d+) printed rows, (\S+) has .* odds of (\S+) of them alone, and of (\S+) with their "
        r"group\. On colon the prior expects (\S+) .* has (\S+), .* gene, (\S+), .* (\S+)\.$",
        table.note,
    )
    row = again[0].fits[again[0].priors[0]]
    assert m.groups() == (
        str(totals[0]), *map(word, totals[1:]), f"{float(row['prior_active']):.1f}",
        f"{float(row['active']):.1f}", row["leading"], f"{float(row['p_leading']):.2f}",
    )  # fmt: skip
