"""The three timings in their smallest form, and what their rows say."""

import inspect
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ardvark as av
from ardvark.inference.methods import registry
from ardvark.models import ZOO
from lab import problems, rows, tables
from lab.speed import exact, fits, memory, peers
from lab.speed.fits import Case

OF_FIT = set(inspect.signature(av.fit).parameters)


def test_a_case_asks_for_what_exists():
    for case in (*exact.CASES, *memory.CASES):
        problem = problems.problem(case.model, problems.synthetic(20, 10), **case.hypers)
        options = {name: value for name, value in case.options.items() if name not in OF_FIT}
        registry.prepare(case.method, problem, options)
    for name, (model, data, hypers) in (peers.PROBLEMS | peers.GENES).items():
        ZOO[model].make_hypers(hypers)
        assert model in name
        assert data.split()[0] in name


# --- how long `exact` takes -----------------------------------------------------------------------


def test_exact_is_timed_in_a_process_of_its_own(tmp_path):
    asked = [Case("sklr", "20x5", "exact", {}, {"minutes": 0.01}), Case("rvm", "20x5", "exact")]
    path = tmp_path / "rows.csv"
    (row,) = rows.computed(path, fits.work(asked, seeds=[3], only=["sklr"]))
    assert (row["seed"], row["by"], row["N"], row["D"]) == (3, "gibbs", 20, 5)
    assert 0.0 < row["GB before"] <= row["GB"]
    made = exact.measured(pd.DataFrame(rows.read(path))[exact.COLUMNS])
    assert made.loc[0, ["model", "data", "sampler"]].tolist() == ["sklr", "20x5", "gibbs"]
    with pytest.raises(RuntimeError, match="ended with 1"):
        fits.apart("lab.speed.fits.cost", Case("no model", "20x5", "exact"), 1)


def test_a_problem_has_the_median_over_seeds_and_the_largest_memory():
    one = {"model": "rvm", "kernel": None, "data": "sonar", "by": "nuts", "N": 9, "D": 3}
    found = exact.measured(
        pd.DataFrame(
            [
                one | {"seconds": s, "GB": gb, "ended": end}
                for s, gb, end in ((1.0, 0.5, "converged"), (9.0, 0.7, "time"), (2.0, 0.6, "x"))
            ]
        )
    )
    assert found.to_dict("records") == [
        {"model": "rvm", "kernel": "", "data": "sonar", "sampler": "nuts", "N": 9, "D": 3,
         "seconds": "2.0", "gigabytes": "0.70", "converged": "no"}
    ]  # fmt: skip


def test_what_the_package_and_the_page_say_is_what_was_measured(tmp_path):
    page, table = tmp_path / fits.PAGE.name, tmp_path / exact.MEASURED.name
    for path in (fits.PAGE, *fits.PAGE.parent.glob("*.csv")):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    exact.publish(tables.read(exact.TABLE), page, table)
    tables.show(page, fits.FORMATS)
    assert page.read_text() == fits.PAGE.read_text()
    assert table.read_text() == exact.MEASURED.read_text()


def test_the_page_says_what_a_user_waits_for():
    said, found = fits.PAGE.read_text(), tables.read(exact.TABLE)
    masked = found[(found["by"] == "gibbs") & found["model"].isin(exact.MASKED)]
    colon = masked[masked["data"].isin(["colon", "colon_discrete"])]["seconds"]
    assert colon.between(4, 12).all()
    genes = masked[masked["D"].isin([5966, 7129])]
    assert genes["seconds"].max() / 60 < 3.4
    assert (len(genes), (genes["ended"] == "converged").sum()) == (18, 17)
    assert set(found[found["D"] == 100_000]["ended"]) == {"time"}
    beside = pd.to_numeric(tables.read(fits.PAGE.parent / "peers_nuts.csv")["times"])
    assert (beside.min(), beside.max()) == (1.1, 4.7)
    held = tables.read(fits.PAGE.parent / "memory.csv")
    assert held[held["D"] == 7129]["GB"].max() < 3
    for text in ("4 to 12 seconds", "3.4 minutes", "one run of 18", "1.1 to 4.7", "below 3 GB"):
        assert text in said


# --- memory ---------------------------------------------------------------------------------------


