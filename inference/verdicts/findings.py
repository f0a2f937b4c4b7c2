"""What the diagnostics of a single fit say against it, each with a remedy.

A finding limits what a verdict (`verdict.py`) may say about some purposes, to "rough", "bad" or, if
the diagnostic itself is missing, "unknown". A finding without purposes is a remark.
"""

import json
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import xarray as xr

from ..fits import diagnostics
from ..fits.datatree import group
from ..fits.mixing import OF_WEIGHTS, Mixing, Worst, mixing_of
from ..fits.selection import summary
from ..fitting.registry import BACKENDS
from ..scoring.statistic import Word
from . import remedies
from .purposes import Purpose

Purposes = tuple[str, ...] | Literal["all"]

# --- the limits, with their reasons ---------------------------------------------------------------

RHAT_BAD = 1.1
"""Above 1.01 (Vehtari et al. 2021) chains have not mixed. Above 1.1, the old limit of Gelman and
Rubin, a fifth of the variance is between chains, and not even a mean can be reported."""
LOW_ENERGY = 0.2
"""E-FMI below which momentum cannot reach the energies of the tails (Betancourt 2016)."""
DEEP_SHARE = 0.05
"""Above this share of trajectories that reach the maximum tree depth, the finding is reported. It
costs effective draws, not correctness."""


SHARED_DRAWS = 0.1
"""Above this share of draws that are the reference's own, agreement with it proves nothing."""
MOMENTS: Purposes = ("means", "uncertainty", "parameters")
NOT_PREDICTIONS: Purposes = ("means", "uncertainty", "ranking", "selection")
"""What weights that have not mixed speak against. Predictions are judged by eta: chains on two
copies of a feature make the same ones."""


@dataclass(frozen=True)
class Finding:
    """Something that speaks against a fit.

    Attributes
    ----------
    text : str
        What was found, with its number.
    cap : {"rough", "bad", "unknown"}
        The best that may be said of `purposes`.
    purposes : tuple of str, or "all"
        Names in `PURPOSES`; empty for a remark.
    remedy : str
        What to do about it, "" if nothing helps.
    few : bool
        Whether it is only about the number of draws, and says nothing against where they are.
    """

    text: str
    cap: Word = "rough"
    purposes: Purposes = "all"
    remedy: str = ""
    few: bool = False

    def caps(self, purpose: Purpose) -> bool:
        """Whether it speaks against using the fit for a purpose."""
        if self.purposes == "all":
            return True
        return any(name in self.purposes for name in (purpose.name, *purpose.capped_with))


def findings(tree: xr.DataTree, reference: xr.DataTree | None = None) -> list[Finding]:
    """Return what speaks against a fit, the worst first.

    Parameters
    ----------
    tree : DataTree
        A fit.
    reference : DataTree, optional
        The fit that it is compared with; None, or the fit itself, if there is no other.
    """
    other = None if reference is tree else reference
    if other is not None and tree.attrs.get("fingerprint") != other.attrs.get("fingerprint"):
        return [
            Finding(
                "its draws are of a different problem "
                f"(fingerprint {tree.attrs.get('fingerprint')})",
                "bad",
                remedy="fit the same problem as the reference",
            )
        ]
    if not group(tree, "posterior").data_vars:
        reason = tree.attrs.get("reason") or "no reason given"
        return [Finding(f"there are no draws: {reason}", "bad")]
    if tree.attrs.get("kind") == "reference":  # judged by all of its draws when it was made
        stored = json.loads(tree.attrs["findings"])
        return [_restored(found) for found in stored]
    beside = other is not None
    chains = tree.attrs.get("kind") == "mcmc"
    found = _chains(tree, beside) if chains else _approximation(tree, other)
    if not chains and tree.attrs.get("status") not in (None, "finished"):
        reason = str(tree.attrs.get("reason") or tree.attrs["status"])
        found.append(Finding(reason, "bad", remedy=remedies.again(tree, beside)))
    stopped = chains and tree.attrs.get("status") == "not_converged"
    if stopped and not any(f.purposes for f in found):
        found.append(Finding(f"{tree.attrs['reason']}, which so few draws explain", "good", ()))
    found += _copied(tree, other) + _disputed(tree)
    if not any(f.few and f.cap == "unknown" for f in found):
        found += _nothing_active(tree, other)
    order: dict[Word, int] = {"bad": 0, "unknown": 1, "rough": 2, "good": 3}
    return sorted(found, key=lambda f: order[f.cap] if f.purposes else 4)


def _restored(found: dict[str, Any]) -> Finding:
    """Return a finding as it was before it was written as JSON."""
    purposes = found["purposes"]
    return Finding(**{**found, "purposes": "all" if purposes == "all" else tuple(purposes)})


