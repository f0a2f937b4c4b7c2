"""What GENES.md says, computed once more from the files, by the standard library alone."""

import csv
import math
import re
import statistics
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from lab import pages
from lab.genes.declared import HERE, TABLES

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
PAGE = pages.written()["GENES.md"]
DEFAULT = "colon/pfcvm/as it is"


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


PRINTED = {}
for _row in rows_of(HERE / "printed.csv"):
    PRINTED.setdefault(_row["table"], {})[_row["gene"]] = _row
COLON = PRINTED["pfcvm-4"] | PRINTED["jcfo-3"]
POSTERIOR = {(r["fit"], r["gene"]): r for r in rows_of(HERE / "posterior.csv")}
FITS = {r["fit"]: r for r in rows_of(HERE / "fits.csv")}
PRIORS = [fit for fit in FITS if fit.startswith("colon/pfcvm/")]


def value(fit, gene, what):
    text = POSTERIOR[fit, gene][what]
    return float(text) if text else math.nan


def times(fit, gene, end=""):
    """How many times the odds were raised, two Monte Carlo errors subtracted."""
    p, e, q = (value(fit, gene, f"{name}{end}") for name in ("p", "mcse", "prior"))
    low = p - 2 * e
    return low / (1 - low) / (q / (1 - q)) if low > 0 else 0.0


def selected(row, top=None):
    """How many folds select each column, as the page counts."""
    folds = [r["weights"].split() for r in rows_of(HERE / "folds.csv") if r["row"] == row]
    assert len(folds) == 62
    return Counter(pair.split(":")[0] for fold in folds for pair in fold[:top])


PFCVM = selected("pfcvm-6/colon/pfcvm_lp-200/100", 5)
JCFO = selected("jcfo-1/colon/jcfo-one")


def table(start):
    """The cells of the table whose first line starts so."""
    lines = PAGE.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith(f"| {start} |"))
    end = next(i for i in range(at, len(lines)) if not lines[i].startswith("|"))
    cells = [[c.strip() for c in line.strip("|").split("|")] for line in lines[at:end]]
    return cells[2:]


def test_each_cell_of_the_genes_of_colon():
    found = table("gene")
    assert {row[0] for row in found} == set(COLON)
    known = {r[""] if "" in r else next(iter(r.values())): r
             for r in rows_of(NOTEBOOKS / "genes_colon.csv")}  # fmt: skip
    for gene, _, pfcvm, jcfo, ours, ours_jcfo, p, rank, group, size, own, rfvm in found:
        for cell, name in ((pfcvm, "pfcvm-4"), (jcfo, "jcfo-3")):
            printed = PRINTED[name].get(gene)
            assert cell == (f"{float(printed['printed']):g}" if printed else "")
        number = COLON[gene]["number"]
        assert int(ours) == PFCVM[number]
        assert int(ours_jcfo.split()[0]) == JCFO[number]
        x = POSTERIOR[DEFAULT, gene]
        for cell, end, digits in ((p, "", 3), (group, "_group", 2)):
            both = [float(x[f"{name}{end}"]) for name in ("p", "prior")]
            said = [float(word) for word in re.findall(r"[\d.]+", cell)]
            assert said == pytest.approx(both, abs=0.51 * 10**-digits)
        assert (rank, size) == (x["rank"], x["members"])
        assert float(rfvm) == pytest.approx(value("colon/rfvm/as it is", gene, "p"), abs=6e-4)
        assert (own != "") == (gene in known)


def test_what_is_said_of_the_posterior_of_colon():
    assert all(value(DEFAULT, gene, "p") < 0.5 for gene in COLON)
    leading = max(COLON, key=lambda gene: value(DEFAULT, gene, "p"))
    assert leading == FITS[DEFAULT]["leading"] == "Z50753"
    assert [g for g in COLON if times(DEFAULT, g) >= 3] == ["H08393", "Z50753"]
    assert len(PRIORS) == 5
    assert not [g for g in COLON if all(times(fit, g) >= 3 for fit in PRIORS)]
    assert not [g for g in COLON if times(DEFAULT, g, "_group") >= 3]
    assert max(COLON, key=lambda g: times(DEFAULT, g, "_group")) == leading
    odds = [times(fit, leading) for fit in PRIORS]
    assert f"raised {min(odds):.1f} to {max(odds):.1f} times" in PAGE
    assert f"raises the odds {times(DEFAULT, leading, '_group'):.1f} times" in PAGE
    assert value(DEFAULT, "R39681", "rank") > 1000
    others = {fit: max(value(fit, gene, "p") for gene in COLON)
              for fit in FITS if fit.startswith("colon/") and "pfcvm" not in fit}  # fmt: skip
    assert max(others, key=others.get) == "colon/rfvm/as it is"
    assert max(others.values()) == value("colon/rfvm/as it is", leading, "p")
    jcfo, probit = (f"colon/{model}/as it is" for model in ("jcfo", "sparse_probit"))
    assert float(FITS[jcfo]["prior_active"]) == float(FITS[jcfo]["active"]) == 0.0
    assert all(value(probit, g, "p") < 2.0 * value(probit, g, "prior") for g in COLON)
    assert all(fit["status"] == "finished" for fit in FITS.values())
    draws = int(FITS[DEFAULT]["chains"]) * int(FITS[DEFAULT]["draws"])
    assert f"a share of {draws} draws" in PAGE


