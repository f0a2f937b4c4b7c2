"""What a fit may be used for, in words: the verdict.

Five purposes, each "good", "rough", "bad" or "unknown":

    predictions   P(y = 1), and the class
    means         posterior means, in the posterior's own sds
    uncertainty   intervals, sds, the joint
    ranking       which features come first
    selection     P(active), and the features selected by it

A word is the worst of what the distances from the reference say (`LIMITS`), where a distance that
is inside its noise floor counts as 0, and of what the diagnostics of the fit itself allow
(`findings.py`). Without a reference that can be believed the distances say nothing: "unknown". The
reference is judged by its diagnostics alone.

The limits are those of a reader who quotes the numbers, in posterior standard deviations where
there is a choice. None depends on the number of draws: noise is the floor's business.
"""

import dataclasses
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import xarray as xr

from ..scoring.floors import Score
from ..scoring.quantities import Scores
from .findings import PURPOSES, Finding, Purpose, Word, findings

Level = Literal["trust", "with care", "do not use", "not judged"]
LEVELS: dict[Level, str] = {
    "trust": "green", "with care": "yellow", "do not use": "red", "not judged": "white",
}  # fmt: skip
"""Every level, with its colour in a terminal."""


@dataclass(frozen=True)
class Limit:
    """Up to where a distance is good, and up to where it is rough.

    Attributes
    ----------
    purpose : str
    quantities : tuple of str
        Whose distance; the worst of them counts.
    statistic : str
    good, rough : float
        Limits of the deviation from what a perfect method would score.
    why : str
    """

    purpose: Purpose
    quantities: tuple[str, ...]
    statistic: str
    good: float
    rough: float
    why: str

    def word(self, deviation: float) -> Word:
        """Return the word for a deviation."""
        if np.isnan(deviation):
            return "unknown"
        return "good" if deviation <= self.good else "rough" if deviation <= self.rough else "bad"


_WEIGHTS = ("eta", "feature_weight", "sample_weight", "primal_weight")
LIMITS = (
    Limit(
        "predictions", ("probability",), "difference", 0.02, 0.15,
        "A difference of 0.02 costs at most 0.001 of the log score where P is near one half. Above "
        "it only the classes may be right; from 0.15 on, P is another statement altogether: a coin "
        "differs by as much from a classifier that is sure of two thirds.",
    ),
    Limit(
        "predictions", ("probability",), "agreement", 0.05, 0.10,
        "One row in ten in another class is what a plain classifier would differ by.",
    ),
    Limit(
        "means", _WEIGHTS, "error", 0.25, 1.0,
        "An interval of 90 % around a mean that is off by 0.25 sd covers 89 %; by 1 sd, 74 %.",
    ),
    Limit(
        "uncertainty", _WEIGHTS, "sd_ratio", np.log(1.25), np.log(1.0 / 0.6),
        "An interval of 90 % whose sd is 0.8 of the right one covers 81 %, one of 0.6, 68 %.",
    ),
    Limit(
        "uncertainty", _WEIGHTS, "coverage_50", 0.10, 0.24,
        "Sds of 0.8 and 0.6 of the right one put 60 and 74 % of the draws in the middle half.",
    ),
    Limit(
        "uncertainty", _WEIGHTS, "wasserstein", 0.25, 1.0,
        "An interval's ends are then off by as much as a mean may be: it moves with the mean.",
    ),
    Limit(
        "uncertainty", _WEIGHTS, "two_sample", 0.25, 0.5,
        "Three draws in four recognised: two normals 1.35 sds apart. It grows with the number of "
        "components, so it never says bad by itself.",
    ),
    Limit(
        "ranking", ("ranking",), "top", 0.2, 0.5,
        "Two of the ten leading features are others; or half of them.",
    ),
    Limit(
        "ranking", ("ranking",), "spearman", 0.2, 0.5,
        "The rank correlation of two orders that share four fifths, or half, of their variance.",
    ),
    Limit(
        "selection", ("selection",), "p_active", 0.1, 0.3,
        "A feature of P(active) 0.4 is then never given as one of 0.5; or as one of 0.7.",
    ),
    Limit(
        "selection", ("feature_weight",), "error", 0.1, 0.3,
        "The same of inclusion probabilities, where features have a mask.",
    ),
)  # fmt: skip
"""Every limit, with its reason."""
_ORDER: tuple[Word, ...] = ("good", "unknown", "rough", "bad")
_QUOTED: dict[Purpose, str] = {
    "means": "its means",
    "uncertainty": "its intervals",
    "ranking": "its ranking",
    "selection": "its P(active)",
}


@dataclass(frozen=True)
class Verdict:
    """What one fit may be used for.

    Attributes
    ----------
    predictions, means, uncertainty, ranking, selection : {"good", "rough", "bad", "unknown"}
    sentence : str
        The same in one sentence.
    reasons : tuple of str
        What speaks against it, the worst first.
    remedies : tuple of str
        What to do about it.
    """

    predictions: Word
    means: Word
    uncertainty: Word
    ranking: Word
    selection: Word
    sentence: str = ""
    reasons: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()

    @property
    def words(self) -> dict[Purpose, Word]:
        """The word for each purpose."""
        return {purpose: getattr(self, purpose) for purpose in PURPOSES}

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
        """The sentence, for where the level stands before it: not said twice."""
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
            missing = doubt or "there is no exact posterior beside it"
            remedy = "" if doubt else "add nuts, or gibbs where there are masks"
            if tree.attrs.get("kind") == "mcmc":
                out[name] = judged({}, found[name], assumed="good", reference=True)
                continue
            beside = Finding(missing, "unknown", PURPOSES, remedy)
            out[name] = judged({}, [*found[name], beside])
        else:
            out[name] = judged(scores.get(name, {}), found[name])
    return out


