"""MAMS: the Metropolis-adjusted microcanonical sampler, a second exact method guided by gradients.

(Robnik, Cohn-Gordon, Seljak 2025, arXiv 2503.01707.) Each draw starts with a velocity drawn
uniformly on the sphere, follows the dynamics of `microcanonical` for a random number of steps, and
is accepted or not by the error of its energy. So it targets the posterior itself; its only error
is Monte Carlo error, once the chains have converged.

NUTS doubles its trajectory until it turns back, and keeps one of the points on the way. MAMS has
trajectories of a known mean length instead, and keeps their ends. On most of the zoo's continuous
models it needs fewer gradients than NUTS for an effective draw (`lab/algorithms/ALGORITHMS.md`). A
draw of MAMS is worth less than one of NUTS, and costs much less; `exact` takes it where NUTS was
the best before, because its run ends earlier (`exact/rule.py`).

What is adapted (`tuning`), in the first `tune` draws of each chain, which are discarded: the scale
of each coordinate, from draws and gradients, and the step size. In coordinates divided by these
scales the posterior has a spread of about 1, and a trajectory has the mean length `LENGTH` times
sqrt(P). The number of steps is uniform from 0 to twice its mean, along a sequence that does not
repeat itself: a fixed number would be in tune with a period of the posterior. The paper takes the
mean length from the autocorrelations of a first run; here the scales do that work, and one length
serves every model that was tried.

One gradient per step. A trajectory whose error is above 1000 counts as divergent.
"""

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from ardvark.common.declared import Settings, option
from ardvark.common.progress import Update

from ...target.backend import About, Arrays, FitFailed, Job, Kind, Result, continuous_only
from ...target.chains import FREE, Length
from ...target.density import Density
from ...target.target import Target
from ...target.threads import ThreadedChains
from .microcanonical import fresh_velocity, log_density, trajectory
from .tuning import Tuning

NAME = "mams"
KIND: Kind = "mcmc"
ABOUT = About(
    approximates="Nothing: its Markov chain samples the posterior itself, guided by gradients.",
    exact="In the limit of many draws, if the chains have converged and no trajectory diverged.",
    cost="One gradient per step, 10 to 50 steps a draw on the zoo's models; a draw costs O(N D).",
)
WARM_UP = 0.0
"""No share of a run of `exact` is left out: adaptation comes before its iterations."""

LENGTH = 2.0
"""Mean length of a trajectory, over sqrt(P), where each coordinate has a spread of 1."""
DIVERGED = 1000.0  # error of the energy
_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)
_ATTEMPTS = 100  # to find a start of finite density
_TIMID, _TIMID_STEPS = 50, 8  # first draws, before any scale is known, and their longest trajectory


@dataclass(frozen=True, kw_only=True)
class Options(Settings):
    """Options of `mams`."""

    tune: int = option(1000, "adaptation draws per chain, which are discarded", above=0)
    target_accept: float = option(
        0.8,
        "mean acceptance probability that the step size is adapted to; that of the draws comes out "
        "higher, about 0.9",
        above=0.0,
        below=1.0,
    )
    max_steps: int = option(1023, "a trajectory has at most so many steps", above=0)
    cores: int | None = option(
        None,
        "chains that run in parallel. None: all cores. The draws do not depend on it",
        above=0,
        draws_depend=False,
    )


_continuous = continuous_only("MAMS")


def supports(target: Target) -> str | None:
    """Return why the method does not apply, or None."""
    why_not = _continuous(target)
    if why_not is None and target.free_size < 2:
        return "a velocity of length 1 needs two variables or more, and there is one"
    return why_not


def fit(target: Target, options: Options, job: Job) -> Result:
    """Sample the posterior with independent chains, each with its own random stream."""
    with chains(target, options, job, Length(limit=job.draws, room=job.draws)) as running:
        started = time.perf_counter()
        with job.report.stage("tuning", total=job.chains * options.tune) as update:
            running.tune(update)
        with job.report.stage("sampling", total=job.chains * job.draws) as update:
            running.advance(job.draws, 1, update)
        return running.result(started)


def chains(
    target: Target, options: Options, job: Job, length: Length, start: Arrays | None = None
) -> "Chains":
    """Return chains that can be continued; they are tuned when they are first taken further.

    `start` is what `last` of earlier chains returned; None: dispersed starts.
    """
    return Chains(target, options, job, length.room, start)


