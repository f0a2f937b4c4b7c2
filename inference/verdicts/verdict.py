"""What a fit may be used for, in words: the verdict.

Each purpose (`purposes.py`) is "good", "rough", "bad" or "unknown". A word is the worst of what the
distances from the reference say (`Statistic.limits`), where a distance that is inside its noise
floor counts as 0, and of what the diagnostics of the fit itself allow (`findings.py`). Without a
reference that can be believed the distances say nothing: "unknown". The reference is judged by its
diagnostics alone.

The limits serve a reader who reports the numbers. If there is a choice, they are in posterior
standard deviations. None depends on the number of draws, because the floor accounts for noise.
"""

import dataclasses
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import xarray as xr

from ..scoring.quantities import Scores
from ..scoring.statistic import Word
from .findings import Finding, findings
from .purposes import PURPOSES, Purpose

Level = Literal["trust", "with care", "do not use", "not judged"]
LEVELS: dict[Level, str] = {
    "trust": "green", "with care": "yellow", "do not use": "red", "not judged": "white",
}  # fmt: skip
"""Every level, with its colour in a terminal."""
_ORDER: tuple[Word, ...] = ("good", "unknown", "rough", "bad")


@dataclass(frozen=True)
class Verdict:
    """What one fit may be used for.

    Attributes
    ----------
    words : dict of {"good", "rough", "bad", "unknown"}
        By purpose, in the order of `PURPOSES`.
    sentence : str
        The same in one sentence.
    reasons : tuple of str
        What speaks against it, the worst first.
    remedies : tuple of str
        What to do about it.
    """

    words: Mapping[str, Word]
    sentence: str = ""
    reasons: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()

    @property
    def level(self) -> Level:
        """One of `LEVELS`: "trust" only if nothing is worse than good."""
        words = [w for w in self.words.values() if w != "unknown"]
        if not words:
            return "not judged"
        if all(w == "bad" for w in words):
            return "do not use"
        return "trust" if all(w == "good" for w in words) else "with care"

    @property
    def beside_level(self) -> str:
        """The sentence without the level, for places where the level precedes it."""
        return self.sentence.removeprefix(f"{self.level}: ")

    def text(self, name: str, width: int = 80) -> str:
        """Return the verdict on the fit of that name, its reasons and remedies, for a terminal."""
        lines = textwrap.wrap(f"{name} [{self.level}]: {self.beside_level}", width)
        reasons = [r for r in self.reasons if r not in self.sentence]
        for mark, words in (("  why: ", reasons), ("  try: ", self.remedies)):
            for sentence in words:
                lines += textwrap.wrap(
                    sentence, width, initial_indent=mark, subsequent_indent=" " * len(mark)
                )
        return "\n".join(lines)


def verdicts(
    fits: Mapping[str, xr.DataTree], reference: str | None, scores: Mapping[str, Scores]
) -> dict[str, Verdict]:
    """Return the verdict on each fit.

    Parameters
    ----------
    fits : dict of DataTree
    reference : str or None
        The fit that distances are measured from.
    scores : dict
        Distances by fit (`quantities.measure`).
    """
    exact = None if reference is None else fits[reference]
    found = {name: findings(tree, exact) for name, tree in fits.items()}
    doubt = "" if reference is None else _doubt(reference, found[reference])
    out = {}
    for name, tree in fits.items():
        if name == reference:
            out[name] = judged({}, found[name], assumed="good", reference=True)
        elif reference is None or doubt:
            missing = doubt or "there is no exact posterior to compare it with"
            remedy = "" if doubt else "add exact"
            if tree.attrs.get("kind") == "mcmc":
                out[name] = judged({}, found[name], assumed="good", reference=True)
                continue
            beside = Finding(missing, "unknown", remedy=remedy)
            out[name] = judged({}, [*found[name], beside])
        else:
            out[name] = judged(scores.get(name, {}), found[name])
    return out


def _doubt(reference: str, found: Sequence[Finding]) -> str:
    """Return why the reference cannot be trusted, "" if it can."""
    bad = [f for f in found if f.purposes == "all" and f.cap in ("bad", "unknown")]
    return f"the reference, {reference}, cannot be trusted: {bad[0].text}" if bad else ""


def judged(
    scores: Scores,
    found: Sequence[Finding],
    assumed: Word = "unknown",
    reference: bool = False,
) -> Verdict:
    """Return the verdict from distances and findings.

    Parameters
    ----------
    scores : dict
        Distances of the fit, by quantity and statistic.
    found : sequence of Finding
    assumed : str
        The word to use if there is no distance: "good" for a reference.
    reference : bool
        Whether the sentence is that of a Markov chain judged by itself.
    """
    words: dict[str, Word] = {}
    reasons: list[_Said] = []
    remedies = [f.remedy for f in found if f.remedy]
    for purpose in PURPOSES.values():
        seen = _said(purpose, scores)
        word = _worst([s.word for s in seen]) if seen else assumed
        if word in ("rough", "bad") and seen:
            reasons.append(max(seen, key=lambda s: (_ORDER.index(s.word), *s.size)))
        words[purpose.name] = _worst([word, *(f.cap for f in found if f.caps(purpose))])
    first = [_Said(f.cap, f.text) for f in found if f.purposes]
    ordered = sorted([*first, *reasons], key=lambda s: -_ORDER.index(s.word))
    texts = [*(s.text for s in ordered), *(f.text for f in found if not f.purposes)]
    verdict = Verdict(words, reasons=_distinct(texts), remedies=_distinct(remedies))
    return dataclasses.replace(verdict, sentence=_sentence(verdict, reference))


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


def _said(purpose: Purpose, scores: Scores) -> list[_Said]:
    """Return what each limit of a purpose says of each quantity."""
    out = []
    for statistic, limit in purpose.rests_on():
        for quantity in limit.quantities:
            score = scores.get(quantity, {}).get(statistic.name)
            if score is None or score.statistic is not statistic or np.isnan(score.deviation):
                continue
            size = (-limit.told, score.beyond / limit.rough)
            out.append(_Said(limit.word(score.beyond), score.words(quantity), size))
    return out


# --- one sentence ---------------------------------------------------------------------------------


def _sentence(verdict: Verdict, reference: bool) -> str:
    """Return what a statistician would sign."""
    words, level = verdict.words, verdict.level
    why = next(iter(verdict.reasons), "there is nothing to judge it by")
    if level in ("do not use", "not judged"):
        return f"{level}: {why}."
    if level == "trust":
        good = [p for p in PURPOSES if words[p] == "good"]
        if reference:
            return "exact up to Monte Carlo error: every summary may be reported."
        whole = len(good) == len(PURPOSES)
        return "as good as the reference" + ("." if whole else f" for {_listed(good, 'and')}.")
    if reference:
        return f"exact in the limit, but {why}."
    parts = [p.said[words[n]] for n, p in PURPOSES.items() if words[n] in p.said]
    quoted = [
        p for n, p in PURPOSES.items() if p.quoted and words[n] != words.get(p.within, "unknown")
    ]
    for word, text, joined in (
        ("good", "report {}", "and"),
        ("rough", "treat {} as approximate", "and"),
        ("bad", "do not report {}", "or"),
    ):
        names = [p.quoted for p in quoted if words[p.name] == word]
        if names:
            parts.append(text.format(_listed(names, joined)))
    return "; ".join(parts) + "."


def _listed(names: Sequence[str], last: str) -> str:
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} {last} {names[-1]}"
