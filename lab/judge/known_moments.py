"""[converged] on trial: targets on which samplers are known to fail, whose quantiles are known.

    python -m lab.judge.known_moments    (half an hour; a run that was stopped goes on)

Five plain `pm.Model`s, each fitted by `exact` and by `nuts` under several seeds, judged alone. Of
one variable the share of draws below its true 5, 50 and 95 % quantiles is compared with those
numbers. Its noise is sqrt(p (1 - p) / ESS), with the effective sample size of the share itself. A
fit is off if one of its three shares is farther away than a right one is once in a thousand runs.

    funnel    v ~ N(0, 3), nine x ~ N(0, e^(v/2)) (Neal 2003)
    schools   eight schools, centred (Rubin 1981): tau, its quantiles by quadrature
    modes     0.5 N(-10, 1) + 0.5 N(10, 1)
    cauchy    three independent ones
    banana    a ~ N(0, 1), b ~ N(3 a^2, 0.3)
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pymc as pm
from scipy import stats
from threadpoolctl import threadpool_limits

import ardvark as av
from ardvark.inference.fits import chains
from lab import rows, tables
from lab.judge import report
from lab.rows import Row

SEEDS = 6
LIMIT = 4096
"""Iterations of a chain of `exact`: a run that has not converged by then is not called so."""
SHARES = (0.05, 0.5, 0.95)
OFF = float(stats.norm.isf(0.001 / 2 / len(SHARES)))
EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def funnel() -> None:
    """Declare a variable whose scale is another one."""
    v = pm.Normal("v", 0.0, 3.0)
    pm.Normal("x", 0.0, pm.math.exp(v / 2.0), shape=9)


def schools() -> None:
    """Declare eight schools, centred, with N(0, 5) for mu and half-Cauchy(5) for tau."""
    mu = pm.Normal("mu", 0.0, 5.0)
    v = pm.HalfCauchy("v", 5.0)
    theta = pm.Normal("theta", mu, v, shape=8)
    pm.Normal("y", theta, ERRORS, observed=EFFECTS)


def modes() -> None:
    """Declare two far modes."""
    pm.NormalMixture("v", w=[0.5, 0.5], mu=[-10.0, 10.0], sigma=1.0)


def cauchy() -> None:
    """Declare heavy tails."""
    pm.Cauchy("x", 0.0, 1.0, shape=2)
    pm.Cauchy("v", 0.0, 1.0)


def banana() -> None:
    """Declare a curved ridge."""
    v = pm.Normal("v", 0.0, 1.0)
    pm.Normal("b", 3.0 * v**2, 0.3)


@cache
def tau_quantiles() -> np.ndarray:
    """Return the quantiles of tau in eight schools: theta and mu integrated out, tau on a grid.

    Given tau, y_i ~ N(mu, s_i^2 + tau^2), and mu ~ N(0, 25): y is normal with the covariance
    diag(s^2 + tau^2) + 25.
    """
    tau = np.linspace(0.0, 400.0, 400_001)[1:]
    variance = ERRORS**2 + tau[:, None] ** 2
    precision, linear = (1.0 / variance).sum(-1) + 1.0 / 25.0, (EFFECTS / variance).sum(-1)
    log_p = stats.halfcauchy.logpdf(tau, scale=5.0) - 0.5 * (
        np.log(variance).sum(-1)
        + np.log(precision)
        + (EFFECTS**2 / variance).sum(-1)
        - linear**2 / precision
    )
    below = np.cumsum(np.exp(log_p - log_p.max()))
    return np.interp(SHARES, below / below[-1], tau)


TARGETS: dict[Callable[[], None], Callable[[], np.ndarray]] = {
    funnel: lambda: stats.norm.ppf(SHARES, 0.0, 3.0),
    schools: tau_quantiles,
    # between the modes lies no mass: half of it is below any number there
    modes: lambda: np.array([stats.norm.ppf(0.1, -10.0), 0.0, stats.norm.ppf(0.9, 10.0)]),
    cauchy: lambda: stats.cauchy.ppf(SHARES),
    banana: lambda: stats.norm.ppf(SHARES),
}


def judged(target: Callable[[], None], method: str, seed: int, limit: int) -> Row:
    """Return what is said of a fit, and how far it is off in units of its noise."""
    with pm.Model() as model:
        target()
    options = {"limit": limit} if method == "exact" else {}
    fit = av.fit(model, method, random_seed=seed, progressbar=False, **options)
    draws = fit["posterior"]["v"].transpose("chain", "draw").values
    below = (draws[..., None] <= TARGETS[target]()).astype(float)
    size = chains.ess(below, "mean")
    p = np.array(SHARES)
    off = float((np.abs(below.mean((0, 1)) - p) / np.sqrt(p * (1.0 - p) / size)).max())
    return {
        "status": fit.attrs["status"],
        "level": av.compare({method: fit}).verdict[method].level,
        "off": off,
        "worst": float(np.abs(below.mean((0, 1)) - p).max()),
    }


def work(
    seed: int,
    targets: Sequence[Callable[[], None]] = tuple(TARGETS),
    seeds: int = SEEDS,
    limit: int = LIMIT,
) -> Iterator[tuple[Row, Callable[[], Row]]]:
    """Yield what tells a row from others, and its computation."""
    for target in targets:
        for method in ("exact", "nuts"):
            for run in range(seed, seed + seeds):
                key: Row = {"target": target.__name__, "method": method, "seed": run}
                yield key, partial(judged, target, method, run, limit)


def table(found: list[Row]) -> pd.DataFrame:
    """Return a row for each target and method; "off" is in standard errors."""
    out = []
    for (target, method), own in pd.DataFrame(found).groupby(["target", "method"], sort=False):
        told = own["level"] == "converged"
        largest: dict[str, Any] = {
            "worst share, converged": own["worst"][told].max(),
            "off, converged": own["off"][told].max(),
            "off, others": own["off"][~told].max(),
        }
        counts = {"runs": len(own), "converged": int(told.sum())}
        out.append({"target": target, "method": method} | counts | largest)
    return pd.DataFrame(out)


def main(words: list[str] | None = None) -> None:
    """Fit every target and ask the judge."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1, help="of the first run of each (1)")
    seed = parser.parse_args(words).seed
    with threadpool_limits(1, user_api="blas"):
        found = rows.computed(Path("results/known_moments/rows.csv"), work(seed))
    folder = report.PAGE.parent
    command = f"python -m lab.judge.known_moments --seed {seed}"
    tables.write(folder / "known_moments.csv", table(found), command)
    tables.show(report.PAGE, report.FORMATS)


if __name__ == "__main__":
    main()
