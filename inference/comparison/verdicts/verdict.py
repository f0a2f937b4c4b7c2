"""What a fit may be used for, in words: the verdict.

Each purpose (`purposes.py`) is "good", "rough", "bad" or "unknown". A word is the worst of what the
distances from the reference say (`scoring/limits.py`) and of what the diagnostics of the fit itself
allow (`findings.py`). A distance within its noise counts as 0. If the noise is so large that a
defect of twice the limit would not show, the word is "unknown". Without a reference that can be
believed the distances say nothing.

    trust         everything that was looked at is good, beside an independent exact posterior
    converged     chains of an exact sampler, judged alone: the fit has converged, and nothing
                  speaks against it
    with care     predictions or ranking can be used, and the sentence says first what for
    do not use    neither can: of each that was measured, a distance is beyond its first limit,
                  or a finding makes it bad
    not judged    nothing is known that could speak for it

These are about the computation: is this the posterior? Whether the model predicts anything is
another question (`scoring/baselines.py`), and has a line of its own. What is decided here is said
by `saying.py`.

The limits serve a reader who reports the numbers. If there is a choice, they are in posterior
standard deviations. None depends on the number of draws, because the floor accounts for noise. How
often a verdict is wrong is measured by `lab/judge/judge.py` (JUDGE.md).
"""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import pandas as pd
import xarray as xr

from ...fits.datatree import is_bare
from ...scoring.distances import frame
from ...scoring.limits import BEST_FIRST, Word
from ...scoring.limits import judged as by_limits
from ...scoring.statistic import distances_in
from ...scoring.statistics import STATISTICS
from ...target.reasons import Reason
from .findings import FEW, Basis, Finding, agreeing, findings_of, too_few, why_not
from .purposes import OF_OWN, PURPOSES
from .remedies import Remedy, proof
from .saying import LED, PRAISE, Level, in_flags, in_python, sentence, too_few_draws


