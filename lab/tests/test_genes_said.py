"""What GENES.md says, computed once more from the files, by the standard library alone."""

import csv
import math
import re
import statistics
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(ROOT))
    from lab import records
    from lab.genes.declared import HERE, TABLES


def rows_of(name):
    with (HERE / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def record_of(name):
    return records.read(records.RESULTS / f"printed_genes-{name}.json")


def points_of(record):
    return [line[2:] for held in record.measured for line in held.note.splitlines()
            if line.startswith("- ")]  # fmt: skip


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
        self.count = Counter(number for fold in kept for number in fold[:top])
        return len(folds), {gene: self.count[self.numbers[gene]] for gene in self.names}

    def often(self, row):
        self.shares(row)
        tenth = sorted(self.count.values(), reverse=True)[9]
        return {number: n for number, n in self.count.most_common() if n >= tenth}


def word(number):
    return "none" if number == 0 else str(number)


def names(text):
    return [] if text in (None, "none") else text.split(", ")


def check_alone(again, said):
    first = again.priors[0]
    m = re.search(
        r"above 0.5 for (\S+) of the (\d+) rows\. The largest is (\S+) \((\S+), prior (\S+)\)\.$",
        said,
    )
    gene = again.largest(first, "p")
    above = sum(again.value(first, g, "p") > 0.5 for g in again.names)
    expected = (word(above), str(len(again.names)), f"{again.value(first, gene, 'p'):.3f}", gene,
                f"{again.value(first, gene, 'prior'):.3f}")  # fmt: skip
    assert m.groups() == expected


def check_ranks(again, said):
    ranks = [again.value(again.priors[0], g, "rank") for g in again.names]
    m = re.search(r"\) (\S+) of the .* first (\d+) genes .* median rank is (\S+)\.$", said)
    first = sum(rank <= 50 for rank in ranks)
    assert m.groups() == (word(first), "50", f"{statistics.median(ranks):g}")


def check_rough(again, said):
    m = re.search(r"of (\d+) draws, (\d+) of .* rank (\d+)\. Rows of rank (\d+) to (\d+) are", said)
    fit, row = again.priors[0], again.fits[again.priors[0]]
    draws = int(row["chains"]) * int(row["draws"])
    assert row["sampler"] == "gibbs"  # a stored reference counts its draws elsewhere
    order = sorted(again.names, key=lambda gene: again.value(fit, gene, "rank"))
    middle = order[len(order) // 2 - (len(order) % 2 == 0)]
    near = []
    for gene in order:
        gap = again.value(fit, gene, "p") - again.value(fit, middle, "p")
        error = math.hypot(again.value(fit, gene, "mcse"), again.value(fit, middle, "mcse"))
        near += [again.rows[fit, gene]["rank"]] if abs(gap) <= 2 * error else []
    last = order[-1]
    of_last = round(again.value(fit, last, "p") * draws)
    rank = again.rows[fit, last]["rank"]
    assert m.groups() == (str(draws), str(of_last), rank, near[0], near[-1])


def check_raised(again, said):
    m = re.search(r"3 times for (\S+) of the (\d+) rows(?:: (.*))?\.$", said)
    told = again.raised(again.priors[0])
    assert (names(m[3]), m[1], int(m[2])) == (told, word(len(told)), len(again.names))


def check_each_prior(again, said):
    m = re.search(
        r"every one of the (\d) priors they do so for (.*); under at least .* for (\S+)\. The odds "
        r"of (\S+), which .* raised (\S+) to (\S+) times, by prior\.$", said
    )  # fmt: skip
    ever = {g for fit in again.priors for g in again.raised(fit)}
    factors = [again.times(fit, again.most()) for fit in again.priors]
    assert (int(m[1]), names(m[2]), m[3]) == (len(again.priors), again.always(), word(len(ever)))
    assert m.groups()[3:] == (again.most(), f"{min(factors):.1f}", f"{max(factors):.1f}")


def check_ratio(again, said):
    spans = re.findall(r"(\w+)(?: multiplies P\(active\))? by (\S+) to ([\d.]+),", said)
    assert [name for name, *_ in spans] == ["active_features", "slab"]
    for name, *span in spans:
        ratios = again.ratios(name)
        assert span == [f"{min(ratios):.2f}", f"{max(ratios):.2f}"]


def check_expected(again, said):
    m = re.search(r"doubled: (\S+), (\S+) and (\S+) genes .* of (\S+) is (\S+) .* (\S+): its", said)
    data = again.table.data
    fits = [f"{data}/pfcvm/{x}" for x in ("active_features halved", "as it is",
            "active_features doubled")]  # fmt: skip
    gene = again.largest(fits[1], "p")
    p = [f"{again.value(fit, gene, 'p'):.3f}" for fit in fits[:2]]
    active = [f"{float(again.fits[fit]['active']):g}" for fit in fits]
    assert list(m.groups()) == [*active, gene, *p]
    assert again.value(fits[0], gene, "p") > again.value(fits[1], gene, "p")
    for other in again.names:
        assert again.value(fits[0], other, "prior") < again.value(fits[1], other, "prior")


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
    m = re.search(
        r"^(.*) under its (\w+) prior, samples as they are, expects (\S+) .* finds (\S+); .* at "
        r"most (\S+) \((\S+), prior (\S+)\)\.$",
        said,
    )
    fit = f"{again.table.data}/{MODELS[m[1]]}/as it is"
    gene, row = again.largest(fit, "p"), again.fits[fit]
    assert m.groups()[2:] == (
        f"{float(row['prior_active']):.1f}", f"{float(row['active']):.1f}",
        f"{again.value(fit, gene, 'p'):.3f}", gene, f"{again.value(fit, gene, 'prior'):.3f}",
    )  # fmt: skip


def check_vacuous(again, said):
    model, rate, expected = re.search(
        r"^(.*) under .* rate of (\S+) .* expects (\S+) ", said
    ).groups()
    row = again.fits[f"{again.table.data}/{MODELS[model]}/as it is"]
    assert math.isclose(float(row["gamma2"]), float(rate) ** 2)
    assert expected == f"{float(row['prior_active']):.1f}" == "0.0"
    assert float(row["p_leading"]) == float(row["active"]) == 0.0
    columns = [name for held in record_of(again.table.name).measured[1:] for name in held.columns]
    assert model not in columns


def check_folds(again, said):
    m = re.search(
        r"^The (?:exact posterior of the folds|paper's algorithm \((.*)\)), (each sample "
        r"standardised|samples as they are), selects (\S+) of the (\d+) rows in at least one of "
        r"(\d+) folds(?:, and (.*) in at least half of them; most often (\S+), in (\d+))?\. "
        r"Selected: (.*)\.$",
        said,
    )
    again.row = next(
        x.row for x in again.table.folds if (x.exact if m[1] is None else x.label == m[1])
    )
    number, shares = again.shares(again.row)
    some = sum(count > 0 for count in shares.values())
    assert m[2] == ("each sample standardised" if "pfcvm" in again.row else "samples as they are")
    assert m.groups()[2:5] == (word(some), str(len(again.names)), str(number))
    of = "P(active)" if m[1] is None else "weight"
    assert m[9] == (f"the {again.table.top} of largest {of}" if again.table.top else "those kept")
    assert (m[6] is None) == (some == 0)
    if some:
        assert names(m[6]) == [g for g in again.names if 2 * shares[g] >= number]
        assert int(m[8]) == shares[m[7]] == max(shares.values())


SHORT = {"pfcvm-4": "PFCVM, table 4", "jcfo-3": "JCFO, table 3"}


def printing(number):
    tables = {r["table"] for r in rows_of("printed") if r["number"] == number}
    return [title for name, title in SHORT.items() if name in tables]


def check_often(again, said):
    m = re.search(
        r"^Of the (\d+) genes .* often, (\d+) are in this table and (\d+) in (.*)\. The most "
        r"frequent are (\S+) \((\d+) folds, printed in (.*)\) and (\S+) \((\d+) folds, "
        r"printed in (.*)\)\.$",
        said,
    )
    found, here = again.often(again.row), SHORT[again.table.name]
    (other,) = set(SHORT.values()) - {here}
    inside = [sum(x in printing(number) for number in found) for x in (here, other)]
    assert m.groups()[:4] == (str(len(found)), *map(str, inside), other)
    listed = {r["number"]: r["gene"] for r in rows_of("names") if r["data"] == "colon"}
    listed |= {r["number"]: r["gene"] for r in rows_of("printed") if r["table"] in SHORT}
    for number, told in zip(found, (m.groups()[4:7], m.groups()[7:]), strict=False):
        where = " and ".join(printing(number)) or "no table"
        assert told == (listed[number], str(found[number]), where)


def check_first_printed(again, said):
    m = re.search(
        r"genes, (\S+) and (\S+), in (\d+) and (\d+) folds; (\d+) of the (\d+) rows", said
    )
    _, shares = again.shares(again.row)
    one, two = again.names[:2]
    never = sum(n == 0 for n in shares.values())
    expected = (one, two, *map(str, (shares[one], shares[two], never, len(shares))))
    assert m.groups() == expected


def check_notebook(again, said):
    m = re.search(
        r"of the (\d+) rows (\d+) are among the (\d+) .*\. That of the others is below (\S+)\.$",
        said,
    )
    found = leading_genes(again)
    least = min(float(x["p_active"]) for x in found.values())
    numbers = (len(again.names), sum(g in found for g in again.names), len(found))
    assert m.groups() == (*map(str, numbers), f"{least:.3f}")


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
    "PFCVM's exact posterior, samples": check_notebook,
    "PFCVM's exact posterior under": check_alone,
    "The group that": check_its_group,
    "By P(active)": check_ranks,
    "Ranks are rough": check_rough,
    "The data raise the odds of being active": check_raised,
    "Under every one": check_each_prior,
    "Halving or doubling": check_ratio,
    "`active_features` halved": check_expected,
    "With the genes that are correlated": check_group,
    "The data raise the odds of": check_groups_raised,
    "Of the groups, they": check_groups_always,
    "Of the ": check_often,
    "It selects the first two": check_first_printed,
    "JCFO under": check_vacuous,
    "The exact posterior of the folds": check_folds,
    "The paper's algorithm": check_folds,
}


def checked(again, said):
    for start, check in CHECKS.items():
        if said.startswith(start):
            return check(again, said)
    return check_other(again, said)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_each_sentence_once_more(table):
    points, again = points_of(record_of(table.name)), Again(table)
    for said in points:
        checked(again, said)
    assert len(points) >= (8 if again.priors else 2)


def test_the_printed_leaders_and_ours_are_others():
    again = {table.name: Again(table) for table in TABLES}
    assert again["jcfo-3"].shares("jcfo-1/colon/jcfo-one")[0] == 62
    jcfo = again["jcfo-3"].count
    assert [jcfo[n] for n in ("1772", "1668", "1357", "974")] == [61, 56, 0, 0]
    assert again["pfcvm-4"].shares("pfcvm-6/colon/pfcvm_lp-200/100")[0] == 62
    pfcvm = again["pfcvm-4"].count
    assert [pfcvm[n] for n in ("1668", "1210", "792", "1895")] == [0, 0, 60, 55]


@pytest.mark.parametrize("table", [t for t in TABLES if t.name in SHORT], ids=lambda t: t.name)
def test_the_table_of_the_genes_selected_most_often(table):
    (held,) = (x for x in record_of(table.name).measured if x.title.startswith("Selected most"))
    again, printed = Again(table), {(r["table"], r["number"]): r for r in rows_of("printed")}
    row = next(x.row for x in table.folds if again.shares(x.row)[0])
    found = again.often(row)
    assert {str(x[1]): x[3] for x in held.rows} == found
    assert [x[3] for x in held.rows] == sorted(found.values(), reverse=True)
    named = {r["number"]: r["gene"] for r in rows_of("names") if r["data"] == table.data}
    for cells in held.rows:
        told = dict(zip(held.columns, cells, strict=True))
        number, inside = (
            str(told["column"]),
            [printed.get((name, str(told["column"]))) for name in SHORT],
        )
        assert [told[x] for x in SHORT.values()] == [r and float(r["printed"]) for r in inside]
        about = [r for r in inside if r]
        assert told["gene"] == (about[0]["gene"] if about else named[number])
        assert told["is"] in ([r["description"] for r in about] or [""])


@pytest.mark.parametrize("name", [*(t.name for t in TABLES), "short"])
def test_tables_are_narrow_and_points_short(name):
    record = record_of(name)
    for held in record.measured:
        assert 0 < len(held.columns) <= 10
        assert held.rows
    for said in points_of(record):
        plain = re.sub(r"`\S+`|\(200/100\)|table \d", "", said)
        assert len(re.findall(r"(?<![\w.])\d[\d.]*(?!\w)", plain)) <= 5, said


def test_what_is_not_stored_is_said_to_be_so():
    for table in TABLES:
        again = Again(table)
        lacking = [
            f"{x.count - again.shares(x.row)[0]} folds of {x.row}"
            for x in table.folds
            if again.shares(x.row)[0] < x.count
        ]
        told = [x for x in record_of(table.name).notes if x.startswith("Weights not stored for ")]
        assert told == ([f"Weights not stored for {', '.join(lacking)}."] if lacking else [])
        text = " ".join(record_of(table.name).notes)
        for label, heading in (("floor", "Floor:"), ("200/100", "200/100:"), ("one", "One start:")):
            used = any(again.shares(x.row)[0] for x in table.folds if x.label.startswith(label))
            assert (heading in text) == used


def test_what_is_said_in_short():
    (table,) = record_of("short").measured
    again = [Again(t) for t in TABLES]
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
    run = [x for x in again if x.priors]
    assert {x.table.data for x in run} == {"colon"}  # genes of one data set, told apart by number
    genes, fit = {g: x for x in run for g in x.names}, run[0].priors[0]
    alone, group = (
        [g for g, x in genes.items() if g in x.raised(fit, end)] for end in ("", "_group")
    )
    above = sum(x.value(fit, g, "p") > 0.5 for g, x in genes.items())
    row = run[0].fits[fit]
    points = points_of(record_of("short"))
    assert points[0] == (
        f"The {sum(len(x.names) for x in run)} rows are {len(genes)} genes. P(active) is above "
        f"1/2 for {word(above)}. The data raise the odds of {word(len(alone))} alone "
        f"({', '.join(alone)}), and of {word(len(group))} with their group."
    )
    assert f"effect of {float(row['threshold']):g} from" in points[1]
    m = re.search(r"expects (\S+) .* has (\S+), .* gene, (\S+), .* (\S+)\.$", points[2])
    assert m.groups() == (
        f"{float(row['prior_active']):.1f}", f"{float(row['active']):.1f}", row["leading"],
        f"{float(row['p_leading']):.2f}",
    )  # fmt: skip
    others = [(x.value(f"colon/{model}/as it is", g, "p"), g, name)
              for x in run[1:] for name, model in MODELS.items() for g in x.names]  # fmt: skip
    p, gene, name = max(others)
    assert points[3].endswith(f"there is {p:.3f}, of {gene} under {name}, samples as they are.")


# --- why the expected number need not rise --------------------------------------------------------


def test_a_larger_number_asked_for_widens_the_features_prior_and_narrows_the_samples():
    from ardvark.models.pfcvm import Hypers

    asked = [Hypers(active_features=n, active_samples=12.4).fill(62, 62, 2000) for n in (5, 10, 20)]
    feature = [x.feature_prior.scale for x in asked]
    sample = [x.sample_prior.scale for x in asked]
    assert feature == sorted(feature)
    assert sample == sorted(sample, reverse=True)


def test_labels_can_turn_the_sign_of_the_covariance_with_the_score():
    """Two half-Cauchy weights with a slab, of which the data show the sum, 0.15."""
    x = (np.arange(200_000) + 0.5) / 50_000.0  # midpoints, up to four slabs
    inside, step = int(np.searchsorted(x, 0.15)), math.log(1.001)
    active = (x > 0.1).astype(float)
    n = active[:inside] + active[:inside][::-1]

    def law(scale):
        p = np.exp(-0.5 * x**2) / (scale**2 + x**2)
        return p / p.sum()

    def given(scale):
        p = law(scale)[:inside] * law(scale)[:inside][::-1]
        return p / p.sum()

    for scale in (0.01, 0.02, 0.1):
        low, high = scale / 1.001, scale * 1.001
        slope = (given(high) - given(low)) @ n / (2.0 * step)
        score = np.log(law(high) / law(low))[:inside] / (2.0 * step)
        of_both = score + score[::-1]
        covariance = given(scale) @ (n * (of_both - given(scale) @ of_both))
        assert slope == pytest.approx(covariance, rel=1e-2)
        assert slope < 0.0 < (law(high) - law(low)) @ active
