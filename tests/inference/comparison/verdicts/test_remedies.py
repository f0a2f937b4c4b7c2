"""Remedies: which one helps, and how it is written, in Python and in flags that exist."""

import shlex

import numpy as np
import pytest
import xarray as xr

from ardvark.cli.compare import compare
from ardvark.common.validate import pairs
from ardvark.inference.comparison.verdicts import remedies
from ardvark.inference.comparison.verdicts.remedies import USE_EXACT, USE_REFERENCE, Remedy
from ardvark.inference.comparison.verdicts.saying import in_flags, in_python
from ardvark.inference.comparison.verdicts.verdict import Verdict
from ardvark.inference.fits.datatree import as_json
from ardvark.inference.methods.registry import make_options


def fit(method, **given):
    tree = xr.DataTree()
    ended = given.pop("ended", "limit")
    tree.attrs = {"method": method, "options": as_json(given), "ended": ended, "seed": 3}
    return tree


FITS = {"exact": fit("exact", limit=512, minutes=2.0), "advi": fit("advi"), "nuts": fit("nuts")}
RESUME = Remedy("resume", "exact", {"limit": 2048})


def flags(remedy):
    words = shlex.split(remedy.removeprefix("the same command with "))
    known = compare.__annotations__
    for flag in words[::2]:
        assert flag.removeprefix("--") in known
    return list(zip(words[::2], words[1::2], strict=True))


@pytest.mark.parametrize(
    ("remedy", "name", "expected"),
    [
        (
            remedies.run(FITS["nuts"], draws=4000, chains=4),
            "nuts",
            [("--draws", "4000"), ("--chains", "4")],
        ),
        (
            remedies.reseed(FITS["exact"]),
            "exact",
            [("--seed", "4")],
        ),
        (
            remedies.run(FITS["nuts"], target_accept=0.95),
            "nuts",
            [("--option", "nuts.target_accept=0.95")],
        ),
        (USE_EXACT, "advi", [("--methods", "exact,advi,nuts")]),
        (RESUME, "exact", [("--option", "exact.limit=2048")]),
    ],
)
def test_a_remedy_in_flags(remedy, name, expected):
    fits = {k: v for k, v in FITS.items() if k != "exact" or name == "exact"}
    assert flags(in_flags(remedy, name, fits)) == expected


@pytest.mark.parametrize("beside", [True, False])
def test_what_helps_depends_on_the_method_and_on_what_stands_beside(beside):
    """An exact run goes on, or starts elsewhere; another one is replaced by what is exact."""
    instead = USE_REFERENCE if beside else USE_EXACT
    for name in ("nuts", "exact"):
        own = name == "exact"
        assert remedies.mix(FITS[name], beside) == (RESUME if own else instead)
        moved = Remedy("fit", "exact", {"random_seed": 4}) if own else instead
        assert remedies.move(FITS[name], beside) == moved
    foreign = remedies.run(fit("mine"), draws=70, chains=3)
    assert in_python(foreign) == "the same run with draws=70, chains=3"
    assert remedies.raise_target(fit("mine"), beside) == Remedy("rerun", "", {"target_accept": 0.9})
    given = fit("nuts", target_accept=0.95)
    assert remedies.raise_target(given, beside).changes == {"target_accept": 0.99}
    assert remedies.raise_target(fit("gibbs"), beside) == instead
    nuts = Remedy("fit", "nuts", {"draws": 300})
    for tree, expected in ((FITS["exact"], RESUME), (FITS["nuts"], nuts)):
        tree = tree.copy()
        tree["posterior"] = xr.DataTree(xr.Dataset({"x": (("chain", "draw"), np.ones((2, 150)))}))
        assert remedies.raise_draws(tree, 201.0) == expected


@pytest.mark.parametrize(
    ("method", "code", "changes"),
    [
        ("advi", "still rising", {"max_iterations": 240_000}),
        ("advi", "fell", {"step_sizes": (0.005, 0.002, 0.0005, 0.0001)}),
        ("laplace", "short", {"max_iterations": 20_000}),
    ],
)
def test_the_code_of_a_reason_says_which_option_helps(method, code, changes):
    tree = fit(method)
    tree.attrs |= {"reason": "in any words", "reason_code": code}
    assert remedies.again(tree, beside=True) == Remedy("fit", method, changes)
    tree.attrs["method"] = "gibbs"  # which has no such option
    assert remedies.again(tree, beside=True) == USE_REFERENCE
    tree.attrs["reason_code"] = "unfinished"  # its words say what to raise
    assert remedies.again(tree, beside=True) is None


def test_a_run_that_the_clock_ended_gets_more_minutes():
    found = remedies.resume(fit("exact", minutes=2.0, ended="time"))
    assert found == Remedy("resume", "exact", {"minutes": 8.0})


def test_several_numbers_come_back_from_the_command_line():
    remedy = remedies.run(FITS["advi"], step_sizes=(0.01, 0.001))
    ((flag, word),) = flags(in_flags(remedy, "advi", FITS))
    given = pairs([word], flag)
    assert make_options("advi", {"step_sizes": given["advi.step_sizes"]}).step_sizes == (
        0.01,
        0.001,
    )


def test_what_is_no_call_stays():
    for remedy in (USE_REFERENCE, Remedy("fit its problem")):
        assert in_flags(remedy, "advi", FITS) == in_python(remedy)
    assert in_flags(USE_EXACT, "advi", FITS) == "use exact"


def test_a_verdict_keeps_all_but_its_remedies():
    told = in_python(USE_EXACT)
    verdict = Verdict({}, "do not use", "bad.", ("bad",), (told,), "no model", advice=(USE_EXACT,))
    changed = verdict.on_command_line("advi", {"advi": FITS["advi"]})
    assert changed.remedies == ("the same command with --methods exact,advi",)
    assert changed.text("advi").replace(changed.remedies[0], told) == verdict.text("advi")
