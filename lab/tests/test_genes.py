"""The printed genes: what is printed, and the pieces that are computed and stored."""

import csv
import re

import numpy as np
import pytest
import xarray as xr

from ardvark.data import Dataset, load
from ardvark.inference.fits.activity import activity, needed
from ardvark.inference.fits.groups import any_active
from ardvark.models.parts.effects import VISIBLE
from lab import problems
from lab.genes import pieces, summary
from lab.genes.declared import HERE, TABLES, TOY, Fit, Folds, Gene, Table, asked_of, genes
from lab.genes.figure import draw
from lab.genes.prior import prior_of
from lab.genes.summary import Stored
from tests import support

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


@pytest.mark.data
def test_names_of_unprinted_genes_are_those_of_the_data():
    for row in rows_of("names"):
        assert load(row["data"], fetch=False).feature_names[int(row["number"]) - 1] == row["gene"]
        assert int(row["number"]) not in asked_of(row["data"])


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
    assert not any(map(other.get, fits))


@pytest.mark.parametrize(("bulk", "status"), [(1200.0, "finished"), (900.0, "not_converged")])
def test_a_stored_reference_ends_by_the_rule_of_a_run(bulk, status):
    """Its R-hat and bulk ESS are those that `exact` judges by; the tail's ESS is neither's."""
    tree = xr.DataTree.from_dict(
        {"/fit": xr.Dataset({"judged_rhat": ("k", [1.2, 1.004]),
                             "judged_ess_bulk": ("k", [50.0, bulk])})}
    )  # fmt: skip
    tree.attrs = {"status": status, "reason": "", "sampler": "nuts", "method": "nuts",
                  "iterations": 500, "draws": 500, "rhat": 1.004, "ess_bulk": bulk,
                  "ess_tail": 1000.0, "seconds_run": 61.2}  # fmt: skip
    run, reference = pieces.of_run(tree), pieces.of_reference(tree)
    assert reference == run | {"sampler": "nuts, stored reference"}


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
    rng = support.rng(2)
    X = rng.normal(size=(12, 30))
    X[:, 1] = X[:, 0] + 0.3 * rng.normal(size=12)
    problem = problems.problem(model, Dataset.from_arrays(X, np.arange(12) % 2))
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


def test_a_table_is_computed_stored_and_drawn(tmp_path):
    """In miniature: a posterior on random numbers and a fold."""
    found = pieces.Posteriors(tmp_path, "abc", 100.0).run(list(TOY.fits))
    assert [row["status"] for row, _ in found.values()] == ["finished"]
    pieces.AllFolds(tmp_path, "abc").run(pieces.pieces(TOY.folds[0]))
    stored = Stored.of(tmp_path)
    assert len(stored.of_folds(TOY.folds[0])) == 1
    gene = stored.gene(TOY.fits[0], genes()[TOY.name][0])
    assert 0.0 <= gene["p"] <= gene["p_group"] <= 1.0
    assert "3 rows; P(active)" in draw(stored, TOY).alt


def test_the_figures_of_the_page_are_there():
    shown = re.findall(r"\((genes/figures/.*)\)", (HERE.parent / "GENES.md").read_text())
    assert sorted(shown) == sorted(f"genes/figures/{x.name}" for x in HERE.glob("figures/*.png"))
