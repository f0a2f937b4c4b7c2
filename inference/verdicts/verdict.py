"""What a fit may be used for, in words: the verdict.

Each purpose (`purposes.py`) is "good", "rough", "bad" or "unknown". A word is the worst of what the
distances from the reference say (`Statistic.limits`) and of what the diagnostics of the fit itself
allow (`findings.py`). A distance within its noise counts as 0. If the noise is so large that a
defect of twice the limit would not show, the word is "unknown". Without a reference that can be
believed the distances say nothing.

    trust         everything that was looked at is good, beside an independent exact posterior
    converged     chains of an exact sampler, judged alone: nothing speaks against them
    with care     predictions or ranking are good, and the sentence says first what may be used
    do not use    nothing is left that a reader would come for
    not judged    nothing is known that could speak for it

These are about the computation: is this the posterior? Whether the model predicts anything is
another question (`plain.py`), and has a line of its own.

The limits serve a reader who reports the numbers. If there is a choice, they are in posterior
standard deviations. None depends on the number of draws, because the floor accounts for noise. How
often a verdict is wrong is measured by `lab/judge/judge.py` (JUDGE.md).
"""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from ..scoring.distances import rows
from ..scoring.statistic import Distance, Word
from .findings import Finding, findings
from .purposes import PURPOSES, Purpose
from .remedies import EXACT, on_command_line
from .standing import Basis, agreeing, opinion, why_not

Level = Literal["trust", "converged", "with care", "do not use", "not judged"]
LEVELS: dict[Level, str] = {
    "trust": "green",
    "converged": "cyan",
    "with care": "yellow",
    "do not use": "red",
    "not judged": "white",
}
"""Every level, with its colour in a terminal."""
_ORDER: tuple[Word, ...] = ("good", "unknown", "rough", "bad")


@dataclass(frozen=True)
class Verdict:
    """What one fit may be used for.

    Attributes
    ----------
    words : dict of {"good", "rough", "bad", "unknown"}
        By purpose, in the order of `PURPOSES`.
    level : str
        One of `LEVELS`.
    sentence : str
        The words in one sentence.
    reasons : tuple of str
        What speaks against it, the worst first.
    remedies : tuple of str
        What to do about it.
    model : str
        Whether the model predicts better than plain classifiers, "" if there is no test split.
    """

    words: Mapping[str, Word]
    level: Level = "not judged"
    sentence: str = ""
    reasons: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()
    model: str = ""

    @property
    def beside_level(self) -> str:
        """The sentence without the level, for places where the level precedes it."""
        return self.sentence.removeprefix(f"{self.level}: ")

    def on_command_line(self, name: str, fits: Mapping[str, xr.DataTree]) -> "Verdict":
        """Return the verdict on the fit of that name, with its remedies as flags of a command."""
        remedies = [on_command_line(remedy, name, fits) for remedy in self.remedies]
        return replace(self, remedies=_distinct(remedies))

    def text(self, name: str, width: int = 80) -> str:
        """Return the verdict on the fit of that name, its reasons and remedies, for a terminal."""
        lines = textwrap.wrap(f"{name} [{self.level}]: {self.beside_level}", width)
        reasons = [r for r in self.reasons if r not in self.sentence]
        model = [self.model] if self.model else []
        for mark, words in (("  model: ", model), ("  why: ", reasons), ("  try: ", self.remedies)):
            for sentence in words:
                lines += textwrap.wrap(
                    sentence,
                    width,
                    initial_indent=mark,
                    subsequent_indent=" " * len(mark),
                    break_long_words=False,
                )
        return "\n".join(lines)


