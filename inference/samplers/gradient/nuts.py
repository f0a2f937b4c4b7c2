"""NUTS: gradient-based Markov chain Monte Carlo, the exact method for continuous models.

The No-U-Turn sampler (Hoffman & Gelman 2014, J. Mach. Learn. Res. 15) with multinomial sampling
along the trajectory (Betancourt 2017, arXiv 1701.02434). It targets the posterior itself; its only
error is Monte Carlo error, as long as the chains have converged (R-hat) and the integrator did not
diverge. One gradient per leapfrog step, so O(2^depth N D) a draw for a linear kernel.

nutpie samples, with chains in threads. A run of so many draws is one call of it (`Whole`). A run of
`exact` is held up in the background at each judgement (`Chains`, `Tap`).

Products of two heavy-tailed weights give a strongly curved posterior. At a target acceptance of
0.8, trajectories diverge on several data sets; at 0.9 they diverge on few, and 0.95 costs half as
much again (`lab/algorithms/ALGORITHMS.md`). So the first run is at 0.9, unless a target is given.
If more than one transition in a thousand diverges, a second run at 0.95 replaces it. The fit's
attrs and a message report this. Under `exact` they are 0.95 and 0.98. Its runs are longer, so that
divergences too rare to be seen at first add up; and on 250 rows of digits38 RFVM converged in 0.9
and 0.7 of the processor's time at 0.95 (two seeds), because draws are better.
"""

import importlib
import math
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np
import xarray as xr

from ardvark.common.declared import Settings, option
from ardvark.common.progress import Update
from ardvark.common.validate import logger

from ...fits.convergence import VERDICT
from ...fits.diagnostics import bfmi
from ...target.backend import About, Arrays, FitFailed, Job, Kind, Result, continuous_only
from ...target.chains import FREE
from ...target.density import Density
from ...target.draws import Draws
from ...target.length import Length
from ...target.target import Target
from ..driver import drive
from .tap import Tap

NAME = "nuts"
KIND: Kind = "mcmc"
ABOUT = About(
    approximates="Nothing: its Markov chain samples the posterior itself, guided by gradients.",
    exact="In the limit of many draws, if the chains have converged and no trajectory diverged.",
    cost="One gradient per leapfrog step, so O(2^depth N D) per draw for a linear kernel.",
)

FIRST, SECOND = 0.9, 0.95  # target acceptance where none is given
EXACT_FIRST, EXACT_SECOND = 0.95, 0.98  # the same for `exact`
_DIVERGED = (
    "nuts: %d transitions diverged at target_accept %g; running again at %g and discarding the "
    "first run."
)
_NO_START = "NUTS could not start: {}"
WARM_UP = 0.0
"""Share of a run of `exact` that is not used: adaptation comes before its iterations."""

STATISTICS = {
    "diverging": ("diverging", "diverging"),
    "energy": ("energy", "energy"),
    "tree_depth": ("depth", "tree_depth"),
    "n_steps": ("n_steps", "n_steps"),
    "step_size": ("step_size", "step_size"),
    "acceptance_rate": ("mean_tree_accept", "acceptance_rate"),
    "lp": ("logp", "lp"),
}
"""Our name: (nutpie's, PyMC's)."""


@dataclass(frozen=True, kw_only=True)
class Options(Settings):
    """Options of `nuts`."""

    tune: int = option(500, "adaptation draws per chain, which are discarded", above=0)
    target_accept: float | None = option(
        None,
        "target for the mean acceptance probability. None: 0.9, and a second run at 0.95 with "
        "twice the adaptation if more than one transition in a thousand diverges",
        above=0.0,
        below=1.0,
    )
    max_treedepth: int = option(10, "a trajectory has at most 2^max_treedepth - 1 steps", above=0)
    cores: int | None = option(
        None,
        "chains that run in parallel. None: all cores. The draws do not depend on it",
        above=0,
        draws_depend=False,
    )


supports = continuous_only("NUTS")


def held(options: Options, job: Job) -> int:
    """Return the draws of each chain that nutpie stores: those of the adaptation too."""
    return job.draws + options.tune


def fit(target: Target, options: Options, job: Job) -> Result:
    """Sample the posterior; if too many transitions diverge, sample again with smaller steps."""
    return drive(target, Whole(target, options, job), Length.of_draws(job.draws), job)


def chains(
    target: Target, options: Options, job: Job, length: Length, start: Arrays | None = None
) -> "Chains":
    """Return chains by nutpie that can be continued; of their draws only the kept ones are held.

    `start` is what `last` of earlier chains returned; None: dispersed starts.
    """
    return Chains(target, options, job, length, start)


