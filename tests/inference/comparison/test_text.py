"""A comparison on a terminal: one screen, whatever there is to say."""

import re

import pandas as pd
import xarray as xr

import ardvark as av
from ardvark.inference.comparison.text import BELOW, LINES, WIDTH, sentence_of
from ardvark.inference.fits.effects import legend, printed
from ardvark.inference.fits.selection_text import counted
from tests.inference.comparison.test_table import made
from tests.support import rng


def held_out(name="f"):
    """Return a problem with features of that name, and few held-out samples."""
    X = rng(0).normal(size=(40, 4))
    names = [f"{name}{j}" for j in range(4)]
    data = av.Dataset.from_arrays(X, (X[:, 0] > 0).astype(int), name=name, feature_names=names)
    train, test = data.split(0.25, random_seed=1)
    return av.problem("rfvm", train), test


def fits_of(problem, names):
    """Return fits that differ from the first one, each with its selection."""
    kinds = ["mcmc", *["approximation"] * (len(names) - 1)]
    fits = {
        name: made(problem, kind, shift=float(k), number=k)
        for k, (name, kind) in enumerate(zip(names, kinds, strict=True))
    }
    for tree in fits.values():
        tree["selection"] = xr.DataTree(av.select(problem, tree))
    return fits


def shown(comparison):
    """Return the lines of the screen, which are few and short."""
    lines = comparison.text().splitlines()
    assert len(lines) <= LINES - BELOW
    assert max(map(len, lines)) <= WIDTH
    assert repr(comparison).splitlines()[: len(lines)] == lines
    assert len(repr(comparison).splitlines()) <= LINES
    return lines


def test_a_fit_has_a_line_and_one_that_says_why():
    problem, test = held_out()
    names = ["exact", "a", "b"]
    found = av.compare(fits_of(problem, names), problem=problem, test=test)
    lines = shown(found)
    at = 1 + next(k for k, line in enumerate(lines) if line.split()[:1] == ["verdict"])
    rows, plain = lines[at : at + 3], lines[at + 3 : at + 5]
    assert [line.split()[0] for line in rows] == names
    assert [line.split()[:2] for line in plain] == [["majority", "plain"], ["L1", "logistic"]]
    off = [f"{value:.3f}" for value in found.table["difference_probability"].iloc[1:3]]
    assert [line.split("]")[1].split()[0] for line in rows] == ["reference", *off]
    for name in names[1:]:
        [why] = [line for line in lines if line.startswith(f"{name}: ")]
        assert found.verdict[name].statement.startswith(why[3:].removesuffix("; and more."))


def test_no_sentence_is_cut_in_the_middle():
    """Clauses are left out whole; one that is longer than two lines is there to its end."""
    clauses = [f"clause {k} {'of many words ' * 3}ends" for k in range(6)]
    told = sentence_of("; ".join(clauses) + ".")
    assert len(told) == 2
    said = " ".join(line.strip() for line in told)
    assert said == "; ".join([*clauses[: said.count("; ")], "and more."])
    long = "one clause " * 30 + "to its end."
    assert " ".join(line.strip() for line in sentence_of(long)) == long
    assert sentence_of("short; as it is.") == ["short; as it is."]


def test_the_leading_features_have_a_direction_and_a_size():
    problem, test = held_out()
    found = av.compare(fits_of(problem, ["exact", "a"]), problem=problem, test=test)
    lines = shown(found)
    at = next(k for k, line in enumerate(lines) if line.startswith("exact: effects per sd"))
    title, heading, *features = lines[at : at + 6]
    assert "towards '1'" in title
    table = av.effects(found.fits["exact"])
    leading = table.sort_values("p_active", ascending=False, kind="stable").iloc[:4]
    assert [line.split()[0] for line in features] == list(leading.index)
    told = printed(leading)
    assert heading.split() == " ".join(told).split()
    for line, (name, row) in zip(features, told.iterrows(), strict=True):
        assert line.split() == " ".join([name, *row]).split()
    assert lines[at + 6] == legend(0.5)
    said = " ".join(line.strip() for line in lines[at + 7 :])
    assert said.startswith(counted(found.fits["exact"]))


def test_columns_that_are_always_in_have_their_odds_ratios():
    """Of one unit of the column, not of a standard deviation; of five, three have a line."""
    names = [f"age{k}" for k in range(5)]
    frame = pd.DataFrame(3.0 * rng(0).normal(size=(30, 9)), columns=[*names, *"abcd"])
    frame["status"] = frame["a"] > 0.0
    problem = av.problem("rfvm", frame, "status", always=names, latent_noise="none")
    fit = av.fit(problem, "laplace", starts=1, draws=50, random_seed=0, progressbar=False)
    lines = shown(av.compare({"a": fit}, problem=problem))
    at = next(k for k, line in enumerate(lines) if line.startswith("always in, with odds ratios"))
    table = av.effects(fit, "covariate")
    for line, (name, row) in zip(lines[at + 1 : at + 4], table.iterrows(), strict=False):
        assert line.split()[:2] == [name, f"{row['odds_ratio']:.3g}"]
    assert lines[at + 4] == "  and 2 more"


def test_many_fits_with_long_names_fit_on_it():
    """What finds no room is in the full form, where only a word may be longer than a line."""
    problem, test = held_out("an_unusually_long_name_of_a_feature_or_of_a_data_set_")
    names = [f"a fit of which the name is long, number {k}" for k in range(15)]
    found = av.compare(fits_of(problem, names), problem=problem, test=test)
    lines = shown(found)
    assert any(re.fullmatch(r"and \d+ more fits", line) for line in lines)
    at = next(k for k, line in enumerate(lines) if "odds ratio (90 %)" in line)
    assert all(
        line[:12] == "an_unusually" and line[-1].isdigit() for line in lines[at + 1 : at + 5]
    )
    full = found.text(full=True)
    assert all(f"{name} [" in full for name in names)
    assert max(map(len, full.splitlines())) <= WIDTH + len(names[0])


def test_fits_without_a_reference_a_problem_or_draws_fit_on_it():
    problem, _ = held_out()
    fits = fits_of(problem, ["exact", "a"])
    failed = xr.DataTree()
    failed.attrs = {"kind": "point", "status": "failed", "method": "laplace", "reason": "no mode"}
    failed.attrs |= {"fingerprint": problem.fingerprint}
    lines = shown(av.compare({"a": fits["a"], "failed": failed}, problem=problem))
    assert any(line.startswith("failed: ") and "no mode" in line for line in lines)
    assert any(line.startswith("try: ") for line in lines)
    shown(av.compare(fits))
