"""Remedies on the command line: each is made of flags that `ardvark compare` accepts."""

import shlex

import numpy as np
import pytest
import xarray as xr

from ardvark.cli.arguments import pairs
from ardvark.cli.studies import compare
from ardvark.inference.fits.datatree import as_json
from ardvark.inference.fitting.registry import make_options
from ardvark.inference.verdicts import remedies
from ardvark.inference.verdicts.verdict import Verdict


def fit(method, **given):
    tree = xr.DataTree()
    ended = given.pop("ended", "limit")
    tree.attrs = {"method": method, "options": as_json(given), "ended": ended, "seed": 3}
    return tree


FITS = {"exact": fit("exact", limit=512, minutes=2.0), "advi": fit("advi"), "nuts": fit("nuts")}


def flags(remedy):
    words = shlex.split(remedy.removeprefix("run the same command with "))
    known = compare.__annotations__
    for flag in words[::2]:
        assert flag.removeprefix("--") in known
    return list(zip(words[::2], words[1::2], strict=True))


@pytest.mark.parametrize(
    ("remedy", "name", "expected"),
    [
        (remedies.run(FITS["nuts"], draws=4000), "nuts", [("--draws", "4000")]),
        (remedies.run(FITS["nuts"], chains=4), "nuts", [("--chains", "4")]),
        (remedies.run(FITS["exact"], random_seed=4), "exact", [("--seed", "4")]),
        (
            remedies.run(FITS["nuts"], target_accept=0.95),
            "nuts",
            [("--option", "nuts.target_accept=0.95")],
        ),
        (remedies.EXACT, "advi", [("--methods", "exact,advi,nuts")]),
        (remedies.RESUME, "exact", [("--option", "exact.limit=2048")]),
    ],
)
def test_a_remedy_in_flags(remedy, name, expected):
    fits = {k: v for k, v in FITS.items() if k != "exact" or name == "exact"}
    found = remedies.on_command_line(remedy, name, fits)
    assert flags(found) == expected
    assert "ardvark." not in found


@pytest.mark.parametrize("beside", [True, False])
def test_what_helps_depends_on_the_method_and_on_what_stands_beside(beside):
    """An exact run goes on, or starts elsewhere; another one is replaced by what is exact."""
    instead = remedies.REFERENCE if beside else remedies.EXACT
    for name in ("nuts", "exact"):
        own = name == "exact"
        assert remedies.mix(FITS[name], beside) == (remedies.RESUME if own else instead)
        moved = 'ardvark.fit(problem, "exact", random_seed=4)' if own else instead
        assert remedies.move(FITS[name], beside) == moved
    foreign = fit("mine")
    assert remedies.run(foreign, draws=70, chains=3) == "run it again with draws=70, chains=3"
    assert remedies.raise_target(foreign, beside) == "run it again with target_accept=0.9"
    given = fit("nuts", target_accept=0.95)
    assert remedies.raise_target(given, beside).endswith("target_accept=0.99)")
    assert remedies.raise_target(fit("gibbs"), beside) == instead
    for tree, told in ((FITS["exact"], remedies.RESUME),
                       (FITS["nuts"], 'ardvark.fit(problem, "nuts", draws=300)')):  # fmt: skip
        tree = tree.copy()
        tree["posterior"] = xr.DataTree(xr.Dataset({"x": (("chain", "draw"), np.ones((2, 150)))}))
        assert remedies.raise_draws(tree, 201.0) == told


def test_a_run_that_the_clock_ended_gets_more_minutes():
    fits = {"exact": fit("exact", minutes=2.0, ended="time")}
    found = remedies.on_command_line(remedies.RESUME, "exact", fits)
    assert flags(found) == [("--option", "exact.minutes=8.0")]


def test_several_numbers_come_back_from_the_command_line():
    remedy = remedies.run(FITS["advi"], step_sizes=(0.01, 0.001))
    ((flag, word),) = flags(remedies.on_command_line(remedy, "advi", FITS))
    given = pairs([word], flag)
    assert make_options("advi", {"step_sizes": given["advi.step_sizes"]}).step_sizes == (
        0.01,
        0.001,
    )


def test_what_is_no_call_stays():
    for remedy in (remedies.REFERENCE, "fit the same problem as the reference"):
        assert remedies.on_command_line(remedy, "advi", FITS) == remedy
    assert remedies.on_command_line(remedies.EXACT, "advi", FITS) == "use exact"


def test_a_verdict_keeps_all_but_its_remedies():
    verdict = Verdict({}, "do not use", "bad.", ("why",), (remedies.EXACT,), "no model")
    changed = verdict.on_command_line("advi", {"advi": FITS["advi"]})
    assert changed.remedies == ("run the same command with --methods exact,advi",)
    assert changed.text("advi").replace(changed.remedies[0], remedies.EXACT) == verdict.text("advi")