# --- Markov chains --------------------------------------------------------------------------------


def _chains(tree: xr.DataTree, beside: bool) -> list[Finding]:
    posterior = group(tree, "posterior")
    chains, draws = posterior.sizes["chain"], posterior.sizes["draw"]
    if chains < 2:
        remedy = remedies.run(tree, chains=4)
        return [Finding("chains=1: R-hat needs at least 2", "unknown", remedy=remedy)]
    total = chains * draws
    if total < remedies.FEWEST or draws < 4:
        return [_too_few(f"there are {total} draws", remedies.run(tree, draws=1000))]
    array = _watched(posterior)
    moves = (array != array[:1, :1]).any(axis=(0, 1))
    stuck = (array == array[:, :1]).all(axis=1)[:, moves].all(axis=1) & moves.any()
    if stuck.any():
        which = ", ".join(str(c) for c in np.flatnonzero(stuck))
        text = f"chain {which} never moved" if stuck.sum() == 1 else f"chains {which} never moved"
        found = [Finding(text, "bad", remedy=remedies.move(tree, beside))]
        return found + _energy(tree, total, beside)
    mixed = mixing_of(tree)
    if mixed.frozen:
        found = [Finding(mixed.frozen, "bad", remedy=remedies.move(tree, beside))]
        return found + _energy(tree, total, beside)
    weights = mixed.only(*OF_WEIGHTS)
    rest = mixed.only(*{k for k in mixed.kinds if k not in OF_WEIGHTS})
    apart = _apart(tree, rest, weights, beside)
    found = apart or _precision(tree, rest, weights)  # chains that disagree have few as well
    return [*found, *_energy(tree, total, beside)]


def _too_few(text: str, remedy: str) -> Finding:
    text = f"{text}, and fewer than {remedies.FEWEST:.0f} effective ones are too few to judge"
    return Finding(text, "unknown", remedy=remedy, few=True)


def _apart(tree: xr.DataTree, rest: Mixing, weights: Mixing, beside: bool) -> list[Finding]:
    """Return the finding of chains that disagree by more than so few draws explain."""
    for part, purposes in ((rest, "all"), (weights, NOT_PREDICTIONS)):
        apart = part.disagreeing
        if apart.names:
            cap: Word = "rough" if apart.rhat.value < RHAT_BAD else "bad"
            text = apart.rhat_text(len(part.names))
            return [Finding(text, cap, purposes, remedies.mix(tree, beside))]
    return []


def _precision(tree: xr.DataTree, rest: Mixing, weights: Mixing) -> list[Finding]:
    """Return the finding of too few effective draws: the first of these that has too few."""
    fit = rest.only(*{k for k in rest.kinds if k != "log likelihood"})
    looked_at: tuple[tuple[str, Worst, Purposes], ...] = (
        ("bulk", fit.ess_bulk, "all"),
        ("bulk", weights.ess_bulk, NOT_PREDICTIONS),
        ("tail", fit.ess_tail, ("uncertainty",)),
        ("tail", weights.ess_tail, ("uncertainty",)),
        ("bulk", rest.ess_bulk, ("uncertainty",)),  # the log likelihood's own
    )
    for kind, (size, name), purposes in looked_at:
        if size < remedies.ENOUGH:
            remedy = remedies.raise_draws(tree, size)
            text = f"{kind} ESS of {name} is {size:.0f}"
            if size < remedies.FEWEST and purposes == "all":
                return [_too_few(text, remedy)]
            text += f" (at least {remedies.ENOUGH:.0f})"
            return [Finding(text, "rough", purposes, remedy, few=True)]
    return []


def _watched(posterior: xr.Dataset) -> np.ndarray:
    """Return eta (chain, draw, k); without eta, all variables side by side."""
    names = ["eta"] if "eta" in posterior else list(posterior.data_vars)
    return np.concatenate([diagnostics.draws_of(posterior[n]) for n in names], axis=-1)


