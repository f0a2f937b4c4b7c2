"""Which sampler gives the exact posterior of a problem: the rule, and what was measured for it.

`nuts`, `mams` and `gibbs` sample the posterior itself, and nearly everywhere all apply. How long
they take differs by factors:

    model, kernel             sampler   why
    fsklr, sklr, fs_skr       gibbs     binary masks have no gradient
    pfcvm with rbf, poly.     gibbs     nuts: R-hat 1.03 after 4 x 4000 draws on sonar
    pfcvm, rfvm: D > 3 N      gibbs     nuts: R-hat 1.02 on colon (62 x 2000), 1.3 at 72 x 7129
    pfcvm, rfvm: D <= 3 N     mams      nuts takes 1.5 to 3.0 times as long; nuts has 1.3 to 5 times
                                        the ESS a second of gibbs at 40 x 60 and 250 x 64
    jcfo, pcvm, rvm, probit   mams      few modes; nuts takes 1.2 to 2.6 times as long
    the same with a learned   gibbs     mams: R-hat 1.9 of the scale on colon, where gibbs, in the
      feature scale, D > 3 N            same two minutes, had finished (jcfo)
      or rbf, degree > 1      gibbs     mams: R-hat 1.6 at 30 x 6 (degree 2); with rbf it can end as
                                        if converged, without the small scales that gibbs finds
    horseshoe: D > 3 N        gibbs     nuts: R-hat 1.02 after 4 x 8192 draws on colon
    horseshoe: D <= 3 N       mams      nuts takes 1.6 times as long
    a bare `pm.Model`         nuts      mams was measured on the models of the zoo only

"As long" is the processor time until `exact` stops by its own rule, on sonar, digits38 and colon.
Figures and dates are in `lab/speed/SPEED.md` and `lab/algorithms/ALGORITHMS.md`.
"""

from dataclasses import dataclass

from ardvark.common.registry import Registry

from ...target.chains import Continuing
from ...target.target import Target

SAMPLERS = Registry[Continuing](
    __package__,
    {"gibbs": "..gibbs.method", "nuts": "..gradient.nuts", "mams": "..gradient.mams"},
)
"""The exact samplers, by name."""
MASKS = "binary masks have no gradient"
MODES = (
    "a sparse prior's posterior has many modes, and a jump finds the next one where a path does not"
)
SMOOTH = "with few modes, trajectories along gradients take the longest steps for their cost"
FEW = "with few features for its samples, the posterior has few modes and its gradient is cheap"
RIDGE = "a scale and the weights that follow it are a ridge, along which a move is one step"
FAT = 3
"""Features per sample above which jumps are faster than gradients."""

SPARSE_PRODUCTS = ("pfcvm", "rfvm")
"""Models whose eta is a product of feature weights and sample weights under sparse priors."""
JUMPS = (*SPARSE_PRODUCTS, "horseshoe")
"""Models with sparse priors of the features, for which `gibbs` jumps between modes."""


@dataclass(frozen=True)
class Pick:
    """The sampler for a target, and why it was chosen."""

    name: str
    reason: str

    @property
    def sampler(self) -> Continuing:
        """The method itself."""
        return SAMPLERS[self.name]


def refusal(target: Target) -> str | None:
    """Return why no exact sampler applies, or None."""
    refusals = {name: sampler.supports(target) for name, sampler in SAMPLERS.items()}
    if not all(refusals.values()):
        return None
    return "no exact sampler applies: " + "; ".join(f"{n}: {why}" for n, why in refusals.items())


def pick(target: Target) -> Pick:
    """Return the sampler for a target that `refusal` accepts."""
    applies = [name for name, sampler in SAMPLERS.items() if sampler.supports(target) is None]
    picked = _preferred(target)
    if picked.name in applies:
        return picked
    return Pick(applies[0], f"{picked.name} does not apply to it")


def _preferred(target: Target) -> Pick:
    """Return what the module's table says."""
    problem = target.problem
    if problem is None:
        return Pick("nuts", "gradients serve any model")
    if problem.spec.masked:
        return Pick("gibbs", MASKS)
    N, D = problem.X.shape
    if problem.spec.name in JUMPS:
        linear = problem.kernel is None or problem.kernel.is_linear
        if D > FAT * N or not linear:
            return Pick("gibbs", MODES)
        return Pick("mams", FEW)
    if problem.hypers.learned_scale == "feature_scale":
        primal = problem.kernel is None or problem.kernel.is_primal
        if D > FAT * N or not primal:
            return Pick("gibbs", RIDGE)
    return Pick("mams", SMOOTH)
