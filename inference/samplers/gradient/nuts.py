"""NUTS: gradient-based Markov chain Monte Carlo, the exact method for continuous models.

The No-U-Turn sampler (Hoffman & Gelman 2014, J. Mach. Learn. Res. 15) with multinomial sampling
along the trajectory (Betancourt 2017, arXiv 1701.02434). It targets the posterior itself; its only
error is Monte Carlo error, as long as the chains have converged (R-hat) and the integrator did not
diverge. One gradient per leapfrog step, so O(2^depth N D) a draw for a linear kernel.

nutpie samples, with chains in threads.

Products of two heavy-tailed weights give a strongly curved posterior. At a target acceptance of
0.8, trajectories diverge on several data sets; at 0.9 they diverge on few, and 0.95 costs half as
much again (`lab/algorithms/ALGORITHMS.md`). So the first run is at 0.9, unless a target is given.
If more than one transition in a thousand diverges, a second run at 0.95 replaces it. The fit's
attrs and a message report this.
"""

import importlib
import math
import os
import time
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
from ...target.chains import FREE, Length
from ...target.density import Density
from ...target.draws import Draws
from ...target.target import Target
from .tap import Tap

NAME = "nuts"
KIND: Kind = "mcmc"
ABOUT = About(
    approximates="Nothing: its Markov chain samples the posterior itself, guided by gradients.",
    exact="In the limit of many draws, if the chains have converged and no trajectory diverged.",
    cost="One gradient per leapfrog step, so O(2^depth N D) per draw for a linear kernel.",
)

FIRST, SECOND = 0.9, 0.95  # target acceptance where none is given
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
    if options.target_accept is not None:
        return _run(target, options, job)
    result = _run(target, replace(options, target_accept=FIRST), job)
    count = int(result.sample_stats["diverging"].sum())
    result.attrs |= {"target_accept": FIRST}
    if count <= VERDICT.divergent * job.chains * job.draws:
        return result
    logger.warning(_DIVERGED, count, FIRST, SECOND)
    again = _run(target, replace(options, target_accept=SECOND, tune=2 * options.tune), job)
    again.attrs |= {"target_accept": SECOND, "diverged_at_first": count}
    seconds = result.seconds_run + again.seconds_run
    return replace(again, seconds_run=seconds, seconds_compile=result.seconds_compile)


def _run(target: Target, options: Options, job: Job) -> Result:
    import nutpie

    started = time.perf_counter()
    with job.report.stage("compiling"):
        compiled = _compiled(target, job.names)
    compile_seconds = time.perf_counter() - started

    started = time.perf_counter()
    total = job.chains * (job.draws + options.tune)
    with job.report.stage("sampling", total=total) as update:

        def callback(states: list[Any]) -> None:
            done = sum(s.finished_draws for s in states)
            update(done, f"{sum(s.divergences for s in states)} divergences")

        try:
            tree = nutpie.sample(
                compiled,
                draws=job.draws,
                tune=options.tune,
                chains=job.chains,
                cores=options.cores,
                seed=job.seed,
                target_accept=options.target_accept,
                maxdepth=options.max_treedepth,
                save_warmup=False,
                progress_bar=False,
                progress_callback=callback,
            )
        except RuntimeError as error:
            raise FitFailed(_NO_START.format(error)) from error
    return _result(tree, compile_seconds, time.perf_counter() - started)


def _compiled(target: Target, keep: tuple[str, ...] | None) -> Any:
    """Return the target's compiled density as nutpie's kind of model, with these variables."""
    density = target.density
    names = [n for n in density.names if keep is None or n in keep]
    return _as_nutpie(density, density.shapes(names), density.expansion(names))


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


def chains(
    target: Target, options: Options, job: Job, length: Length, start: Arrays | None = None
) -> "Chains":
    """Return chains by nutpie that can be continued; of their draws only the kept ones are held.

    `start` is what `last` of earlier chains returned; None: dispersed starts.
    """
    return Chains(target, options, job, length, start)


