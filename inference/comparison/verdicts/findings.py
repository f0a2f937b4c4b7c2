"""What the diagnostics of a single fit say against it: the rules, each with a remedy.

A finding limits what a verdict (`verdict.py`) may say about some purposes, to "rough", "bad" or, if
the diagnostic itself is missing, "unknown". A finding without purposes is a remark. The rules stand
in the order in which they are asked. What they say is a code with numbers (`target/words.py` has
the words), and the limits of convergence are those of `fits/convergence.py`.

Draws prove nothing by themselves. Those of an exact sampler of this package have converged or not;
draws that were adopted may be well mixed and of something else. A calibration of the sampler that
made them (`ardvark.adopt(..., calibration=...)`) says that they are of the posterior.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import xarray as xr

from ...fits import convergence, diagnostics
from ...fits.convergence import CHAINS, VERDICT, Profile
from ...fits.datatree import group, is_bare
from ...fits.mixing import OF_WEIGHTS, Mixing, mixing_of
from ...fits.selection import summary
from ...samplers.exact.rule import SAMPLERS
from ...scoring.limits import BEST_FIRST, Word
from ...target.reasons import Reason, told
from . import remedies
from .purposes import Purpose
from .remedies import Remedy

Purposes = tuple[str, ...] | Literal["all"]
Basis = Literal["distances", "chains", "opinion", "nothing"]
"""What a verdict rests on: distances from a reference, convergence alone, convergence and another
exact sampler that agrees, or nothing."""
EXACT_METHODS = (*SAMPLERS, "exact")
"""The methods whose chains have the posterior as their limit."""

# --- the limits, with their reasons ---------------------------------------------------------------

FEWEST = 50.0
"""Effective draws below which nothing is said: a probability is then known to 0.07 at best."""
RHAT_BAD = 1.1
"""Above 1.01 (Vehtari et al. 2021) chains have not mixed. Above 1.1, the old limit of Gelman and
Rubin, a fifth of the variance is between chains, and not even a mean can be reported."""
DIVERGENT_BAD = 0.01
"""Above this share of divergent transitions nothing of the fit is to be reported."""
DEEP_SHARE = 0.05
"""Above this share of trajectories that reach the maximum tree depth, the finding is reported. It
costs effective draws, not correctness."""
SHARED_DRAWS = 0.1
"""Above this share of draws that are the reference's own, agreement with it proves nothing."""
MOMENTS: Purposes = ("means", "uncertainty", "parameters")
TAILS: Purposes = ("uncertainty", "parameters")
"""What slowly explored tails speak against: intervals, those of scales and precisions too."""
NOT_PREDICTIONS: Purposes = ("means", "uncertainty", "ranking", "selection")
"""What weights that have not mixed speak against. Predictions are judged by eta: chains on two
copies of a feature make the same ones."""
TOO_FEW = ("few draws", "few effective")
"""The codes of draws so few that nothing else is known either."""
FEW = ("not many draws", "ess", "longer")
"""The codes of draws that are right as far as is known, and too few: what helps is a longer run."""


@dataclass(frozen=True)
class Finding:
    """Something that speaks against a fit.

    Attributes
    ----------
    reason : Reason
        What was found.
    cap : {"good", "rough", "bad", "unknown"}
        The best that may be said of `purposes`; "good" of a remark.
    purposes : tuple of str, or "all"
        Names in `PURPOSES`; empty for a remark.
    remedy : Remedy, optional
        What to do about it; None if nothing helps.
    """

    reason: Reason
    cap: Word = "rough"
    purposes: Purposes = "all"
    remedy: Remedy | None = None

    def caps(self, purpose: Purpose) -> bool:
        """Whether it speaks against using the fit for a purpose."""
        if self.purposes == "all":
            return True
        return purpose.name in self.purposes


def too_few(findings: Sequence[Finding]) -> bool:
    """Whether there are so few draws that not even their noise is known."""
    return any(f.reason.code in TOO_FEW for f in findings)


