"""How a verdict is said: its sentence, and its remedies in Python, in flags or for the estimator.

The rules (`verdict.py`, `findings.py`, `remedies.py`) decide, and give values to this file, which
puts words together; the words themselves are in `target/words.py`.
"""

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Literal

import xarray as xr

from ardvark.models import Problem

from ...methods.registry import BACKENDS, applicable
from ...scoring.limits import Word
from ...target import words
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


def sentence(
    level: Level,
    basis: Basis,
    by_purpose: Mapping[str, Word],
    hidden: Sequence[str],
    first: str,
    agrees: str | None,
    longer: str = "",
) -> str:
    """Return what a statistician would sign, without the level that may begin it.

    Parameters
    ----------
    level, basis : str
    by_purpose : dict
        The word of each purpose.
    hidden : sequence of str
        The purposes of which noise hides something.
    first : str
        The first reason in words, "" if there is none.
    agrees : str, optional
        The fit that agrees, for the basis "opinion".
    longer : str
        What is said if too few draws alone speak against it, "" otherwise (`too_few_draws`).
    """
    say = words.SENTENCES
    if level == "converged":
        return say["converged"]
    if level == "trust" and basis == "opinion":
        return say["opinion"].format(agrees=agrees)
    if level == "trust":
        good = [purpose for purpose, word in by_purpose.items() if word == "good"]
        whole = len(good) == len(by_purpose)
        return say["trust"].format(purposes="" if whole else f" for {listed(good, 'and')}")
    if longer:
        return longer
    if level == "with care" and basis == "distances":
        return _parts(by_purpose, hidden)
    return say["with care" if level == "with care" else "against"].format(
        why=first or say["nothing"]
    )


def too_few_draws(reason: Reason) -> str:
    """Return what is said of draws that are right as far as is known, and too few."""
    code = "more draws" if reason.code == "not many draws" else "longer"
    return words.SENTENCES[code].format(reason=reason)


def _parts(by_purpose: Mapping[str, Word], hidden: Sequence[str]) -> str:
    """Return what may be used, then what only roughly, then what not."""
    order: tuple[Word, ...] = ("good", "rough", "bad")
    parts = [part for word in order for part in _clauses(word, by_purpose)]
    unseen = [PURPOSES[n].quoted or f"its {n}" for n in hidden if by_purpose[n] == "unknown"]
    if unseen:
        text, last = words.CLAUSES["unseen"]
        parts.append(text.format(listed(unseen, last)))
    return "; ".join(parts) + "."


def _clauses(word: Word, by_purpose: Mapping[str, Word]) -> list[str]:
    """Return the clauses of the purposes that have a word."""
    having = [PURPOSES[n] for n, found in by_purpose.items() if found == word]
    parts = [own for p in having if (own := p.said(word))]
    names = [p.quoted for p in having if p.quoted and word != by_purpose.get(p.within, "")]
    text, last = words.CLAUSES[word]
    return [*parts, text.format(listed(names, last))] if names else parts


def listed(names: Sequence[str], last: str) -> str:
    """Return names as a list in a sentence, `last` before the last one."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} {last} {names[-1]}"


# --- remedies -------------------------------------------------------------------------------------

_FLAGS = {"draws": "--draws", "chains": "--chains", "random_seed": "--seed"}
"""The flags of `ardvark compare` that are arguments of `ardvark.fit`; others are options."""


def in_python(remedy: Remedy, fitted: str = "problem") -> str:
    """Return a remedy in the terms of `ardvark.fit`; `fitted` is "problem" or "model".

    Examples
    --------
    >>> from ardvark.inference.comparison.verdicts.remedies import Remedy
    >>> from ardvark.inference.comparison.verdicts.saying import in_python
    >>> in_python(Remedy("fit", "nuts", {"draws": 2000}))
    'ardvark.fit(problem, "nuts", draws=2000)'
    """
    given = [f"{name}={value!r}" for name, value in remedy.changes.items()]
    if remedy.action == "fit":
        given = [fitted, f'"{remedy.method}"', *given]
    return words.REMEDIES[remedy.action].format(arguments=", ".join(given), fitted=fitted)


def in_flags(remedy: Remedy, name: str, fits: Mapping[str, xr.DataTree]) -> str:
    """Return a remedy for the fit of that name in the flags of the `ardvark compare` that made it.

    Examples
    --------
    >>> from ardvark.inference.comparison.verdicts.remedies import USE_EXACT, Remedy
    >>> from ardvark.inference.comparison.verdicts.saying import in_flags
    >>> fits = {"nuts": None}
    >>> in_flags(Remedy("fit", "nuts", {"draws": 2000, "tune": 900}), "nuts", fits)
    'the same command with --draws 2000 --option nuts.tune=900'
    >>> in_flags(USE_EXACT, "nuts", fits)
    'the same command with --methods exact,nuts'
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
    if flags:
        return words.REMEDIES["same command"].format(flags=shlex.join(flags))
    return words.REMEDIES["use"].format(method=method)


def for_estimator(problem: Problem, tree: xr.DataTree) -> str:
    """Return what to do about a fit that has not converged, in the arguments of the estimator."""
    method, say = tree.attrs["method"], words.FOR_ESTIMATOR
    if method == "exact":
        return say["exact"].format(options=dict(resume(tree).changes))
    backend = BACKENDS[method]
    names = [o.name for o in backend.Options.declared()]
    if backend.KIND == "mcmc":
        steps = ["raise draws", "method_options={'tune': ...}"]
        if "target_accept" in names:
            steps.append(say["target_accept"].format())
        told = [say["longer"].format(steps=", ".join(steps))]
    else:
        more = [n for n in names if n in ("max_iterations", "max_sweeps")]
        told = [say["more"].format(name=name) for name in more]
    if "exact" in applicable(problem):
        told.append(say["or exact"])
    return " ".join(told)