def verdicts(
    fits: Mapping[str, xr.DataTree],
    reference: str | None,
    distances: pd.DataFrame | None = None,
    models: Mapping[str, str] | None = None,
) -> dict[str, Verdict]:
    """Return the verdict on each fit.

    Parameters
    ----------
    fits : dict of DataTree
    reference : str or None
        The fit that distances are measured from.
    distances : DataFrame, optional
        How far the fits are from the reference (`distances.measure`).
    models : dict of str, optional
        By fit, whether its model predicts better than plain classifiers (`plain.lines`).
    """
    exact = None if reference is None else fits[reference]
    found = {name: findings(tree, exact) for name, tree in fits.items()}
    doubt = "" if reference is None else _doubt(reference, fits[reference], found[reference])
    compared = reference is not None and not doubt
    measured = [] if distances is None else rows(distances)
    models, out = models or {}, {}
    for name, tree in fits.items():
        told = models.get(name, "")
        if compared and name != reference:
            own = [d for d in measured if d.method == name]
            out[name] = judged(own, found[name], model=told)
        elif name != reference:
            out[name] = _alone(tree, found[name], doubt, opinion(tree), told)
    if reference is not None:
        trusted = [name for name, verdict in out.items() if compared and verdict.level == "trust"]
        agrees, told = agreeing(reference, fits, trusted), models.get(reference, "")
        out[reference] = _alone(fits[reference], found[reference], "", agrees, told)
    return {name: out[name] for name in fits}


def _alone(
    tree: xr.DataTree, found: Sequence[Finding], doubt: str, agrees: str, model: str
) -> Verdict:
    """Return the verdict on a fit that nothing can be compared with."""
    if missing := why_not(tree):
        remedy = "" if doubt else EXACT
        beside = Finding(doubt or missing, "unknown", remedy=remedy)
        return judged([], [*found, beside], "nothing", model=model)
    return judged([], found, "opinion" if agrees else "chains", agrees, model)


def _doubt(reference: str, tree: xr.DataTree, found: Sequence[Finding]) -> str:
    """Return why the reference cannot be trusted, "" if it can."""
    bad = [f.text for f in found if f.purposes == "all" and f.cap in ("bad", "unknown")]
    if not bad and (unproved := why_not(tree)):
        chains = tree.attrs.get("kind") == "mcmc"
        bad = [unproved if chains else "it is no exact posterior"]
    return f"the reference, {reference}, cannot be trusted: {bad[0]}" if bad else ""


def judged(
    distances: Sequence[Distance],
    found: Sequence[Finding],
    basis: Basis = "distances",
    agrees: str = "",
    model: str = "",
) -> Verdict:
    """Return the verdict from distances and findings.

    Parameters
    ----------
    distances : sequence of Distance
        Of this fit.
    found : sequence of Finding
    basis : {"distances", "chains", "opinion", "nothing"}
        What it rests on; without distances an exact sampler's draws count as good.
    agrees : str
        Who agrees with it, for the basis "opinion".
    model : str
        Whether the model predicts better than plain classifiers.
    """
    if any(f.few and f.cap == "unknown" for f in found):
        distances = []  # of so few draws not even the noise is known
    measured, reasons = _measured(
        distances, "good" if basis in ("chains", "opinion") else "unknown"
    )
    hidden = [name for name, word in measured.items() if distances and word == "unknown"]
    hidden = [name for name in hidden if _said(PURPOSES[name], distances)]
    words = {
        name: _worst([word, *(f.cap for f in found if f.caps(PURPOSES[name]) and _bears(f, word))])
        for name, word in measured.items()
    }
    first = [_Said(f.cap, f.text) for f in found if f.purposes]
    ordered = sorted([*first, *reasons], key=lambda s: -_ORDER.index(s.word))
    texts = [*(s.text for s in ordered), *(f.text for f in found if not f.purposes)]
    level = _level(measured, words, basis, bool(hidden))
    told = _distinct(texts)
    sentence = _sentence(words, level, basis, told, agrees)
    if level == "with care" and basis == "distances":
        sentence = _parts(words, hidden)
    remedies = _distinct([f.remedy for f in found if f.remedy])
    return Verdict(words, level, sentence, told, remedies, model)


def _bears(finding: Finding, word: Word) -> bool:
    """Whether a finding adds to a word: where nothing is known, a cap at "rough" says nothing."""
    return word != "unknown" or finding.cap != "rough"