def findings_of(tree: xr.DataTree, reference: xr.DataTree | None = None) -> list[Finding]:
    """Return what speaks against a fit, the worst first.

    Parameters
    ----------
    tree : DataTree
        A fit.
    reference : DataTree, optional
        The fit that it is compared with; None, or the fit itself, if there is no other.
    """
    other = None if reference is tree else reference
    fingerprint, kind = tree.attrs.get("fingerprint"), tree.attrs.get("kind")
    if other is not None and fingerprint != other.attrs.get("fingerprint"):
        reason = Reason("other problem", {"fingerprint": fingerprint})
        return [Finding(reason, "bad", remedy=Remedy("fit its problem"))]
    if not group(tree, "posterior").data_vars:
        why = tree.attrs.get("reason") or "no reason given"
        return [Finding(Reason("no draws", {"reason": why}), "bad")]
    beside = other is not None
    findings = _chains(tree, beside) if kind == "mcmc" else _approximation(tree, beside)
    findings += _unfinished(tree, beside, findings) + _copied(tree, other) + _miscalibrated(tree)
    if not too_few(findings):
        findings += _nothing_visible(tree, other)
    if why := tree.attrs.get("prior_unchecked"):
        findings.append(Finding(Reason("prior unchecked", {"why": why}), purposes=()))
    if is_bare(tree):  # what speaks against its intervals speaks against all that is judged
        findings = [replace(f, purposes="all") if f.purposes else f for f in findings]
    return sorted(
        findings, key=lambda f: BEST_FIRST.index(f.cap) if f.purposes else -1, reverse=True
    )


# --- Markov chains --------------------------------------------------------------------------------


def _chains(tree: xr.DataTree, beside: bool) -> list[Finding]:
    posterior, total = group(tree, "posterior"), diagnostics.drawn(tree)
    if posterior.sizes["chain"] < CHAINS:
        return [Finding(Reason("one chain"), "unknown", remedy=remedies.run(tree, chains=4))]
    if total < FEWEST or posterior.sizes["draw"] < 4:
        return [_few_draws(tree, total)]
    return _mixing(tree, beside) + _trajectories(tree, beside)


def _asked(tree: xr.DataTree) -> Profile:
    """Return what is asked of a fit's chains; of `exact`, the effective draws asked of the run."""
    if tree.attrs.get("method") != "exact":
        return VERDICT
    return replace(VERDICT, bulk=max(VERDICT.bulk, remedies.option_of(tree, "ess")))


def _few_draws(tree: xr.DataTree, total: int) -> Finding:
    reason = Reason("few draws", {"draws": total, "least": FEWEST})
    return Finding(reason, "unknown", remedy=remedies.run(tree, draws=1000))


def _mixing(tree: xr.DataTree, beside: bool) -> list[Finding]:
    """Return the first that applies: chains stuck, a frozen mask, chains apart, or few draws.

    Chains that disagree have few effective draws as well.
    """
    mixed = mixing_of(tree)
    still = _stuck(group(tree, "posterior")) or mixed.frozen
    if still is not None:
        return [Finding(still, "bad", remedy=remedies.move(tree, beside))]
    weights, rest = mixed.only(*OF_WEIGHTS), mixed.without(*OF_WEIGHTS)
    parts: tuple[tuple[Mixing, Purposes], ...] = ((rest, "all"), (weights, NOT_PREDICTIONS))
    for part, purposes in parts:
        if reason := convergence.apart(part, VERDICT):
            cap: Word = "rough" if reason.numbers["value"] < RHAT_BAD else "bad"
            return [Finding(reason, cap, purposes, remedies.mix(tree, beside))]
    return _precision(tree, rest, weights)


def _stuck(posterior: xr.Dataset) -> Reason | None:
    """Return which chains never moved, although others did."""
    array = _watched(posterior)
    moves = (array != array[:1, :1]).any(axis=(0, 1))
    stuck = (array == array[:, :1]).all(axis=1)[:, moves].all(axis=1) & moves.any()
    if not stuck.any():
        return None
    which = ", ".join(map(str, np.flatnonzero(stuck)))
    return Reason("stuck" if stuck.sum() == 1 else "several stuck", {"which": which})


