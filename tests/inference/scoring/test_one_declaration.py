"""A statistic, or a purpose of a verdict, is one declaration and one line of its registry.

Toys of both are seen wherever statistics and purposes are: in the distances, the table, the words
and the sentence of a verdict, the page and the documentation.
"""

import html
import re

import numpy as np
import pytest
import xarray as xr

import ardvark as av
from ardvark.inference.comparison.verdicts.findings import Finding
from ardvark.inference.comparison.verdicts.purposes import PURPOSES, Purpose
from ardvark.inference.comparison.verdicts.verdict import judged
from ardvark.inference.scoring import limits
from ardvark.inference.scoring.distances import frame
from ardvark.inference.scoring.floors import OfAverage
from ardvark.inference.scoring.limits import QUOTABLE, Limit
from ardvark.inference.scoring.statistic import Statistic
from ardvark.inference.scoring.statistics import STATISTICS
from ardvark.inference.target import words
from ardvark.inference.target.reasons import told
from tests.support import rng, z_limit

SHAPE, N, D = (4, 1000), 12, 4


def upper(found, exact):
    """Return the share of the draws (K,) above the reference's 90 % quantile."""
    return (found.flat > np.quantile(exact.flat, 0.9, axis=0)).mean(axis=0)


UPPER = Statistic(
    name="upper",
    of="continuous",
    compute=upper,
    over="mean",
    perfect=0.1,
    floor=OfAverage(
        lambda exact: (exact.flat > np.quantile(exact.flat, 0.9, axis=0)).astype(float)
    ),
)
FIRST = Limit("uncertainty", "upper", ("eta",), 0.01, 0.02, "A toy that is told first.", order=-1)

TAILS = Purpose(name="tails", capped_with=("uncertainty",))
OUTSIDE = Limit("tails", "coverage_50", QUOTABLE, 0.02, 0.04, "Four in 100 more outside of 50 %.")
SAID = {"meaning": "probabilities of rare events", "quoted": "its tails"}


@pytest.fixture
def problem(small_data):
    return av.problem("rfvm", small_data(N=N, D=D))


def made(problem, number, scale=1.0):
    """Return independent normal draws, taken for a Markov chain or for an approximation's."""
    generator = rng(number)
    draws = {
        "feature_weight": (("chain", "draw", "feature"), generator.normal(5.0, 1.0, (*SHAPE, D))),
        "eta": (("chain", "draw", "obs"), scale * generator.normal(size=(*SHAPE, N))),
    }
    tree = xr.DataTree.from_dict({"/posterior": xr.Dataset(draws), "/sample_stats": xr.Dataset()})
    tree.attrs = {
        "kind": "mcmc" if scale == 1.0 else "approximation", "status": "finished", "reason": "",
        "fingerprint": problem.fingerprint, "method": "nuts" if scale == 1.0 else "advi",
    }  # fmt: skip
    return tree


@pytest.fixture
def with_upper(monkeypatch):
    """One more line in the registry of statistics, one in the table of limits, and its words."""
    STATISTICS[UPPER.name] = UPPER
    monkeypatch.setattr(limits, "LIMITS", [*limits.LIMITS, FIRST])
    told = "{quantity}: {percent} of the draws lie in the upper tenth"
    monkeypatch.setitem(words.STATISTICS, "upper", told)
    meaning = "Of eta: the share of the draws in the reference's `upper` tenth."
    monkeypatch.setitem(words.MEANINGS, "upper", meaning)
    yield
    del STATISTICS[UPPER.name]


@pytest.mark.statistical
def test_a_statistic_is_one_declaration(with_upper, problem, tmp_path):
    """Of normal draws with 1.5 times the sd, P(Z > 1.2816 / 1.5) = 0.1965 lie above."""
    fits = {"exact": made(problem, 1), "again": made(problem, 2), "wide": made(problem, 3, 1.5)}
    found = av.compare(fits, problem=problem)
    rows_of = found.distances.set_index(["fit", "quantity", "statistic"])
    row = rows_of.loc[("wide", "eta", "upper")]
    # of 12 means of 4000 draws, at quantiles of which each is known to 0.0047, a density of 0.117
    room = z_limit(2) * np.sqrt((0.1965 * 0.8035 + (0.117 / 0.1755) ** 2 * 0.09) / (4000 * N))
    assert abs(row["value"] - 0.1965) < room
    assert row["deviation"] == row["value"] - 0.1
    assert 0.0 < row["typical"] < row["floor"] < 0.01
    assert rows_of.loc[("exact", "eta", "upper"), "value"] == pytest.approx(0.1, abs=0.02)
    assert row["limit"] == FIRST.good

    verdict, percent = found.verdict["wide"], f"{row['value']:.0%}".replace("%", " %")
    reason = f"eta: {percent} of the draws lie in the upper tenth (noise: {row['floor']:.2g})"
    assert verdict.words["uncertainty"] == "bad"
    assert reason in verdict.reasons
    assert found.verdict["again"].words["uncertainty"] == "good"

    page = found.to_html(tmp_path / "page.html", pictures={}).read_text()
    assert f"<li>{reason}</li>" in page
    assert re.search(r'<th scope="row">eta upper</th>.*?\(0\.00\d+\)</td>', page)
    meaning = "Of eta: the share of the draws in the reference's <b>upper</b> tenth."
    assert f"<dt>upper</dt><dd>{meaning}</dd>" in html.unescape(page)


@pytest.mark.statistical
def test_a_purpose_is_one_declaration(monkeypatch, problem, tmp_path):
    """With 0.8 times the sd, P(|Z| < 0.8 x 0.674) = 0.41 of the posterior is inside 50 %."""
    monkeypatch.setitem(PURPOSES, "tails", TAILS)
    monkeypatch.setitem(words.PURPOSES, "tails", SAID)
    monkeypatch.setattr(limits, "LIMITS", [*limits.LIMITS, OUTSIDE])
    fits = {"exact": made(problem, 1), "again": made(problem, 2), "narrow": made(problem, 3, 0.8)}
    found = av.compare(fits, problem=problem)
    assert found.verdicts()["tails"].to_dict() == {
        "exact": "good",
        "again": "good",
        "narrow": "bad",
    }
    narrow = found.verdict["narrow"]
    assert any(
        r.endswith("of the posterior lies in its 50 % interval" + r[r.index(" (noise") :])
        for r in narrow.reasons
    )
    # other words may stand in the same clause: these draws have an order of the features by chance
    assert "its tails" in narrow.sentence.partition("do not report ")[2]
    page = found.to_html(tmp_path / "page.html", pictures={}).read_text()
    assert "tails: bad" in page


def test_findings_cap_a_purpose_of_which_they_know_nothing(monkeypatch):
    """All of them where the finding is against all; what is named beside, by `capped_with`."""
    monkeypatch.setitem(PURPOSES, "tails", TAILS)
    monkeypatch.setitem(words.PURPOSES, "tails", SAID)
    everything = judged(frame([]), [Finding(told("chains disagree"), "bad")])
    assert everything.words["tails"] == "bad"
    assert everything.level == "do not use"
    found = judged(
        frame([]), [Finding(told("few in the tails"), "rough", ("uncertainty",))], "chains"
    )
    assert found.words["tails"] == found.words["uncertainty"] == "rough"
    assert found.words["means"] == "good"