def _doubt(reference: str, found: Sequence[Finding]) -> str:
    """Return why a reference is none, "" where it is one."""
    bad = [f for f in found if f.purposes == PURPOSES and f.cap in ("bad", "unknown")]
    return f"the reference, {reference}, cannot be believed: {bad[0].text}" if bad else ""


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
        The word where no distance says anything: "good" for a reference.
    reference : bool
        Its sentence is that of a Markov chain judged by itself.
    """
    words: dict[Purpose, Word] = {}
    reasons: list[_Said] = []
    remedies = [f.remedy for f in found if f.remedy]
    for purpose in PURPOSES:
        limits = [limit for limit in LIMITS if limit.purpose == purpose]
        seen = [s for i, limit in enumerate(limits) for s in _said(limit, scores, -i)]
        word = _worst([s.word for s in seen]) if seen else assumed
        if word in ("rough", "bad") and seen:
            reasons.append(max(seen, key=lambda s: (_ORDER.index(s.word), *s.size)))
        caps = [f.cap for f in found if purpose in f.purposes]
        words[purpose] = _worst([word, *caps]) if caps else word
    first = [_Said(f.cap, f.text) for f in found if f.purposes]
    ordered = sorted([*first, *reasons], key=lambda s: -_ORDER.index(s.word))
    texts = [*(s.text for s in ordered), *(f.text for f in found if not f.purposes)]
    verdict = Verdict(**words, reasons=_distinct(texts), remedies=_distinct(remedies))
    return dataclasses.replace(verdict, sentence=_sentence(verdict, reference))


class _Said(NamedTuple):
    """A word and what it rests on; of equal words the larger size is told.

    Size is first the place of its limit, last in the list last, then how far it is beyond that.
    """

    word: Word
    text: str
    size: tuple[int, float] = (0, 0.0)


def _distinct(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))


def _worst(words: Sequence[Word]) -> Word:
    return max(words, key=_ORDER.index)


def _said(limit: Limit, scores: Scores, place: int) -> list[_Said]:
    """Return what a limit says of each quantity."""
    out = []
    for quantity in limit.quantities:
        score = scores.get(quantity, {}).get(limit.statistic)
        if score is None or np.isnan(score.deviation):
            continue
        if limit.purpose == "means" and "sd_ratio" not in scores[quantity]:
            continue  # a mask: its probabilities are selection
        if limit.purpose == "selection" and "sd_ratio" in scores[quantity]:
            continue
        text = number(quantity, limit.statistic, score)
        out.append(_Said(limit.word(score.beyond), text, (place, score.beyond / limit.rough)))
    return out


_NUMBER = {
    "error": "the mean is off by {value:.2g} sd",
    "sd_ratio": "the sd is {value:.2g} times the right one",
    "wasserstein": "marginals are {value:.2g} sd apart",
    "coverage_50": "{percent} of the draws lie in the middle half",
    "coverage_90": "{percent} of the draws lie in the middle 90 %",
    "two_sample": "{percent} of the draws are recognised",
    "difference": "P(y = 1) differs by {value:.2g} on average",
    "agreement": "the class is the same in {percent} of the rows",
    "spearman": "rank correlation {value:.2f}",
    "top": "{percent} of the leading features are the same",
    "p_active": "P(active) differs by up to {value:.2f}",
}


def number(quantity: str, statistic: str, score: Score) -> str:
    """Return a distance in words, with its noise floor."""
    percent = "" if np.isnan(score.value) else f"{score.value:.0%}".replace("%", " %")
    text = _NUMBER[statistic].format(value=score.value, percent=percent)
    if quantity not in ("probability", "ranking", "selection"):
        text = f"{quantity}: {text}"
    if np.isnan(score.floor) or score.floor == 0.0:
        return text
    floor = f"{score.floor:.2g}"
    if statistic == "sd_ratio":
        floor = f"a factor of {np.exp(score.floor):.2f}"
    return f"{text} (noise: {floor})"


# --- one sentence ---------------------------------------------------------------------------------


def _sentence(verdict: Verdict, reference: bool) -> str:
    """Return what a statistician would sign."""
    words, level = verdict.words, verdict.level
    why = next(iter(verdict.reasons), "nothing is known of it")
    if level in ("do not use", "not judged"):
        return f"{level}: {why}."
    if level == "trust":
        good = [p for p in PURPOSES if words[p] == "good"]
        if reference:
            return "exact up to Monte Carlo error: quote all of it."
        whole = len(good) == len(PURPOSES)
        return "as good as the reference" + ("." if whole else f" in {_listed(good, 'and')}.")
    if reference:
        return f"exact in the limit, but {why}."
    parts = _for_predictions(words["predictions"])
    quoted = {p: words[p] for p in _QUOTED}
    if quoted["ranking"] == quoted["selection"]:
        del quoted["selection"]  # whose order cannot be quoted, of that no set can
    for word, text, joined in (
        ("good", "{} can be quoted", "and"),
        ("rough", "{} only roughly", "and"),
        ("bad", "do not quote {}", "or"),
    ):
        names = [_QUOTED[p] for p in quoted if quoted[p] == word]
        if names:
            parts.append(text.format(_listed(names, joined)))
    return "; ".join(parts) + "."


def _for_predictions(word: Word) -> list[str]:
    return {
        "good": ["predicts as the reference does"],
        "rough": ["classifies"],
        "bad": ["do not predict with it"],
    }.get(word, [])


def _listed(names: Sequence[str], last: str) -> str:
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} {last} {names[-1]}"