def _precision(tree: xr.DataTree, rest: Mixing, weights: Mixing) -> list[Finding]:
    """Return the finding of too few effective draws: the first of these that has too few."""
    fit = rest.without("log likelihood")
    looked_at: tuple[tuple[str, Mixing, Purposes], ...] = (
        ("bulk", fit, "all"),
        ("bulk", weights, NOT_PREDICTIONS),
        ("tail", fit, ("uncertainty",)),
        ("tail", weights, ("uncertainty",)),
        ("bulk", rest, ("uncertainty",)),  # the log likelihood's own
    )
    asked = _asked(tree)
    for kind, part, purposes in looked_at:
        reason = convergence.few(part, kind, asked.bulk if kind == "bulk" else asked.tail)
        if reason is None:
            continue
        remedy = remedies.raise_draws(tree, reason.numbers["value"])
        if reason.numbers["value"] < FEWEST and purposes == "all":
            reason = Reason("few effective", {**reason.numbers, "least": FEWEST})
            return [Finding(reason, "unknown", remedy=remedy)]
        return [Finding(reason, "rough", purposes, remedy)]
    return []


def _watched(posterior: xr.Dataset) -> np.ndarray:
    """Return eta (chain, draw, k); without eta, all variables side by side."""
    names = ["eta"] if "eta" in posterior else list(posterior.data_vars)
    return np.concatenate([diagnostics.draws_of(posterior[n]) for n in names], axis=-1)


def _trajectories(tree: xr.DataTree, beside: bool) -> list[Finding]:
    """Return the findings of NUTS's trajectories: divergences, energy, tree depth."""
    findings: list[Finding] = []
    count, total = diagnostics.divergences(tree), diagnostics.transitions(tree)
    for reason in convergence.missed(tree, VERDICT):
        if reason.code == "energy":
            findings += [Finding(reason, "rough", TAILS, remedies.reach(tree))]
            continue
        bad = count > DIVERGENT_BAD * total
        remedy = remedies.raise_target(tree, beside)
        findings += [Finding(reason, "bad" if bad else "rough", "all" if bad else MOMENTS, remedy)]
    if 0 < count <= VERDICT.divergent * total:
        counts = {"count": count, "total": total}
        findings += [Finding(Reason("few diverged", counts), purposes=())]
    return findings + _depth(tree)


def _depth(tree: xr.DataTree) -> list[Finding]:
    """Return the finding of trajectories that were cut off."""
    stats = group(tree, "sample_stats")
    limit = int(remedies.options(tree).get("max_treedepth", 10))
    share = float((stats["tree_depth"] >= limit).mean()) if "tree_depth" in stats else 0.0
    if share <= DEEP_SHARE:
        return []
    reason = Reason("depth", {"percent": 100.0 * share, "limit": limit})
    return [Finding(reason, "good", (), remedies.deepen(tree, limit))]


# --- approximations, points and searches ----------------------------------------------------------


def _approximation(tree: xr.DataTree, beside: bool) -> list[Finding]:
    stats, total, findings = group(tree, "sample_stats"), diagnostics.drawn(tree), []
    if "log_q" in stats and "lp" in stats:
        khat = diagnostics.khat(stats["lp"].values, stats["log_q"].values)
        limit = diagnostics.khat_limit(stats["lp"].size)
        if khat > limit:
            # beside a reference the distances themselves are known
            reason = Reason("khat", {"value": khat, "limit": limit})
            findings.append(Finding(reason, "bad", () if beside else MOMENTS))
    if total == 1:
        findings.append(Finding(Reason("point"), "bad", ("uncertainty", "parameters")))
    elif total < FEWEST:
        findings.append(_few_draws(tree, total))
    elif total < VERDICT.bulk:
        reason = Reason("not many draws", {"draws": total, "least": VERDICT.bulk})
        findings.append(Finding(reason, "rough", remedy=remedies.run(tree, draws=1000)))
    return findings


# --- whatever the method --------------------------------------------------------------------------