def _as_nutpie(density: Density, shapes: dict[str, tuple[int, ...]], expand: Any) -> Any:
    """Return a density as nutpie's kind of model; at `expand.address` it computes its variables.

    nutpie calls C functions at their addresses. So our functions, which serve data of any shape,
    replace those that it would compile. A chain starts at the density's start plus U(-1, 1).
    """
    from nutpie.compile_pymc import CompiledPyMCModel

    lengths = [math.prod(shape) for shape in shapes.values()]
    ends = np.cumsum([0, *lengths]).tolist()
    slices = [slice(*pair) for pair in pairwise(ends)]

    def start(seed: int | None) -> np.ndarray:
        return density.start + np.random.default_rng(seed).uniform(-1.0, 1.0, density.size)

    return CompiledPyMCModel(
        _n_dim=density.size,
        dims={},
        _coords={},
        _shapes=shapes,
        compiled_logp_func=density.function,
        compiled_expand_func=expand,
        initial_point_func=start,
        shared_data={},
        shared_var_keys={},
        user_data=density.data.addresses,
        n_expanded=ends[-1],
        shape_info=([*shapes], slices, [*shapes.values()]),
        logp_func=None,
        expand_func=None,
    )


class Nutpie(ABC):
    """Chains that nutpie samples, with adaptation before their iterations.

    If more than one transition in a thousand has diverged after the first advance, all start again
    with smaller steps.

    Attributes
    ----------
    tune : int
        Draws of each chain before the first that may be kept.
    """

    targets = FIRST, SECOND

    def __init__(self, target: Target, options: Options, job: Job) -> None:
        self.options, self.job = options, job
        self.attrs: dict[str, Any] = {}
        self._samplers: list[Any] = []  # those in the background
        started = time.perf_counter()
        with job.report.stage("compiling"):
            self._density = density = target.density
            self._names = [n for n in density.names if job.keeps(n)]
            density.shapes(self._names), density.expansion(self._names)
            importlib.import_module("nutpie")  # it takes a second, too
        self.seconds_compile = time.perf_counter() - started
        self.tune, self._target = options.tune, options.target_accept or self.targets[0]
        self._again = options.target_accept is None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for sampler in self._samplers:
            sampler.cancel()
        self._samplers = []

    @abstractmethod
    def _sample(self, iterations: int, every: int, update: Update) -> None:
        """Take each chain to so many draws, or begin them."""

    @abstractmethod
    def _statistics(self, iterations: int) -> dict[str, np.ndarray]:
        """Return the statistics (chain, draw) of the first draws."""

    def advance(self, iterations: int, every: int, update: Update) -> None:
        """Take each chain to so many draws, of which every `every`-th is kept."""
        self._sample(iterations, every, update)
        if not self._again:
            return
        self._again = False
        count = int(self._statistics(iterations)["diverging"].sum())
        if count > VERDICT.divergent * self.job.chains * iterations:
            logger.warning(_DIVERGED, count, *self.targets)
            self.__exit__()
            self.tune, self._target = 2 * self.options.tune, self.targets[1]
            self.attrs["diverged_at_first"] = count
            self._sample(iterations, every, update)
        self.attrs["target_accept"] = self._target

    def _nutpie(self, model: Any, draws: int, seed: int, **given: Any) -> Any:
        """Call nutpie."""
        import nutpie

        return nutpie.sample(
            model,
            draws=draws,
            tune=self.tune,
            seed=seed,
            target_accept=self._target,
            maxdepth=self.options.max_treedepth,
            save_warmup=False,
            progress_bar=False,
            **given,
        )


class Whole(Nutpie):
    """Chains that nutpie takes to their end in one call (a `target.chains.Chains`)."""

    def _sample(self, iterations: int, every: int, update: Update) -> None:
        density, chains = self._density, self.job.chains
        names = self._names
        model = _as_nutpie(density, density.shapes(names), density.expansion(names))

        def callback(states: list[Any]) -> None:
            done = sum(s.finished_draws for s in states)
            update(done / chains, f"{sum(s.divergences for s in states)} divergences")

        given = {"chains": chains, "cores": self.options.cores, "progress_callback": callback}
        try:
            self._tree = self._nutpie(model, iterations, self.job.seed, **given)
        except RuntimeError as error:
            raise FitFailed(_NO_START.format(error)) from error

    def _statistics(self, iterations: int) -> dict[str, np.ndarray]:
        return _statistics(self._tree)

    def read(self, first: int) -> tuple[Arrays, Arrays]:
        """Return the posterior and the statistics of all draws."""
        posterior = self._tree["posterior"].to_dataset().data_vars.items()
        return {str(k): np.asarray(v.values) for k, v in posterior}, _statistics(self._tree)

    def take(self, first: int) -> tuple[Arrays, Arrays]:
        """Return the same, and hold no draw any more."""
        found = self.read(first)
        del self._tree
        return found

    def last(self) -> Arrays:
        """Return nothing: nutpie does not tell where its chains ended."""
        return {}