class Chain:
    """One chain: where it is, and what it has been tuned to.

    Parameters
    ----------
    density : Density
    x : array (P,)
        Where it starts.
    options : Options
    rng : Generator
    tuning : Tuning, optional
        None: one that begins.

    Attributes
    ----------
    x, gradient : array (P,)
    value : float
        The log density at x.
    tuning : Tuning
    steps, probability, error : int, float, float
        Of the last trajectory: gradients, probability of its acceptance, and error of the energy.
    """

    def __init__(
        self,
        density: Density,
        x: np.ndarray,
        options: Options,
        rng: np.random.Generator,
        tuning: Tuning | None = None,
    ) -> None:
        self._address = density.function.address
        self._data = density.data.addresses  # held, for its own address is handed over
        self._options, self._rng = options, rng
        self.x, self.gradient = x, np.empty(len(x))
        self.value = log_density(self._address, self._data.ctypes.data, self.x, self.gradient)
        self.tuning = tuning or Tuning(self.gradient, options.tune, options.target_accept)
        self._place = rng.random()
        self.steps, self.probability, self.error = 0, 1.0, 0.0

    def transition(self) -> None:
        """Follow one trajectory, accept its end or stay; tune, unless that is finished."""
        tuning, x, gradient = self.tuning, self.x.copy(), self.gradient.copy()
        u = np.empty(len(x))
        fresh_velocity(u, self._rng)
        self.steps = self._number_of_steps()
        value, self.error = trajectory(
            self._address, self._data.ctypes.data, x, u, gradient, self.value,
            tuning.scale, tuning.step_size, self.steps,
        )  # fmt: skip
        self.probability = math.exp(min(0.0, -self.error))
        if accepted(self.probability, self._rng):
            self.x, self.gradient, self.value = x, gradient, value
        if not tuning.finished:
            tuning.update(self.x, self.gradient, self.probability)

    def _number_of_steps(self) -> int:
        """Return the next number of steps, at random between the two whole numbers around it.

        It does not depend on where the chain is, so every number leaves the posterior invariant.
        """
        options, tuning = self._options, self.tuning
        self._place = (self._place + _GOLDEN) % 1.0
        mean = LENGTH * math.sqrt(len(self.x)) / tuning.step_size
        most = _TIMID_STEPS if tuning.done < _TIMID and not tuning.finished else options.max_steps
        wanted = min(2.0 * mean * self._place, float(most))
        whole = math.floor(wanted)
        return min(max(1, whole + int(self._rng.random() < wanted - whole)), most)


def accepted(probability: float, rng: np.random.Generator) -> bool:
    """Whether the end of a trajectory is accepted (the Metropolis step)."""
    return rng.random() < probability


class Chains(ThreadedChains):
    """The chains of one fit, one thread each; adaptation comes before their iterations."""

    def __init__(
        self, target: Target, options: Options, job: Job, room: int, start: Arrays | None = None
    ) -> None:
        super().__init__(job, room, options.cores)
        self.options = options
        started = time.perf_counter()
        with job.report.stage("compiling"):
            self.density = density = target.density
            self._names = [n for n in density.names if job.keeps(n)]
            density.shapes(self._names), density.expansion(self._names)  # no thread compiles
            Chain(density, density.start.copy(), options, np.random.default_rng(0)).transition()
            self.chains = [
                self._start(rng) if start is None else Chain(density, start[FREE][c], options, rng)
                for c, rng in enumerate(self.generators)
            ]
        self.seconds_compile = time.perf_counter() - started

    def _start(self, rng: np.random.Generator) -> Chain:
        """Return a chain at the density's start plus U(-1, 1), where the density is finite."""
        density = self.density
        for _ in range(_ATTEMPTS):
            x = density.start + rng.uniform(-1.0, 1.0, density.size)
            chain = Chain(density, x, self.options, rng)
            if math.isfinite(chain.value):
                return chain
        raise FitFailed(f"MAMS could not start: {_ATTEMPTS} points have no finite log density")

    def tune(self, update: Update) -> None:
        """Tune the chains, which does not count as iterations."""
        self.discard(self.options.tune, update)
        self._done = [0] * self.job.chains

    def advance(self, iterations: int, every: int, update: Update) -> None:
        """Tune the chains unless that is done, and take each to so many draws."""
        if not self.chains[0].tuning.finished:
            self.tune(lambda *_: None)
        super().advance(iterations, every, update)

    def transition(self, chain: int) -> None:
        """Follow one trajectory."""
        self.chains[chain].transition()

    def state(self, chain: int) -> tuple[np.ndarray, dict[str, float]]:
        """Return the position of a chain, which no transition changes in place; and statistics."""
        held = self.chains[chain]
        return held.x, {
            "lp": held.value,
            "acceptance_rate": held.probability,
            "n_steps": held.steps,
            "step_size": held.tuning.step_size,
            "diverging": not held.error <= DIVERGED,
        }

    def variables(self, states: list[Any]) -> tuple[Arrays, Arrays]:
        """Return the model's variables and the statistics of S states."""
        positions, stats = zip(*states, strict=True)
        found = {k: np.array([s[k] for s in stats]) for k in stats[0]}
        return self.density.constrain(np.stack(positions), self._names), found

    def last(self) -> Arrays:
        """Return the last unconstrained vector of each chain (chain, P)."""
        return {FREE: np.stack([chain.x for chain in self.chains])}
