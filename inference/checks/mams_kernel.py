"""The transition of MAMS for the joint tests, at scales and a step size that are held fixed."""

import math

import numpy as np

from ..samplers.gradient.mams import Chain, Options
from ..samplers.gradient.tuning import StepSize, Tuning
from ..target.target import Target
from .joint import TARGET_ACCEPT, NutsKernel


class MamsKernel(NutsKernel):
    """One trajectory of MAMS, adapted to the prior as `NutsKernel` is.

    The scales are the standard deviations of prior draws. The step size reaches `TARGET_ACCEPT` on
    average over simulated data sets, and both are fixed before the test begins.
    """

    def _prepare(self, variances: np.ndarray) -> None:
        self._target, self._options = Target(self._problem), Options()
        self._steps = StepSize(0.1 * math.sqrt(len(variances)), TARGET_ACCEPT)
        self._tuning = Tuning.held(np.sqrt(variances), self._steps.current)
        self._adapting = True

    def _hold(self) -> None:
        self._adapting, self._tuning.step_size = False, self._steps.final

    def sweep(self, state: dict[str, np.ndarray], rng: np.random.Generator) -> None:
        """Follow one trajectory, and accept its end or stay."""
        density = self._target.density  # with the present labels
        x = np.concatenate([state[name].ravel() for name in density.blocks])
        chain = Chain(density, x, self._options, rng, self._tuning)
        chain.transition()
        for name, block in density.blocks.items():
            state[name] = chain.x[block].reshape(state[name].shape)
        if self._adapting:
            self._steps.update(chain.probability)
            self._tuning.step_size = self._steps.current