class Chains(Nutpie):
    """Chains in the background, each held up when it is far enough (a `target.chains.Chains`).

    nutpie can be paused, and its trace read meanwhile (`inspect`). But it stores every draw of
    every variable until its end, where only every so many-th of a long run may be held; and a trace
    in files (`zarr_store`) needs a package more. So it is given functions that store nothing, and
    taps that keep the draws. Each chain is a sampler of its own, because a function is not told
    which chain calls it.

    Attributes
    ----------
    taps : list of Tap
        What takes the draws of each chain.
    """

    targets = EXACT_FIRST, EXACT_SECOND

    def __init__(
        self,
        target: Target,
        options: Options,
        job: Job,
        length: Length,
        start: Arrays | None = None,
    ) -> None:
        super().__init__(target, options, job)
        self.limit, self._start = length.limit, start
        self.draws = Draws(job, length.room)
        self.taps: list[Tap] = []
        self.iterations, self.kept, self.every = 0, 0, 1

    def __exit__(self, *_: object) -> None:
        for tap in self.taps:  # all of them first: nutpie waits for the end of a chain
            tap.stop()
        super().__exit__()

    def read(self, first: int) -> tuple[Arrays, Arrays]:
        """Return the posterior and the statistics of what was kept after draw `first`."""
        posterior, _ = self.draws.read(first // self.every, self.kept)
        return posterior, self._kept_statistics(first)

    def take(self, first: int) -> tuple[Arrays, Arrays]:
        """Return the same in arrays of their own, and hold no draw any more."""
        posterior, _ = self.draws.take(first // self.every, self.kept)
        return posterior, self._kept_statistics(first)

    def last(self) -> Arrays:
        """Return the last unconstrained vector of each chain (chain, P)."""
        return {FREE: np.stack([tap.last for tap in self.taps])}

    def _kept_statistics(self, first: int) -> Arrays:
        whole = self._statistics(self.iterations)
        used = {name: x[:, first:] for name, x in whole.items()}
        # of every transition: thinned energies are nearly independent, however slowly they move
        self.attrs |= {
            "divergences": int(used["diverging"].sum()),
            "transitions": used["diverging"].size,
            "e_fmi": float(bfmi(used["energy"]).min()),
        }
        kept = slice(first // self.every, self.kept)
        return {name: x[:, self.every - 1 :: self.every][:, kept] for name, x in whole.items()}

    def _statistics(self, iterations: int) -> dict[str, np.ndarray]:
        parts = [_statistics(sampler.inspect()) for sampler in self._samplers]
        return {
            name: np.concatenate([part[name][:, :iterations] for part in parts])
            for name in parts[0]
        }

    def _sample(self, iterations: int, every: int, update: Update) -> None:
        """Let as many chains run at once as there are cores, until each is far enough."""
        if every > self.every:
            self.kept, self.every = self.draws.thin(self.kept, every // self.every), every
        job, goal = self.job, self.tune + iterations
        workers = min(job.chains, self.options.cores or os.cpu_count() or 1)
        if not self._samplers:
            self.taps = [
                Tap(self._density, self._names, self.draws, c, self.tune) for c in range(job.chains)
            ]
        waiting, running = [*range(job.chains)], set[int]()
        while waiting or running:
            while waiting and len(running) < workers:
                chain = waiting.pop(0)
                running.add(chain)
                self.taps[chain].open(goal, self.every)
                if chain == len(self._samplers):
                    self._samplers.append(self._begin(chain))
            time.sleep(0.01)
            running -= {chain for chain in running if self._arrived(chain)}
            update(sum(tap.calls for tap in self.taps) / job.chains)
        self.iterations, self.kept = iterations, iterations // every

    def _begin(self, chain: int) -> Any:
        """Let nutpie begin a chain in the background."""
        seeds = np.random.SeedSequence(self.job.seed).generate_state(self.job.chains).tolist()
        model = _as_nutpie(self._density, {}, self.taps[chain])
        if self._start is not None:
            model = replace(model, initial_point_func=_at(self._start[FREE][chain]))
        # one draw more than asked for is held up at the goal
        return self._nutpie(model, self.limit + 1, seeds[chain], chains=1, cores=1, blocking=False)

    def _arrived(self, chain: int) -> bool:
        """Return whether a chain is at its goal; raise an error if it will never get there."""
        tap = self.taps[chain]
        if tap.error is not None:
            raise FitFailed(f"NUTS: {tap.error}") from tap.error
        if tap.held:
            return True
        if _ended(self._samplers[chain]):
            raise FitFailed(f"NUTS: chain {chain} ended after {tap.calls} of {tap.goal} draws")
        return False


def _statistics(tree: xr.DataTree) -> dict[str, np.ndarray]:
    """Return the statistics of the sampler's tree, under our names."""
    stats = tree["sample_stats"].to_dataset()
    renamed = {ours: theirs[0] for ours, theirs in STATISTICS.items()}
    return {o: np.asarray(stats[t].values) for o, t in renamed.items() if t in stats}


def _ended(sampler: Any) -> bool:
    """Whether a background sampler has made all its draws; an error if it could not."""
    try:
        return bool(sampler.is_finished)
    except TimeoutError:
        return False  # it is at work, or held up
    except RuntimeError as error:
        raise FitFailed(_NO_START.format(str(error).splitlines()[0])) from error


def _at(point: np.ndarray) -> Callable[[int | None], np.ndarray]:
    """Return the function that starts a chain at a point, whatever the seed."""
    return lambda seed: point
