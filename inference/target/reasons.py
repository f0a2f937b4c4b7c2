"""Why a fit is not what was asked for: a code with its numbers, and the words of every code.

Code asks for the code and the numbers, and never for the words. Words are made here alone, for the
status of a fit, for its verdict and for the page. A method may also give its reason as plain text;
the code of that is "told".

A fit stores the words (``attrs["reason"]``) and beside them the code (``attrs["reason_code"]``).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

WORDS = {
    # what a method says of itself
    "told": "{text}",
    "failed": "{step} failed: {error}",
    "unfinished": "{text}; raise {options}",
    "still rising": "the ELBO was still rising after {steps} iterations "
    "(stage {stage} of {stages})",
    "fell": "the ELBO fell from {start:.4g} to {end:.4g}, because the steps are too long; lower "
    "step_sizes",
    "short": "the optimiser stopped short of a mode (Newton decrement {decrement:.3g})",
    "collapsed": "the fit collapsed: iteration {iteration} pruned the last {what}; returned: "
    "{returned}. {advice}",
    "stopped": "{missing}, after {after}; go on with ardvark.resume, or raise {limit}",
    # convergence of Markov chains
    "draws": "fewer than {least} draws per chain, too few to judge convergence",
    "chains": "R-hat needs at least {least} chains",
    "frozen": "no bit of the mask of {mask} ever changed",
    "rhat": "R-hat of {quantity} is {value:.3f} (limit {limit:.3g}){others}",
    "others": ", and {more} more of {of} quantities are above their limit",
    "ess": "{kind} ESS of {quantity} is {value:.0f} (at least {least:.0f})",
    "one pass": "the last judgement passed, but {passes} in a row are asked for",
    # what a verdict finds in one fit
    "other problem": "its draws are of a different problem (fingerprint {fingerprint})",
    "no draws": "there are no draws: {reason}",
    "few draws": "there are {draws} draws, and fewer than {least:.0f} effective ones are too few "
    "to judge",
    "few effective": "{kind} ESS of {quantity} is {value:.0f}, and fewer than {least:.0f} "
    "effective ones are too few to judge",
    "not many draws": "there are {draws} draws (at least {least:.0f})",
    "one chain": "chains=1: R-hat needs at least 2",
    "stuck": "chain {which} never moved",
    "several stuck": "chains {which} never moved",
    "longer": "{reason}",
    "few diverged": "{count} of {total} transitions diverged: too few to change the verdict",
    "region missed": "{count} of {total} transitions diverged: the chains may have missed a region "
    "of the posterior",
    "energy": "E-FMI is {value:.2f} (limit {limit}): the chains explore the tails slowly",
    "depth": "{share:.0%} of the trajectories reached the maximum tree depth, {limit}",
    "khat": "k-hat is {value:.2f} (limit {limit:.2f}): q misses part of the posterior mass",
    "point": "it is a single state, with no spread and no inclusion probabilities",
    "copied": "{percent:.0f} % of its draws are the reference's own, so it is no independent fit",
    "none visible": "no feature has an effect above 0.1 in any of its draws",
    "few visible": "only {visible:.1f} features have an effect above 0.1, on average over draws",
    "less visible": "{which}; the reference has {reference:.1f}",
    "invisible": "{which}. This may be the truth: nothing in X predicts y",
    "invisible or lost": "{which}. This may be the truth, or lost by the approximation",
    # what a verdict finds beside other fits
    "distance": "{text}",
    "hidden": "{text}: too few draws to tell",
    "adopted": "its draws were adopted, and draws do not prove what they are of",
    "prior unchecked": "prior unchecked: {why}",
    "nothing exact": "there is no exact posterior to compare it with",
    "not exact": "it is no exact posterior",
    "doubted": "the reference, {reference}, cannot be trusted: {reason}",
}
"""The words of each code, with the names of its numbers."""


@dataclass(frozen=True)
class Reason:
    """Why something was not reached, or what speaks against a fit.

    Attributes
    ----------
    code : str
        In `WORDS`.
    numbers : dict
        What its words name: numbers, names of quantities, and reasons that are a part of it.

    Examples
    --------
    >>> from ardvark.inference.target.reasons import Reason
    >>> str(Reason("chains", {"least": 2}))
    'R-hat needs at least 2 chains'
    """

    code: str
    numbers: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return it in words."""
        return WORDS[self.code].format(**self.numbers)


def told(text: str) -> Reason:
    """Return a reason that is given in words, and means nothing to code."""
    return Reason("told", {"text": text})


def joined(reasons: Iterable[Reason]) -> str:
    """Return several reasons in words."""
    return "; ".join(map(str, reasons))