def test_a_peak_stands_beside_what_was_expected():
    row = memory.peak(
        Case("horseshoe", "20x20", "exact", {}, {"sampler": "gibbs", "limit": 256}), 1
    )
    assert row["iterations"] == 256
    assert row["estimate"] > 0.0
    refused = memory.peak(Case("fsklr", "20x20", "nuts"), 1)
    assert refused["ended"].startswith("refused: ")


# --- other samplers -------------------------------------------------------------------------------


def test_our_draws_are_doubled_until_they_have_converged(monkeypatch):
    monkeypatch.setattr(peers, "ESS", np.inf)  # never: a second run, then the time is up
    tiny = problems.problem("pfcvm", fits.load("14x3"))
    found = list(peers.doubled(tiny, "ours", 30, 30, 0.0))
    assert [row["draws"] for row in found] == [30]
    assert found[0]["seconds"] > 0.0
    assert not found[0]["converged"]
    assert peers.exactly(tiny, 1.0)["ess_eta"] > 0.0


def row(problem, sampler, converged=True, **numbers):
    known = {"ess_eta": 800.0, "rhat_eta": 1.004, "seconds": 10.0, "seconds_compile": 6.0}
    limit = {"limit": 15.0}
    return (
        {"problem": problem, "sampler": sampler, "converged": converged} | limit | known | numbers
    )


def test_ratios_are_ours_over_theirs_within_a_problem():
    found = peers.table(
        pd.DataFrame(
            [
                row("one", "ours"),
                row("one", "pymc", seconds=40.0, seconds_compile=24.0),
                row("two", "ours", ess_eta=500.0, seconds=2.0, seconds_compile=8.0),
                row("two", "numpyro", ess_eta=1000.0, seconds=20.0, seconds_compile=5.0),
            ]
        ),
        "ours",
    )
    assert found["ess_s"].tolist() == [80.0, 20.0, 250.0, 50.0]
    assert found["times"].tolist() == [1.0, 4.0, 1.0, 5.0]
    assert found["ess_s_compiled"].tolist() == [50.0, 12.5, 50.0, 40.0]
    assert found["times_compiled"].tolist() == [1.0, 4.0, 1.0, 1.25]


def test_who_has_not_converged_has_no_speed():
    ended = {"problem": "one", "sampler": "blackjax", "converged": False, "limit": 15.0}
    found = peers.table(
        pd.DataFrame(
            [row("one", "ours"), row("one", "pymc", False, rhat_eta=1.02, ess_eta=5e3), ended]
        ),
        "ours",
    )
    assert found["ended"].tolist() == ["converged", "not in 15 min", "not in 15 min"]
    assert found["rhat_eta"].iloc[1] == 1.02
    assert np.isnan(found["rhat_eta"].iloc[2])
    for column in ("ess_s", "times", "ess_s_compiled", "times_compiled"):
        assert found[column].notna().tolist() == [True, False, False]


def test_without_ours_there_is_no_ratio():
    found = peers.table(pd.DataFrame([row("one", "pymc")]), "ours")
    assert found["ess_s"].item() == 80.0
    assert np.isnan(found["times"].item())


def test_seconds_are_theirs_over_those_of_exact_and_a_limit_is_a_bound():
    ended = {"problem": "one", "sampler": "blackjax", "converged": False, "limit": 15.0}
    found = peers.table(
        pd.DataFrame(
            [
                row("one", "exact"),
                row("one", "pymc", seconds=40.0, seconds_compile=24.0),
                row("one", "numpyro", False, seconds=300.0, seconds_compile=20.0),
                ended,
                row("two", "exact", False),
                row("two", "pymc"),
            ]
        ),
        "exact",
    )
    assert found["times"].tolist()[:4] == [1.0, 4.0, 88.0, 90.0]
    assert found["times_compiled"].tolist()[:4] == [1.0, 4.0, 900 / 16, 900 / 16]
    assert found["times"].isna().tolist()[4:] == [True, True]
    assert found["bound"].tolist() == ["", "", "at least", "at least", "at least", ""]


@pytest.mark.parametrize(
    ("spans", "length"),
    [([], 0.0), ([(1.0, 3.0), (1.5, 2.0), (2.0, 4.0), (6.0, 7.0)], 4.0), ([(0.0, 1.0)] * 2, 1.0)],
)
def test_nested_spans_of_compilation_count_once(spans, length):
    assert peers.union(spans) == length
    assert peers.union(spans[::-1]) == length


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="Linux has it")
def test_what_this_process_holds_is_seen():
    assert peers.memory(os.getpgid(0)) > 10.0