def _energy(tree: xr.DataTree, total: int, beside: bool) -> list[Finding]:
    """Return the findings of the trajectories: divergences, energy, tree depth."""
    stats, found = group(tree, "sample_stats"), []
    count = diagnostics.divergences(tree)
    if count:
        text = f"{count} of {total} transitions diverged"
        if count <= diagnostics.FEW_DIVERGENT * total:
            found.append(Finding(f"{text}: too few to change the verdict", purposes=()))
        else:
            bad = count > diagnostics.DIVERGENT_SHARE * total
            purposes: Purposes = "all" if bad else MOMENTS
            text += ": the chains may have missed a region of the posterior"
            remedy = remedies.raise_target(tree, beside)
            found.append(Finding(text, "bad" if bad else "rough", purposes, remedy))
    if "energy" in stats:
        low = float(bfmi(stats["energy"].transpose("chain", "draw").values).min())
        if low < LOW_ENERGY:
            text = f"E-FMI is {low:.2f} (limit {LOW_ENERGY}): the chains explore the tails slowly"
            remedy = remedies.raise_draws(tree, remedies.ENOUGH / 4)
            found.append(Finding(text, "rough", ("uncertainty",), remedy))
    if "tree_depth" in stats:
        limit = int(remedies.options(tree).get("max_treedepth", 10))
        share = float((stats["tree_depth"] >= limit).mean())
        if share > DEEP_SHARE:
            text = f"{share:.0%} of the trajectories reached the maximum tree depth, {limit}"
            remedy = ""
            if tree.attrs.get("method") not in BACKENDS or remedies.has_option(
                tree, "max_treedepth"
            ):
                remedy = remedies.run(tree, max_treedepth=limit + 2)
            found.append(Finding(text, "good", (), remedy))
    return found


def bfmi(energy: np.ndarray) -> np.ndarray:
    """Return the E-FMI of each chain of energies (chain, draw); NaN where they never change."""
    from arviz_stats.base import array_stats

    with np.errstate(divide="ignore", invalid="ignore"):
        return array_stats.bfmi(energy, chain_axis=0, draw_axis=1)


# --- approximations, points and searches ----------------------------------------------------------


def _approximation(tree: xr.DataTree, reference: xr.DataTree | None) -> list[Finding]:
    stats, found = group(tree, "sample_stats"), []
    if "log_q" in stats and "lp" in stats:
        khat = diagnostics.khat(stats["lp"].values, stats["log_q"].values)
        limit = diagnostics.khat_limit(stats["lp"].size)
        if khat > limit:
            text = f"k-hat is {khat:.2f} (limit {limit:.2f}): q misses part of the posterior mass"
            # beside a reference the distances themselves are known
            alone: Purposes = MOMENTS if reference is None else ()
            found.append(Finding(text, "bad", alone))
    posterior = group(tree, "posterior")
    total = posterior.sizes["chain"] * posterior.sizes["draw"]
    if total == 1:
        text = "it is a single state, with no spread and no inclusion probabilities"
        found.append(Finding(text, "bad", ("uncertainty", "parameters")))
    elif total < remedies.FEWEST:
        found.append(_too_few(f"there are {total} draws", remedies.run(tree, draws=1000)))
    elif total < remedies.ENOUGH:
        text = f"there are {total} draws (at least {remedies.ENOUGH:.0f})"
        found.append(Finding(text, "rough", remedy=remedies.run(tree, draws=1000), few=True))
    return found


# --- whatever the method --------------------------------------------------------------------------


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
    text = f"{share:.0%}".replace("%", " %")
    return [
        Finding(
            f"{text} of its draws are the reference's own, so it is no independent fit",
            "unknown",
            remedy=remedies.run(tree, random_seed=int(tree.attrs.get("seed") or 0) + 1),
        )
    ]


def _disputed(tree: xr.DataTree) -> list[Finding]:
    """Return the finding of a second opinion, or of a calibration, that disagrees."""
    opinion = str(tree.attrs.get("second_opinion") or "")
    found = []
    if opinion.startswith("disagrees"):
        found.append(Finding(f"another exact sampler {opinion}", "bad", remedy=remedies.RESUME))
    if tree.attrs.get("calibrated") == 0:
        found.append(Finding(str(tree.attrs["calibration"]), "bad", remedy=remedies.EXACT))
    return found


def _nothing_active(tree: xr.DataTree, reference: xr.DataTree | None) -> list[Finding]:
    """Return the finding that no feature is active; beside a reference, where that is wrong.

    Means of about one active feature in both are the same answer, on either side of one.
    """
    own = summary(group(tree, "selection"), "feature")
    other = {} if reference is None else summary(group(reference, "selection"), "feature")
    if not own or own["active"] >= 1.0 or (other and other["active"] < max(1.0, 2 * own["active"])):
        return []
    text = "no feature is active in any of its draws"
    if own["active"] > 0.0:
        text = f"only {own['active']:.1f} features are active on average"
    if other:
        text += f"; the reference has {other['active']:.1f}"
        return [Finding(text, "bad", ("ranking", "selection"), remedies.REFERENCE)]
    if tree.attrs.get("kind") == "mcmc":
        return [Finding(f"{text}. This may be the truth: nothing in X predicts y", "good", ())]
    text += ". This may be the truth, or lost by the approximation"
    return [Finding(text, "unknown", ("ranking", "selection"), remedies.EXACT)]