def _unfinished(tree: xr.DataTree, beside: bool, findings: list[Finding]) -> list[Finding]:
    """Return the finding of a status that is not "finished"; of chains, if nothing else says so."""
    status, chains = tree.attrs.get("status"), tree.attrs.get("kind") == "mcmc"
    reason = str(tree.attrs.get("reason") or status)
    if not chains and status != "finished":
        return [Finding(told(reason), "bad", remedy=remedies.again(tree, beside))]
    if chains and status == "not_converged" and not any(f.purposes for f in findings):
        # nothing is wrong with its draws as far as is known, and it is not what was asked for
        return [Finding(Reason("longer", {"reason": reason}), "rough", remedy=remedies.more(tree))]
    return []


def _copied(tree: xr.DataTree, reference: xr.DataTree | None) -> list[Finding]:
    """Return the finding of draws that are the reference's own."""
    if reference is None or not group(reference, "posterior").data_vars:
        return []
    own, other = (_watched(group(t, "posterior")) for t in (tree, reference))
    if own.shape[2:] != other.shape[2:] or own.dtype.kind != "f":
        return []
    sums = [np.sum(x, axis=-1).ravel() for x in (own, other)]
    share = float(np.isin(sums[0], sums[1]).mean())
    if share <= SHARED_DRAWS or len(np.unique(sums[1])) < len(sums[1]) / 2:
        return []
    reason = Reason("copied", {"percent": 100.0 * share})
    return [Finding(reason, "unknown", remedy=remedies.reseed(tree))]


def _miscalibrated(tree: xr.DataTree) -> list[Finding]:
    """Return the finding of a calibration that disagrees."""
    if tree.attrs.get("calibrated") != 0:
        return []
    return [Finding(told(str(tree.attrs["calibration"])), "bad", remedy=remedies.USE_EXACT)]


def _nothing_visible(tree: xr.DataTree, reference: xr.DataTree | None) -> list[Finding]:
    """Return the finding that no effect is visible; beside a reference, where that is wrong.

    Means of about one visible effect in both are the same answer, on either side of one.
    """
    own = summary(group(tree, "selection"), "feature")
    other = {} if reference is None else summary(group(reference, "selection"), "feature")
    if not own or own["visible"] >= 1.0:
        return []
    if other and other["visible"] < max(1.0, 2 * own["visible"]):
        return []
    which = Reason("few visible", own) if own["visible"] > 0.0 else Reason("none visible")
    if other:
        reason = Reason("less visible", {"which": which, "reference": other["visible"]})
        return [Finding(reason, "bad", ("ranking", "selection"), remedies.USE_REFERENCE)]
    if tree.attrs.get("kind") == "mcmc":
        return [Finding(Reason("invisible", {"which": which}), "good", ())]
    reason = Reason("invisible or lost", {"which": which})
    return [Finding(reason, "unknown", ("ranking", "selection"), remedies.USE_EXACT)]


# --- where draws come from ------------------------------------------------------------------------


def is_exact(tree: xr.DataTree) -> bool:
    """Whether the limit of a fit's draws is known to be the posterior."""
    kind, method = tree.attrs.get("kind"), tree.attrs.get("method")
    return kind == "mcmc" and (method in EXACT_METHODS or tree.attrs.get("calibrated") == 1)


def why_not(tree: xr.DataTree) -> Reason | None:
    """Return why the limit of a fit's draws is not known to be the posterior, None if it is."""
    if is_exact(tree):
        return None
    return Reason("adopted" if tree.attrs.get("kind") == "mcmc" else "nothing exact")


def agreeing(reference: str, fits: Mapping[str, xr.DataTree], trusted: list[str]) -> str | None:
    """Return which trusted fit, by another exact sampler, agrees with the reference, None if no."""
    own = _sampler(fits[reference])
    others = [n for n in trusted if is_exact(fits[n]) and _sampler(fits[n]) != own]
    return others[0] if others else None


def _sampler(tree: xr.DataTree) -> str:
    return str(tree.attrs.get("sampler") or tree.attrs.get("method"))
