"""How a verdict is said: its sentence, and its remedies in Python, in flags or for the estimator.

The rules (`verdict.py`, `findings.py`, `remedies.py`) decide, and give values to this file. The
words of reasons are in `contract/reasons.py`, those of the purposes in `purposes.py`.
"""

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Literal

import xarray as xr

from ardvark.models import Problem

from ...methods.registry import BACKENDS, applicable
from ...scoring.statistic import Word
from ...target.reasons import Reason
from .findings import Basis
from .purposes import PURPOSES
from .remedies import Remedy, resume

Level = Literal["trust", "converged", "with care", "do not use", "not judged"]
LEVELS: dict[Level, str] = {
    "trust": "green",
    "converged": "cyan",
    "with care": "yellow",
    "do not use": "red",
    "not judged": "white",
}
"""Every level, with its colour in a terminal."""
LED: tuple[Level, ...] = ("converged", "do not use", "not judged")
"""The levels that begin their sentence."""
PRAISE: tuple[Level, ...] = ("trust", "converged")
"""The levels of a computation that nothing speaks against, whatever its model predicts."""

# --- one sentence ---------------------------------------------------------------------------------

_CLAUSES: dict[Word, tuple[str, str]] = {
    "good": ("report {}", "and"),
    "rough": ("treat {} as approximate", "and"),
    "bad": ("do not report {}", "or"),
}
"""By word, the best first, what is said of the purposes that have it."""


def sentence(
    level: Level,
    basis: Basis,
    words: Mapping[str, Word],
    hidden: Sequence[str],
    first: str,
    agrees: str | None,
    longer: str = "",
) -> str:
    """Return what a statistician would sign, without the level that may begin it.

    Parameters
    ----------
    level, basis : str
    words : dict
        By purpose.
    hidden : sequence of str
        The purposes of which noise hides something.
    first : str
        The first reason in words, "" if there is none.
    agrees : str, optional
        The fit that agrees, for the basis "opinion".
    longer : str
        What is said if too few draws alone speak against it, "" otherwise (`too_few_draws`).
    """
    if level == "converged":
        return "nothing speaks against it."
    if level == "trust" and basis == "opinion":
        return f"exact up to Monte Carlo error: {agrees}, another exact sampler, agrees."
    if level == "trust":
        good = [p for p in PURPOSES if words[p] == "good"]
        whole = len(good) == len(PURPOSES)
        return "as good as the reference" + ("." if whole else f" for {listed(good, 'and')}.")
    if longer:
        return longer
    if level == "with care" and basis == "distances":
        return _parts(words, hidden)
    why = first or "there is nothing to judge it by"
    return f"exact in the limit, but {why}." if level == "with care" else f"{why}."


def too_few_draws(reason: Reason) -> str:
    """Return what is said of draws that are right as far as is known, and too few."""
    return f"{'draw more' if reason.code == 'not many draws' else 'run longer'}: {reason}."


def _parts(words: Mapping[str, Word], hidden: Sequence[str]) -> str:
    """Return what may be used, then what only roughly, then what not."""
    parts = [part for word in _CLAUSES for part in _clauses(word, words)]
    unseen = [PURPOSES[n].quoted or f"its {n}" for n in hidden if words[n] == "unknown"]
    if unseen:
        parts.append(f"too few draws to judge {listed(unseen, 'and')}")
    return "; ".join(parts) + "."


def _clauses(word: Word, words: Mapping[str, Word]) -> list[str]:
    """Return the clauses of the purposes that have a word."""
    parts = [p.said[word] for n, p in PURPOSES.items() if words[n] == word and word in p.said]
    names = [
        p.quoted
        for n, p in PURPOSES.items()
        if p.quoted and words[n] == word and word != words.get(p.within, "")
    ]
    text, last = _CLAUSES[word]
    return [*parts, text.format(listed(names, last))] if names else parts


def listed(names: Sequence[str], last: str) -> str:
    """Return names as a list in a sentence, `last` before the last one."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} {last} {names[-1]}"


# --- remedies -------------------------------------------------------------------------------------

_ELSEWHERE = {
    "use the reference": "use the reference",
    "fit its problem": "fit the same problem as the reference",
}
"""Actions that are no call, and say the same everywhere."""
_FLAGS = {"draws": "--draws", "chains": "--chains", "random_seed": "--seed"}
"""The flags of `ardvark compare` that are arguments of `ardvark.fit`; others are options."""


def in_python(remedy: Remedy) -> str:
    """Return a remedy in the terms of `ardvark.fit`.

    Examples
    --------
    >>> from ardvark.inference.comparison.verdicts.remedies import Remedy
    >>> from ardvark.inference.comparison.verdicts.words import in_python
    >>> in_python(Remedy("fit", "nuts", {"draws": 2000}))
    'ardvark.fit(problem, "nuts", draws=2000)'
    """
    given = [f"{name}={value!r}" for name, value in remedy.changes.items()]
    if remedy.action == "fit":
        return f"ardvark.fit({', '.join(['problem', f'"{remedy.method}"', *given])})"
    if remedy.action == "resume":
        return "ardvark.resume(problem, fit)"
    if remedy.action == "rerun":
        return f"run it again with {', '.join(given)}"
    return _ELSEWHERE[remedy.action]


def in_flags(remedy: Remedy, name: str, fits: Mapping[str, xr.DataTree]) -> str:
    """Return a remedy for the fit of that name in the flags of the `ardvark compare` that made it.

    Examples
    --------
    >>> from ardvark.inference.comparison.verdicts.remedies import EXACT, Remedy
    >>> from ardvark.inference.comparison.verdicts.words import in_flags
    >>> fits = {"nuts": None}
    >>> in_flags(Remedy("fit", "nuts", {"draws": 2000, "tune": 900}), "nuts", fits)
    'run the same command with --draws 2000 --option nuts.tune=900'
    >>> in_flags(EXACT, "nuts", fits)
    'run the same command with --methods exact,nuts'
    """
    if remedy.action not in ("fit", "resume"):
        return in_python(remedy)
    method = name if remedy.action == "resume" else remedy.method
    flags = [] if method in fits else ["--methods", ",".join([method, *fits])]
    for changed, value in remedy.changes.items():
        if changed in _FLAGS:
            flags += [_FLAGS[changed], str(value)]
        else:
            word = value if isinstance(value, str) else json.dumps(value)
            flags += ["--option", f"{method}.{changed}={word}"]
    return f"run the same command with {shlex.join(flags)}" if flags else f"use {method}"


def for_estimator(problem: Problem, tree: xr.DataTree) -> str:
    """Return what to do about a fit that has not converged, in the arguments of the estimator."""
    method = tree.attrs["method"]
    if method == "exact":
        return (
            f"Try method_options={dict(resume(tree).changes)}, or go on from here: "
            "classifier.posterior_ = ardvark.resume(classifier.problem_, classifier.posterior_)."
        )
    words = []
    backend = BACKENDS[method]
    names = [o.name for o in backend.Options.declared()]
    if backend.KIND == "mcmc":
        steps = ["raise draws", "method_options={'tune': ...}"]
        if "target_accept" in names:
            steps.append("method_options={'target_accept': 0.95} if transitions diverge")
        words.append(f"Try a longer run: {', '.join(steps)}.")
    else:
        words += [
            f"Try method_options={{{name!r}: ...}} with more than the default."
            for name in names
            if name in ("max_iterations", "max_sweeps")
        ]
    if "exact" in applicable(problem):
        words.append("Or try method='exact', which runs until it has converged.")
    return " ".join(words)
