"""Genes: which, how sure, how stable."""

import importlib.util

import numpy as np
import pandas as pd
import pytest

import ardvark as av
from tests.notebooks.running import DATA, SIZES, values

PARTS = ("colon", "golub", "horseshoe")
TABLES = ("", "_groups", "_fit", "_pairs")


@SIZES
@pytest.mark.usefixtures("size")
def test_genes(full, tmp_path):
    leading, numbers, groups, together, ranks, overlap, estimates, noise, *exercises = values(
        "10_genes", tmp_path, "leading", "numbers", "groups", "together", "ranks", "overlap",
        "estimates", "noise", "expected_five", "longest", "subsets", "copies",
        "fit.attrs['status']",
    )  # fmt: skip
    # of stored files, which are the same in every run
    assert (leading.loc["its P(active)"] < 0.25).all()
    assert leading.loc["times its prior", "colon"] > 20
    assert leading.loc["times its prior", "leukaemia"] > 100
    assert (leading.loc["expected true genes among the first ten"] < 1.0).all()
    assert abs(numbers.loc["mean", "colon"] - numbers.loc["prior mean", "colon"]) < 2.0
    assert numbers.loc["mean", "leukaemia"] > 1.4 * numbers.loc["prior mean", "leukaemia"]
    first = groups.loc["leukaemia"].iloc[0]
    assert first["p_any"] > 0.9 > 0.3 > first["prior"]
    assert (together < 1.0).all()
    assert together.iloc[-1] < 0.75 * together.iloc[0]
    assert (ranks.head(3) <= 5).all(axis=None)
    shared = overlap.loc["shared by two lists"].astype(float)
    assert list(shared.index) == ["PFCVM, exact", "L1 logistic", "JCFO's algorithm"]
    assert shared.is_monotonic_decreasing
    gain = estimates["difference"]
    assert (gain["colon"] > 14.0).sum() == 3
    assert (gain["leukaemia"] < 5.0).all()
    assert noise["outside"].mean() > 0.8  # a fixed generator; one sample is 0.016
    assert noise["inside"].mean() < 0.6
    the_exercises(*exercises, full)


def the_exercises(expected_five, longest, subsets, copies, status, full):
    """What their solutions find."""
    assert longest == 0
    assert 0.4 < expected_five < 0.7
    assert subsets.loc[60, "planted among ten"] == 10
    assert subsets.loc[12, "outside"] - subsets.loc[12, "inside"] > 0.2
    assert subsets.loc[60, "outside"] == subsets.loc[60, "inside"]
    one, ten = copies["1 of 40"], copies["10 of 40"]
    assert one["largest P(active)"] > 0.9  # sampled: within 0.03 of 1.0
    assert ten["largest P(active)"] < 0.75  # within 0.1 of 0.47
    assert ten["median of the carriers"] < 0.4
    assert ten["P(any)"] > 0.95
    if full:
        assert status == "finished"


@pytest.mark.parametrize("part", PARTS)
def test_files_are_small_summaries_with_the_command_that_made_them(part):
    for name in TABLES:
        path = DATA / f"genes_{part}{name}.csv"
        assert path.read_text().startswith(
            f"# ARDVARK_DATA=... python notebooks/data/genes.py {part}; ardvark "
        )
        assert path.stat().st_size < 100_000
    genes = pd.read_csv(DATA / f"genes_{part}.csv", comment="#")
    assert genes["p_active"].is_monotonic_decreasing
    assert genes["p_active"].between(0.0, 1.0).all()
    assert (genes["low"] <= genes["high"]).all()
    groups = pd.read_csv(DATA / f"genes_{part}_groups.csv", comment="#")
    assert (groups["p_any"] >= groups["largest"]).all()


@pytest.mark.course
def test_the_script_writes_what_the_notebook_reads(tmp_path, monkeypatch):
    """On a small problem with a pair of copies."""
    spec = importlib.util.spec_from_file_location("genes", DATA / "genes.py")
    genes = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(genes)
    monkeypatch.setattr(genes, "HERE", tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 20))
    X[:, 1] = X[:, 0] + 0.1 * rng.normal(size=20)
    problem = av.problem("pfcvm", X, X[:, 0] > 0)
    genes.posterior("colon", problem, "gibbs", draws=20)
    for name in TABLES:
        made, kept = (
            pd.read_csv(folder / f"genes_colon{name}.csv", comment="#")
            for folder in (tmp_path, DATA)
        )
        assert list(made.columns) == list(kept.columns)
    fit = pd.read_csv(tmp_path / "genes_colon_fit.csv", comment="#")
    kept = pd.read_csv(DATA / "genes_colon_fit.csv", comment="#")
    assert list(fit["name"][fit["what"] == "fit"]) == list(kept["name"][kept["what"] == "fit"])
    for rank in (genes.by_l1, genes.by_jcfo):
        assert rank(problem).shape == (20,)
