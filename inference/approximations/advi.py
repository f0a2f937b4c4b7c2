"""ADVI: automatic differentiation variational inference.

Kucukelbir, Tran, Ranganath, Gelman, Blei (2017), J. Mach. Learn. Res. 18. With x the unconstrained
vector (P,) and g its log density, Jacobian included, q is a Gaussian on x,

    mean field   x = m + exp(w) * e             e (P,), h (rank,) ~ N(0, I)
    low rank     x = m + exp(w) * (e + V h)     covariance S (I + V V') S,  S = diag(exp(w))

and the evidence lower bound ELBO(q) = E_q[g(x)] + H[q] is maximised by stochastic gradients of the
reparametrised expectation.

ADVI is exact if the unconstrained density is Gaussian (mean field: with a diagonal precision).
Otherwise it is biased: it minimises KL(q || p), which avoids regions where p is small, so
mean-field variances are too small. For a Gaussian with precision matrix Lambda they are 1 /
Lambda_ii. Low rank widens q in `rank` directions and narrows it in none. The cost is one gradient
per sample and step, and O(P rank^2). Mean field is low rank with no column in V. By Woodbury's
identity

    (I + V V')^-1 = I - V M^-1 V',    log|I + V V'| = log|M|,    M = I + V'V  (rank, rank)

(Ong, Nott & Smith 2018, "Gaussian variational approximation with a factor covariance structure",
J. Comput. Graph. Statist. 27).

Convergence is monitored, not assumed. Adam runs at a constant step size as long as the mean ELBO of
the last blocks is above that of the blocks before by more than two standard errors. Then the step
size falls, and the next stage begins. The answer is the average of the iterates of the last stage
(Polyak & Juditsky 1992), which removes the noise that a constant step size leaves. If the final
ELBO is below that of the start, the method has not converged, whatever its trace looks like.

PyMC's mean field, `pm.fit` (6.3.2, 2026-11-28), has neither these stages nor the average, and gives
no lp and log q. On five small posteriors its worst mean is off by 0.6 to 2.4 posterior sd, and that
of this one by 0.06 to 0.7 (`lab/algorithms/approximations.csv`). Its ELBO is lower by 0.4 (eight
schools) to 29 (RFVM); with `pm.adam` at 0.01 and 50 000 steps by 0 to 3.5, in 4 to 8 times the
processor's seconds (one seed).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import sem

from ardvark.common.declared import Settings, option
from ardvark.common.progress import Update

from ..target.backend import About, FitFailed, Job, Kind, Result, continuous_only
from ..target.reasons import Reason
from ..target.target import Target

if TYPE_CHECKING:
    from ..target.density import Density

NAME = "advi"
KIND: Kind = "approximation"
ABOUT = About(
    approximates=(
        "The unconstrained density, by the Gaussian that maximises the ELBO. Its covariance is "
        "diagonal, or diagonal plus low-rank."
    ),
    exact=(
        "If the density is Gaussian (for a mean field: with a diagonal precision). Otherwise "
        "mean-field variances are too small."
    ),
    cost="One gradient per sample and step.",
)
_START_SD = 0.1  # standard deviation of q at the start
_SAMPLES = 4  # draws of the noise in each step, in antithetic pairs
_BLOCK = 200  # steps whose mean ELBO is one observation of progress
_WINDOW = 5  # blocks compared with the blocks before them


@dataclass(frozen=True, kw_only=True)
class Options(Settings):
    """Options of `advi`."""

    rank: int = option(0, "number of directions of correlation to add to a mean field", at_least=0)
    step_sizes: tuple[float, ...] = option(
        (0.05, 0.02, 0.005, 0.001), "Adam's step size in each stage, in falling order", above=0.0
    )
    max_iterations: int = option(
        60_000, "total number of steps; reaching it means not converged", above=0
    )


supports = continuous_only("ADVI")


def fit(target: Target, options: Options, job: Job) -> Result:
    """Maximise the ELBO, then draw from q."""
    rng = np.random.default_rng(job.seed)
    with job.report.stage("compiling"):
        seconds_compile = target.compile_density()
    density = target.density
    q = LowRank(density.start, options.rank, rng)
    with job.report.stage("maximising the ELBO", total=len(options.step_sizes)) as update:
        elbo, reason = _maximise(density, q, options, rng, update)

    shape = (job.chains, job.draws)
    noise = rng.standard_normal((job.chains * job.draws, q.noise))
    x = q.sample(noise)
    log_q = q.log_density(noise)
    with job.report.stage("drawing"):
        posterior = density.constrain(x, job.names)
        lp = density.logp(x)
        reason = reason or _fell(density, lp - log_q, rng)
    return Result(
        posterior={k: v.reshape(*shape, *v.shape[1:]) for k, v in posterior.items()},
        sample_stats={"lp": lp.reshape(shape), "log_q": log_q.reshape(shape)},
        details={"elbo": elbo, **q.details()},
        dims={
            "elbo": ("block",),
            "location": ("unconstrained",),
            "sd": ("unconstrained",),
            "own_sd": ("unconstrained",),
            "loading": ("unconstrained", "direction"),
        },
        status="not_converged" if reason else "finished",
        reason=reason or "",
        seconds_compile=seconds_compile,
        attrs={"iterations": len(elbo) * _BLOCK, "elbo": float((lp - log_q).mean())},
    )


class LowRank:
    """q(x) = N(x | m, S (I + V V') S), S = diag(exp(w)); a mean field if V has no column.

    Parameters
    ----------
    start : array (P,)
        The initial m.
    rank : int
        Number of columns of V.
    rng : Generator
        Draws a small initial V, because the slope of the ELBO in V is zero at V = 0.

    `parameters` stacks m, w and sqrt(P) V. A column of V of length 1 has entries of 1 / sqrt(P). If
    they moved as fast as m does, their noise alone would be a direction of many sd.
    """

    def __init__(self, start: np.ndarray, rank: int, rng: np.random.Generator) -> None:
        self.size, self.rank = len(start), rank
        self.noise = self.size + rank
        columns = 0.1 * rng.standard_normal(self.size * rank)
        self.parameters = np.concatenate([start, np.full(self.size, np.log(_START_SD)), columns])

    @property
    def m(self) -> np.ndarray:
        """Location (P,)."""
        return self.parameters[: self.size]

    @property
    def w(self) -> np.ndarray:
        """Log of each component's independent standard deviation (P,)."""
        return self.parameters[self.size : 2 * self.size]

    @property
    def V(self) -> np.ndarray:
        """The shared part of the components, in units of exp(w) (P, rank)."""
        columns = self.parameters[2 * self.size :].reshape(self.size, self.rank)
        return columns / np.sqrt(self.size)

    def _standard(self, e: np.ndarray) -> np.ndarray:
        """Return z (S, P) ~ N(0, I + V V') for e (S, P + rank), which stacks e and h."""
        return e[:, : self.size] + e[:, self.size :] @ self.V.T

    def _solve(self, z: np.ndarray) -> np.ndarray:
        """Return (I + V V')^-1 z for every row of z (S, P)."""
        return z - np.linalg.solve(self._inner(), (z @ self.V).T).T @ self.V.T

    def _inner(self) -> np.ndarray:
        """Return M (rank, rank)."""
        return np.eye(self.rank) + self.V.T @ self.V

    def sample(self, e: np.ndarray) -> np.ndarray:
        """Return x (S, P) for e (S, P + rank)."""
        return self.m + np.exp(self.w) * self._standard(e)

    def gradient(self, e: np.ndarray, g: np.ndarray) -> np.ndarray:
        """Return the ELBO gradient from log-density gradients g (S, P) at sample(e)."""
        z, sd = self._standard(e), np.exp(self.w)
        # dx/dm = 1, dx/dw = exp(w) z, and the entropy sum(w) + log|M| / 2 + const gives 1 for w
        d_w = (g * z).mean(0) * sd + 1.0
        # dx/dV = exp(w) h; for V the entropy gives E[(I + V V')^-1 z h'], which from the same draws
        # cancels most of the noise of exp(w) g h': all of it where q is p
        d_V = (sd * g + self._solve(z)).T @ e[:, self.size :] / len(g)
        return np.concatenate([g.mean(0), d_w, d_V.ravel() / np.sqrt(self.size)])

    def entropy(self) -> float:
        """Return H[q]."""
        log_det = np.linalg.slogdet(self._inner()).logabsdet
        return float(self.w.sum() + 0.5 * log_det + 0.5 * self.size * (1.0 + np.log(2.0 * np.pi)))

    def log_density(self, e: np.ndarray) -> np.ndarray:
        """Return log q at sample(e)."""
        z = self._standard(e)
        return 0.5 * (self.size - (z * self._solve(z)).sum(1)) - self.entropy()

    def details(self) -> dict[str, np.ndarray]:
        """Return what the `fit` group stores."""
        own = np.exp(self.w)
        found = {
            "location": self.m.copy(),
            "sd": own * np.hypot(1.0, np.linalg.norm(self.V, axis=1)),
        }
        return found | ({"own_sd": own, "loading": own[:, None] * self.V} if self.rank else {})


def _maximise(
    density: Density,
    q: LowRank,
    options: Options,
    rng: np.random.Generator,
    update: Update,
) -> tuple[np.ndarray, Reason | None]:
    """Run Adam stage by stage and store the averaged optimum in q; return block ELBOs, a reason."""
    trace: list[float] = []
    first = np.zeros_like(q.parameters)
    second = np.zeros_like(q.parameters)
    steps = 0
    for stage, size in enumerate(options.step_sizes):
        blocks: list[float] = []
        averages: list[np.ndarray] = []
        while not _settled(blocks):
            if steps + _BLOCK > options.max_iterations:
                stages = {"stage": stage + 1, "stages": len(options.step_sizes)}
                return np.array(trace), Reason("still rising", {"steps": steps, **stages})
            values, average = [], np.zeros_like(q.parameters)
            for _ in range(_BLOCK):
                steps += 1
                value, gradient = _estimate(density, q, _SAMPLES, rng)
                values.append(value)
                # Adam (Kingma & Ba 2015), ascending
                first += 0.1 * (gradient - first)
                second += 0.001 * (gradient**2 - second)
                rate = size * np.sqrt(1.0 - 0.999**steps) / (1.0 - 0.9**steps)
                q.parameters = q.parameters + rate * first / (np.sqrt(second) + 1e-8)
                average += q.parameters / _BLOCK
            blocks.append(float(np.mean(values)))
            averages = [*averages[1 - _WINDOW :], average]  # of the last window only
            trace.append(blocks[-1])
            update(stage, f"ELBO {blocks[-1]:.1f}, step size {size:g}")
        q.parameters = np.mean(averages, axis=0)
    return np.array(trace), None


def _estimate(
    density: Density, q: LowRank, samples: int, rng: np.random.Generator
) -> tuple[float, np.ndarray]:
    """Return a noisy ELBO and its gradient, without the draws of infinite density."""
    half = rng.standard_normal(((samples + 1) // 2, q.noise))
    e = np.concatenate([half, -half])[:samples]
    x = q.sample(e)
    values, gradients = np.empty(samples), np.empty((samples, q.size))
    for s in range(samples):
        values[s], gradients[s] = density.logp_grad(x[s])
    good = np.isfinite(values) & np.isfinite(gradients).all(axis=1)
    if not good.any():
        raise FitFailed("the log density or its gradient is not finite at any draw of q")
    return float(values[good].mean()) + q.entropy(), q.gradient(e[good], gradients[good])


def _fell(density: Density, found: np.ndarray, rng: np.random.Generator) -> Reason | None:
    """Return a reason if an ELBO that no longer rises is below that of the start.

    `found` contains log p - log q of the draws (S,). Where q is far too wide a few of them decide
    both their mean and its error, so their median is looked at as well.
    """
    q = LowRank(density.start, 0, rng)
    noise = rng.standard_normal((100, density.size))
    found = found[np.isfinite(found)]
    start = density.logp(q.sample(noise)) - q.log_density(noise)
    risen = found.mean() > start.mean() - 4.0 * np.hypot(sem(found), sem(start))
    if risen and np.median(found) > start.mean() - 4.0 * sem(start):
        return None
    return Reason("fell", {"start": start.mean(), "end": found.mean()})


def _settled(blocks: list[float]) -> bool:
    """Whether the last window of block ELBOs is no longer above the one before it."""
    if len(blocks) < 2 * _WINDOW:
        return False
    before, last = np.array(blocks[-2 * _WINDOW : -_WINDOW]), np.array(blocks[-_WINDOW:])
    error = np.sqrt((before.var(ddof=1) + last.var(ddof=1)) / _WINDOW)
    return bool(last.mean() - before.mean() < 2.0 * error)