def test_what_is_said_of_ranks():
    for name, said in (("pfcvm-4", "PFCVM's 6 printed rows"), ("jcfo-3", "JCFO's 26")):
        rank = {gene: value(DEFAULT, gene, "rank") for gene in PRINTED[name]}
        first = sum(x <= 50 for x in rank.values())
        assert re.search(rf"{first} of {said}", PAGE)
        assert f"{statistics.median(rank.values()):g}" in PAGE
    near = [g for g in rank if abs(value(DEFAULT, g, "p") - value(DEFAULT, "D26129", "p"))
            <= 2 * math.hypot(*(value(DEFAULT, x, "mcse") for x in (g, "D26129")))]  # fmt: skip
    assert max(rank[g] for g in near) - min(rank[g] for g in near) > 200


def test_what_is_said_of_our_folds():
    """Printed leaders and ours are others."""
    assert [PFCVM[n] for n in ("1668", "1210", "792", "1895")] == [0, 0, 60, 55]
    assert [JCFO[n] for n in ("1772", "1668", "1357", "974")] == [61, 56, 0, 0]
    assert [n for n, _ in JCFO.most_common(2)] == ["1772", "1668"]
    assert list(PRINTED["jcfo-3"])[:2] == ["T84051", "U00968"]
    assert list(PRINTED["pfcvm-4"])[1] == "M82919"
    told = table("our folds of")
    for paper, counts in (("PFCVM", PFCVM), ("JCFO", JCFO)):
        tenth = sorted(counts.values(), reverse=True)[9]
        most = sorted((n for n in counts.values() if n >= tenth), reverse=True)
        assert [int(row[2]) for row in told if row[0] == paper] == most
    names = {r["gene"]: r["number"] for r in rows_of(HERE / "names.csv") if r["data"] == "colon"}
    for paper, gene, count, where in told:
        number = COLON[gene]["number"] if gene in COLON else names[gene]
        assert int(count) == {"PFCVM": PFCVM, "JCFO": JCFO}[paper][number]
        papers = [p for p, t in (("PFCVM", "pfcvm-4"), ("JCFO", "jcfo-3"))
                  if number in {r["number"] for r in PRINTED[t].values()}]  # fmt: skip
        assert where == " and ".join(papers)


def test_what_is_said_of_aml_and_all():
    assert [len(PRINTED[t]) for t in ("pfcvm-5", "jcfo-2")] == [7, 30]
    assert sum(r["table"] == "rfvm-5" for r in rows_of(HERE / "printed.csv")) == 21
    leading = {next(iter(r.values())): float(r["p_active"])
               for r in rows_of(NOTEBOOKS / "genes_golub.csv")}  # fmt: skip
    assert len(leading) == 60
    assert min(leading.values()) == 0.0122
    printed = PRINTED["pfcvm-5"] | PRINTED["jcfo-2"] | PRINTED["rfvm-5"]
    told = {row[0]: float(row[2]) for row in table("gene | is | P")}
    assert told == {g: pytest.approx(p, abs=6e-4) for g, p in leading.items() if g in printed}
    group = next(r for r in rows_of(NOTEBOOKS / "genes_golub_groups.csv")
                 if r["leading"] == "M23197_at")  # fmt: skip
    assert (group["genes"], f"{float(group['p_any']):.2f}", f"{float(group['prior']):.2f}") == (
        "67", "0.92", "0.22"
    )  # fmt: skip


def test_what_is_not_stored_is_said_to_be_so():
    stored = {r["row"] for r in rows_of(HERE / "folds.csv")}
    lacking = {f.row for table in TABLES for f in table.folds} - stored
    assert {row for row in lacking if "golub" not in row and "allaml" not in row} == {
        "pfcvm-6/colon/pfcvm_lp-floor", "pfcvm-6/colon/exact"
    }  # fmt: skip
    assert stored == {"pfcvm-6/colon/pfcvm_lp-200/100", "jcfo-1/colon/jcfo-one"}
    asked = {fit.name for table in TABLES for fit in table.fits}
    assert all(f"`{name}`" in PAGE for name in asked - set(FITS))


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
