"""What a sweep of the Gibbs sampler of PFCVM and RFVM costs, and what its draws are worth.

    python lab/speed/ard_sweeps.py colon pfcvm 250 1000

It uses nothing of this folder, so that with PYTHONPATH it also measures another version of the
package; `lab.speed.gibbs_speed` calls it. Four chains, one after the other, on one thread; seconds
are those of the processor, after `tune` sweeps. It prints a row as JSON.
"""

import json
import sys
import time
from typing import Any

import numpy as np
import xarray as xr
from threadpoolctl import threadpool_limits

import ardvark as av
from ardvark.inference.fits import diagnostics
from ardvark.inference.gibbs.ard import Sampler
from ardvark.models.parts.effects import VISIBLE

CHAINS, OFTEN = 4, 0.1  # chains, and P(active) above which a feature's indicator counts


def planted(N: int, D: int) -> tuple[np.ndarray, np.ndarray]:
    """Return X (N, D), standard normal, and the sign of its first column."""
    X = np.random.default_rng(0).standard_normal((N, D))
    return X, (X[:, 0] > 0).astype(int)


def measure(data: str, model: str, tune: int, draws: int) -> dict[str, Any]:
    """Return the cost of a sweep; ESS a second of eta, of the indicators, of tau; worst R-hat."""
    given = planted(*map(int, data.split("x"))) if data[0].isdigit() else av.load(data)
    problem = av.problem(model, given)
    sampler, sd = Sampler(problem), problem.X.std(axis=0)
    sampler.sweep(sampler.start(np.random.default_rng(0), 0), np.random.default_rng(0))
    taken, found = 0.0, []
    for chain in range(CHAINS):
        rng = np.random.default_rng([5, chain])
        state = sampler.start(rng, chain)
        for _ in range(tune):
            sampler.sweep(state, rng)
        points = []
        for _ in range(draws):
            began = time.process_time()
            sampler.sweep(state, rng)
            taken += time.process_time() - began
            slope = sampler.Zt @ (sampler.sign * state.x)
            active = np.abs(slope) * state.theta * sd > VISIBLE
            points.append((state.eta.copy(), active, state.tau))
        found.append([np.array(v, dtype=float) for v in zip(*points, strict=True)])
    eta, active, tau = (np.stack(v) for v in zip(*found, strict=True))
    parts = {"eta": eta, "indicators": active[..., active.mean(axis=(0, 1)) > OFTEN]}
    if sampler.noise:
        parts["tau"] = tau[..., None]
    row: dict[str, Any] = {"ms a sweep": 1e3 * taken / (CHAINS * draws)}
    worst = 0.0
    for name, values in parts.items():
        if not values.size:
            continue
        x = xr.DataArray(values, dims=("chain", "draw", "k"))
        least = float(diagnostics.ess(x, "bulk").min())
        row |= {f"{name}, ESS a sweep": least / (CHAINS * draws), f"{name}, ESS / s": least / taken}
        worst = max(worst, float(diagnostics.rhat(x).max()))
    p = active.mean(axis=(0, 1))
    return row | {"R-hat": worst, "often active": int((p > OFTEN).sum())}


if __name__ == "__main__":
    with threadpool_limits(1, user_api="blas"):
        print(json.dumps(measure(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))))