@dataclass(frozen=True)
class Verdict:
    """What one fit may be used for.

    Attributes
    ----------
    words : dict of {"good", "rough", "bad", "unknown"}
        By purpose, in the order of `PURPOSES`; of a `pm.Model` of one's own, the parameters.
    level : str
        One of `LEVELS`.
    statement : str
        The words in one sentence, without the level that may begin it.
    reasons : tuple of str
        What speaks against it, the worst first; for "do not use", first what decided it.
    remedies : tuple of str
        What to do about it.
    model : str
        Whether the model predicts better than plain classifiers, "" if there is no test split.
    basis : str
        What it rests on (`findings.py`).
    because : tuple of Reason
        The reasons, as codes with numbers.
    advice : tuple of Remedy
        The remedies, as values.
    longer : bool
        Whether nothing but too few draws speaks against it.
    """

    words: Mapping[str, Word]
    level: Level = "not judged"
    statement: str = ""
    reasons: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()
    model: str = ""
    basis: Basis = "distances"
    because: tuple[Reason, ...] = ()
    advice: tuple[Remedy, ...] = ()
    longer: bool = False

    @property
    def sentence(self) -> str:
        """The words in one sentence."""
        return f"{self.level}: {self.statement}" if self.level in LED else self.statement

    @property
    def headline(self) -> str:
        """The statement, and what belongs in one line with it.

        Praise of a computation goes on with what its model predicts; that it has too few draws,
        with the command that makes more.
        """
        told = self.statement.removesuffix(".")
        if self.model and self.level in PRAISE:
            return f"{told}; the model {self.model}"
        return f"{told}; try {self.remedies[0]}" if self.longer and self.remedies else told + "."

    @property
    def others(self) -> tuple[str, ...]:
        """The reasons that the statement does not have."""
        return tuple(reason for reason in self.reasons if reason not in self.statement)

    def on_command_line(self, name: str, fits: Mapping[str, xr.DataTree]) -> "Verdict":
        """Return the verdict on the fit of that name, with its remedies as flags of a command."""
        return replace(self, remedies=_distinct(in_flags(r, name, fits) for r in self.advice))

    def text(self, name: str, width: int = 80) -> str:
        """Return the verdict on the fit of that name, its reasons and remedies, for a terminal."""
        lines = textwrap.wrap(f"{name} [{self.level}]: {self.headline}", width)
        model = [self.model] if self.model not in self.headline else []
        remedies = [remedy for remedy in self.remedies if remedy not in self.headline]
        told = ("  model: ", model), ("  why: ", self.others), ("  try: ", remedies)
        for mark, words in told:
            for part in words:
                lines += textwrap.wrap(
                    part,
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
        By fit, whether its model predicts better than plain classifiers (`beside_baselines`).
    """
    exact = None if reference is None else fits[reference]
    findings = {name: findings_of(tree, exact) for name, tree in fits.items()}
    doubt = None if reference is None else _doubt(reference, fits[reference], findings[reference])
    compared = reference is not None and doubt is None
    measured = frame([]) if distances is None else distances
    models, out = models or {}, {}
    for name, tree in fits.items():
        model = models.get(name, "")
        if compared and name != reference:
            own = measured[measured["fit"] == name]
            out[name] = judged(own, findings[name], model=model, bare=is_bare(tree))
        elif name != reference:
            out[name] = _alone(tree, findings[name], doubt, None, model)
    if reference is not None:
        trusted = [name for name, verdict in out.items() if compared and verdict.level == "trust"]
        agrees, model = agreeing(reference, fits, trusted), models.get(reference, "")
        out[reference] = _alone(fits[reference], findings[reference], None, agrees, model)
    return {name: out[name] for name in fits}


def _alone(
    tree: xr.DataTree,
    findings: Sequence[Finding],
    doubt: Reason | None,
    agrees: str | None,
    model: str,
) -> Verdict:
    """Return the verdict on a fit that nothing can be compared with."""
    if missing := why_not(tree):
        beside = Finding(doubt or missing, "unknown", remedy=None if doubt else proof(tree))
        return judged(frame([]), [*findings, beside], "nothing", model=model, bare=is_bare(tree))
    basis: Basis = "chains" if agrees is None else "opinion"
    return judged(frame([]), findings, basis, agrees, model, is_bare(tree))


def _doubt(reference: str, tree: xr.DataTree, findings: Sequence[Finding]) -> Reason | None:
    """Return why the reference cannot be trusted, None if it can."""
    bad = [f.reason for f in findings if f.purposes == "all" and f.cap in ("bad", "unknown")]
    if not bad and (unproved := why_not(tree)):
        bad = [unproved if tree.attrs.get("kind") == "mcmc" else Reason("not exact")]
    return Reason("doubted", {"reference": reference, "reason": bad[0]}) if bad else None


def judged(
    distances: pd.DataFrame,
    findings: Sequence[Finding],
    basis: Basis = "distances",
    agrees: str | None = None,
    model: str = "",
    bare: bool = False,
) -> Verdict:
    """Return the verdict from distances and findings.

    Parameters
    ----------
    distances : DataFrame
        The rows of `Comparison.distances` that are of this fit.
    findings : sequence of Finding
    basis : {"distances", "chains", "opinion", "nothing"}
        What it rests on; without distances an exact sampler's draws count as good.
    agrees : str, optional
        Who agrees with it, for the basis "opinion" (`findings.agreeing`).
    model : str
        Whether the model predicts better than plain classifiers.
    bare : bool
        Whether the fit is of a `pm.Model` of one's own.
    """
    if too_few(findings):
        distances = frame([])  # not even the noise is known
    assumed: Word = "good" if basis in ("chains", "opinion") else "unknown"
    worst = _worst_of_each_purpose(distances)
    purposes = OF_OWN if bare else PURPOSES
    measured: dict[str, Word] = {n: w.word if (w := worst.get(n)) else assumed for n in purposes}
    by_distance = [said for said in worst.values() if said.word != "good"]
    hidden = [name for name, said in worst.items() if said.word == "unknown"]
    words = _capped(measured, findings)
    level = _level(measured, words, basis, bool(hidden))
    few = [f for f in findings if f.reason.code in FEW]
    longer = ""
    if few and level == "with care":
        enough = _capped(measured, [f for f in findings if f not in few])
        if _level(measured, enough, basis, bool(hidden)) in ("trust", "converged"):
            longer = too_few_draws(few[0].reason)
    said = [*(_Said(f.cap, f.reason, _forbids(f)) for f in findings if f.purposes), *by_distance]
    said.sort(
        key=lambda s: (level == "do not use" and s.decides, BEST_FIRST.index(s.word)), reverse=True
    )
    because = [*(s.reason for s in said), *(f.reason for f in findings if not f.purposes)]
    advice = [f.remedy for f in findings if f.remedy is not None]
    reasons = _distinct(map(str, because))
    return Verdict(
        words=words,
        level=level,
        statement=sentence(level, basis, words, hidden, next(iter(reasons), ""), agrees, longer),
        reasons=reasons,
        remedies=_distinct(in_python(r, "model" if bare else "problem") for r in advice),
        model=model,
        basis=basis,
        because=tuple(because),
        advice=tuple(advice),
        longer=bool(longer),
    )


def _capped(measured: Mapping[str, Word], findings: Sequence[Finding]) -> dict[str, Word]:
    """Return the words of the distances, none better than the findings allow."""
    return {
        name: _worst(
            [word, *(f.cap for f in findings if f.caps(PURPOSES[name]) and _bears(f, word))]
        )
        for name, word in measured.items()
    }


def _bears(finding: Finding, word: Word) -> bool:
    """Whether a finding adds to a word: where nothing is known, a cap at "rough" says nothing."""
    return word != "unknown" or finding.cap != "rough"


def _level(
    measured: Mapping[str, Word], words: Mapping[str, Word], basis: Basis, hidden: bool
) -> Level:
    """Return the level; `hidden` if noise hides something that was measured.

    A main purpose (predictions, ranking) can be used if its distances are good and no finding makes
    it bad. "do not use": none of those that were measured can be. If neither was, every word that
    is known is bad.
    """
    known = [word for word in words.values() if word != "unknown"]
    if not known:
        return "not judged"
    main = [n for n, word in measured.items() if PURPOSES[n].main and word != "unknown"]
    usable = [words[n] for n in main if measured[n] == "good"] if main else known
    if not any(word != "bad" for word in usable):
        return "do not use"
    if hidden or any(word != "good" for word in known):
        return "with care"
    return "converged" if basis == "chains" else "trust"


def _forbids(finding: Finding) -> bool:
    """Whether a finding makes a main purpose bad."""
    return finding.cap == "bad" and any(p.main and finding.caps(p) for p in PURPOSES.values())


class _Said(NamedTuple):
    """A word and its reason; with one that `decides`, a main purpose cannot be used."""

    word: Word
    reason: Reason
    decides: bool


def _distinct(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))


def _worst(words: Sequence[Word]) -> Word:
    return max(words, key=BEST_FIRST.index)


def _worst_of_each_purpose(distances: pd.DataFrame) -> dict[str, _Said]:
    """Return the worst that a distance says of each purpose, where there are any, and its reason.

    Of equal words the first in `Limit.order` is told, and of these what is farthest beyond.
    """
    table = by_limits(distances)
    table = table.assign(rank=table["word"].map(BEST_FIRST.index))
    table = table.sort_values(["rank", "order", "excess"], ascending=[False, True, False],
                              kind="stable")  # fmt: skip
    found = {}
    for purpose in PURPOSES.values():
        own = table[table["purpose"] == purpose.name]
        if own.empty:
            continue
        (distance,), word = distances_in(own[:1]), own["word"].iloc[0]
        code = "hidden" if word == "unknown" else "distance"
        reason = Reason(code, {"text": STATISTICS[distance.statistic].words(distance)})
        found[purpose.name] = _Said(word, reason, purpose.main and word in ("rough", "bad"))
    return found