def _level(
    measured: Mapping[str, Word], words: Mapping[str, Word], basis: Basis, hidden: bool
) -> Level:
    """Return the level; `hidden` if noise hides something that was measured."""
    known = [word for word in words.values() if word != "unknown"]
    if not known:
        return "not judged"
    main = [n for n, p in PURPOSES.items() if p.main and measured[n] != "unknown"]
    left = [words[n] for n in main if measured[n] == "good"] if main else known
    if all(word == "bad" for word in left):
        return "do not use"
    if hidden or any(word != "good" for word in known):
        return "with care"
    return "converged" if basis == "chains" else "trust"


class _Said(NamedTuple):
    """A word and its reason. Ties: the largest excess is reported.

    Size is first the place of its limit, `Limit.told`, then how far it is beyond that.
    """

    word: Word
    text: str
    size: tuple[int, float] = (0, 0.0)


def _distinct(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))


def _worst(words: Sequence[Word]) -> Word:
    return max(words, key=_ORDER.index)


def _measured(distances: Sequence[Distance], assumed: Word) -> tuple[dict[str, Word], list[_Said]]:
    """Return what the distances say of each purpose, and the reason where that is not good."""
    words: dict[str, Word] = {}
    reasons: list[_Said] = []
    for purpose in PURPOSES.values():
        seen = _said(purpose, distances)
        words[purpose.name] = _worst([s.word for s in seen]) if seen else assumed
        if seen and words[purpose.name] != "good":
            reasons.append(max(seen, key=lambda s: (_ORDER.index(s.word), *s.size)))
    return words, reasons


def _said(purpose: Purpose, distances: Sequence[Distance]) -> list[_Said]:
    """Return what each limit of a purpose says of each quantity."""
    out, measured = [], {(d.quantity, d.statistic): d for d in distances}
    for statistic, limit in purpose.rests_on():
        for quantity in limit.quantities:
            found = measured.get((quantity, statistic.name))
            if found is None or np.isnan(found.deviation):
                continue
            word, text = limit.word(found), statistic.words(found)
            if word == "unknown":
                text += ": too few draws to tell"
            out.append(_Said(word, text, (-limit.told, found.counted / limit.rough)))
    return out


# --- one sentence ---------------------------------------------------------------------------------


def _sentence(
    words: Mapping[str, Word], level: Level, basis: Basis, reasons: Sequence[str], agrees: str
) -> str:
    """Return what a statistician would sign."""
    why = next(iter(reasons), "there is nothing to judge it by")
    if level in ("do not use", "not judged"):
        return f"{level}: {why}."
    if level == "converged":
        return "converged: nothing speaks against it."
    if basis == "opinion" and level == "trust":
        return f"exact up to Monte Carlo error: {agrees}."
    if level == "trust":
        good = [p for p in PURPOSES if words[p] == "good"]
        whole = len(good) == len(PURPOSES)
        return "as good as the reference" + ("." if whole else f" for {_listed(good, 'and')}.")
    return f"exact in the limit, but {why}."


def _parts(words: Mapping[str, Word], hidden: Sequence[str]) -> str:
    """Return what may be used, then what only roughly, then what not."""
    parts = [part for word in _CLAUSES for part in _clauses(word, words)]
    unseen = [n for n in hidden if words[n] == "unknown"]
    if unseen:
        parts.append(f"too few draws to judge {_listed([_named(n) for n in unseen], 'and')}")
    return "; ".join(parts) + "."


def _named(purpose: str) -> str:
    return PURPOSES[purpose].quoted or f"its {purpose}"


_CLAUSES: dict[Word, tuple[str, str]] = {
    "good": ("report {}", "and"),
    "rough": ("treat {} as approximate", "and"),
    "bad": ("do not report {}", "or"),
}
"""By word, the best first, what is said of the purposes that have it."""


def _clauses(word: Word, words: Mapping[str, Word]) -> list[str]:
    """Return the clauses of the purposes that have a word."""
    parts = [p.said[word] for n, p in PURPOSES.items() if words[n] == word and word in p.said]
    names = [
        p.quoted
        for n, p in PURPOSES.items()
        if p.quoted and words[n] == word and word != words.get(p.within, "")
    ]
    text, joined = _CLAUSES[word]
    return [*parts, text.format(_listed(names, joined))] if names else parts


def _listed(names: Sequence[str], last: str) -> str:
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} {last} {names[-1]}"
