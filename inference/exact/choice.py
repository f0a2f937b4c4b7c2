"""Which sampler gives the exact posterior of a model: the rule, and what was measured for it.

`nuts` and `gibbs` both sample the posterior itself. Where both apply, they differ in how fast they
mix. The rule takes the first method in `ORDER` that applies to the target. It depends on the model
and its kernel alone, because in the measurements (`benchmarks/exact_speed.py`) the order was the
same at every size that was tried.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ..contract.chains import Continuing
from ..contract.target import Target
from ..generic import nuts
from ..gibbs import sampling as gibbs

SAMPLERS: Mapping[str, Continuing] = {module.NAME: module for module in (nuts, gibbs)}
"""The exact samplers, by name."""
MASKS = "binary masks have no gradient"
MODES = (
    "a sparse prior's posterior has many modes, and a jump finds the next one where a path does not"
)
SMOOTH = "with few modes, gradients take the longest steps for their cost"

ORDER: Mapping[str, tuple[str, str]] = {
    "pfcvm": ("gibbs", MODES),
    "rfvm": ("gibbs", MODES),
    "fsklr": ("gibbs", MASKS),
    "sklr": ("gibbs", MASKS),
    "fs_skr": ("gibbs", MASKS),
}
"""The sampler that a model is given where it applies, and why; every other model is given nuts."""


@dataclass(frozen=True)
class Choice:
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


def choose(target: Target) -> Choice:
    """Return the sampler for a target that `refusal` accepts."""
    applies = [name for name, sampler in SAMPLERS.items() if sampler.supports(target) is None]
    model = "" if target.problem is None else target.problem.spec.name
    preferred, reason = ORDER.get(model, ("nuts", SMOOTH))
    if preferred in applies:
        return Choice(preferred, reason)
    (only,) = applies
    return Choice(only, "it is the only exact sampler for this model and kernel")