class Chains:
    """Chains that sample in the background, each held up when it is far enough (`Tap`).

    (A `target.chains.Chains`.) Adaptation comes before their iterations. If more than one
    transition in a thousand has diverged after the first advance, all start again with smaller
    steps, as in `fit`.

    Attributes
    ----------
    taps : list of Tap
        What takes the draws of each chain.
    tune : int
        Draws of each chain before the first that may be kept.
    """

    def __init__(
        self,
        target: Target,
        options: Options,
        job: Job,
        length: Length,
        start: Arrays | None = None,
    ) -> None:
        self.options, self.job, self.limit = options, job, length.limit
        started = time.perf_counter()
        with job.report.stage("compiling"):
            self._density = density = target.density
            self._names = [n for n in density.names if job.keeps(n)]
            density.shapes(self._names), density.expansion(self._names)
            importlib.import_module("nutpie")  # it takes a second, too
        self.seconds_compile = time.perf_counter() - started
        self._start = start
        self.attrs: dict[str, Any] = {}
        self.draws = Draws(job, length.room)
        self.taps: list[Tap] = []
        self._samplers: list[Any] = []
        self.tune, self._target = options.tune, options.target_accept or FIRST
        self._again = options.target_accept is None
        self.iterations, self.kept, self.every = 0, 0, 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for tap in self.taps:  # all of them first: nutpie waits for the end of a chain
            tap.stop()
        for sampler in self._samplers:
            sampler.cancel()
        self._samplers = []

    def advance(self, iterations: int, every: int, update: Update) -> None:
        """Take each chain to so many draws, of which every `every`-th is kept."""
        if every > self.every:
            self.kept, self.every = self.draws.thin(self.kept, every // self.every), every
        self._run(iterations, update)
        if self._again:
            self._again = False
            count = int(self._statistics(iterations)["diverging"].sum())
            if count > VERDICT.divergent * self.job.chains * iterations:
                logger.warning(_DIVERGED, count, FIRST, SECOND)
                self.__exit__()
                self.tune, self._target = 2 * self.options.tune, SECOND
                self.attrs["diverged_at_first"] = count
                self._run(iterations, update)
            self.attrs["target_accept"] = self._target
        self.iterations, self.kept = iterations, iterations // every

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
        """Return the statistics (chain, draw) of the first draws."""
        parts = [_statistics(sampler.inspect()) for sampler in self._samplers]
        return {
            name: np.concatenate([part[name][:, :iterations] for part in parts])
            for name in parts[0]
        }

    def _run(self, iterations: int, update: Update) -> None:
        """Let as many chains run at once as there are cores, until each is far enough."""
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
            update(sum(max(0, tap.calls - self.tune) for tap in self.taps))

    def _begin(self, chain: int) -> Any:
        """Let nutpie begin a chain in the background."""
        import nutpie

        seeds = np.random.SeedSequence(self.job.seed).generate_state(self.job.chains).tolist()
        model = _as_nutpie(self._density, {}, self.taps[chain])
        if self._start is not None:
            model = replace(model, initial_point_func=_at(self._start[FREE][chain]))
        return nutpie.sample(
            model,
            draws=self.limit + 1,  # one more than asked for is held up at the goal
            tune=self.tune,
            chains=1,
            cores=1,
            seed=seeds[chain],
            target_accept=self._target,
            maxdepth=self.options.max_treedepth,
            save_warmup=False,
            progress_bar=False,
            blocking=False,
        )

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


def _result(tree: xr.DataTree, seconds_compile: float, seconds_run: float) -> Result:
    """Copy draws and statistics out of the sampler's tree, under our names."""
    posterior = tree["posterior"].to_dataset()
    return Result(
        posterior={str(k): np.asarray(v.values) for k, v in posterior.data_vars.items()},
        sample_stats=_statistics(tree),
        seconds_compile=seconds_compile,
        seconds_run=seconds_run,
    )


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
