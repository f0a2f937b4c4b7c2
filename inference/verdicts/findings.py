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
    """

    text: str
    cap: Word = "rough"
    purposes: Purposes = "all"
    remedy: str = ""

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
    found = _chains(tree) if tree.attrs.get("kind") == "mcmc" else _approximation(tree, other)
    status, reason = tree.attrs.get("status"), str(tree.attrs.get("reason") or "")
    if status not in (None, "finished") and not any(f.purposes for f in found):
        found.append(Finding(reason or str(status), "bad", remedy=remedies.again(tree)))
    found += _nothing_active(tree, other)
    order: dict[Word, int] = {"bad": 0, "unknown": 1, "rough": 2, "good": 3}
    return sorted(found, key=lambda f: order[f.cap] if f.purposes else 4)


def _restored(found: dict[str, Any]) -> Finding:
    """Return a finding as it was before it was written as JSON."""
    purposes = found["purposes"]
    return Finding(**{**found, "purposes": "all" if purposes == "all" else tuple(purposes)})


# --- Markov chains --------------------------------------------------------------------------------


def _chains(tree: xr.DataTree) -> list[Finding]:
    posterior = group(tree, "posterior")
    chains, draws = posterior.sizes["chain"], posterior.sizes["draw"]
    if chains < 2:
        return [Finding("chains=1: R-hat needs at least 2", "unknown", remedy="run 4 chains")]
    if draws < 4:
        text = f"draws={draws}: too few draws to judge convergence"
        return [Finding(text, "unknown", remedy="raise draws to about 1000")]
    array = _watched(posterior)
    moves = (array != array[:1, :1]).any(axis=(0, 1))
    stuck = (array == array[:, :1]).all(axis=1)[:, moves].all(axis=1) & moves.any()
    if stuck.any():
        which = ", ".join(str(c) for c in np.flatnonzero(stuck))
        text = f"chain {which} never moved" if stuck.sum() == 1 else f"chains {which} never moved"
        remedy = "other starting points (another seed), more tuning or a higher target_accept"
        return [Finding(text, "bad", remedy=remedy), *_energy(tree, draws * chains)]
    mixed = mixing_of(tree)
    found: list[Finding] = []
    if mixed.frozen:
        remedy = "more draws, or another method"
        return [Finding(mixed.frozen, "bad", remedy=remedy), *_energy(tree, draws * chains)]
    weights = mixed.only(*OF_WEIGHTS)
    rest = mixed.only(*{k for k in mixed.kinds if k not in OF_WEIGHTS})
    for part, purposes in ((rest, "all"), (weights, NOT_PREDICTIONS)):
        if part.beyond:
            cap: Word = "rough" if part.rhat.value < RHAT_BAD else "bad"
            found.append(Finding(part.rhat_text(), cap, purposes, remedies.mix(tree)))
            break
    return [*found, *_precision(rest, weights), *_energy(tree, draws * chains)]


def _precision(rest: Mixing, weights: Mixing) -> list[Finding]:
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
            remedy = remedies.raise_draws(rest.sizes[1], size)
            text = f"{kind} ESS of {name} is {size:.0f} (at least {remedies.ENOUGH:.0f})"
            return [Finding(text, "rough", purposes, remedy)]
    return []


def _watched(posterior: xr.Dataset) -> np.ndarray:
    """Return eta (chain, draw, k); without eta, all variables side by side."""
    names = ["eta"] if "eta" in posterior else list(posterior.data_vars)
    return np.concatenate([diagnostics.draws_of(posterior[n]) for n in names], axis=-1)


def _energy(tree: xr.DataTree, total: int) -> list[Finding]:
    """Return the findings of the trajectories: divergences, energy, tree depth."""
    stats, found = group(tree, "sample_stats"), []
    count = diagnostics.divergences(tree)
    if count:
        text = f"{count} of {total} transitions diverged"
        if count <= diagnostics.FEW_DIVERGENT * total:
            found.append(Finding(f"{text}: too few to change the verdict", purposes=()))
        else:
            bad = count > diagnostics.DIVERGENT_SHARE * total
            purposes: Purposes = "all" if bad else ("means", "uncertainty")
            text += ": the chains may have missed a region of the posterior"
            found.append(
                Finding(text, "bad" if bad else "rough", purposes, remedies.raise_target(tree))
            )
    if "energy" in stats:
        low = float(bfmi(stats["energy"].transpose("chain", "draw").values).min())
        if low < LOW_ENERGY:
            text = f"E-FMI is {low:.2f} (limit {LOW_ENERGY}): the chains explore the tails slowly"
            remedy = "another parameterisation of the model, or more draws"
            found.append(Finding(text, "rough", ("uncertainty",), remedy))
    if "tree_depth" in stats:
        limit = int(remedies.options(tree).get("max_treedepth", 10))
        share = float((stats["tree_depth"] >= limit).mean())
        if share > DEEP_SHARE:
            text = f"{share:.0%} of the trajectories reached the maximum tree depth, {limit}"
            found.append(Finding(text, "good", (), f"raise max_treedepth to {limit + 2}"))
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
            alone: Purposes = ("means", "uncertainty") if reference is None else ()
            found.append(Finding(text, "bad", alone))
    posterior = group(tree, "posterior")
    if posterior.sizes["chain"] * posterior.sizes["draw"] == 1:
        text = "it is a single state, with no spread and no inclusion probabilities"
        found.append(Finding(text, "bad", ("uncertainty",)))
    return found


def _nothing_active(tree: xr.DataTree, reference: xr.DataTree | None) -> list[Finding]:
    """Return the finding that no feature is active although the reference has active ones."""
    own = summary(group(tree, "selection"), "feature")
    other = {} if reference is None else summary(group(reference, "selection"), "feature")
    if not own or own["active"] >= 1.0 or other.get("active", 1.0) < 1.0:
        return []
    text = "no feature is active in any of its draws"
    if own["active"] > 0.0:
        text = f"only {own['active']:.1f} features are active on average"
    if other:
        text += f"; the reference has {other['active']:.1f}"
    remedy = "use another method; this one found the sparse prior's peak at zero"
    return [Finding(text, "bad", ("ranking", "selection"), remedy)]
