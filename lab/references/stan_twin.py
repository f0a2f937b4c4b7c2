"""Is the Stan program that goes with an exported reference the same model?

    python -m lab.references.stan_twin    (Python 3.12: pip install httpstan setuptools, and g++)

httpstan compiles `lab/references/stan/sparse_probit.stan` and evaluates its log density. Both
programs have the variables tau_bias, bias_raw, tau, beta_raw; the unconstrained parameters are the
logarithms of the variances, with their Jacobian. The programs are the same model if their log
densities differ by one constant at all points. Points are drawn around the prior, so that the terms
of the density vary by hundreds.
"""

import asyncio
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd

import ardvark as av
from lab import problems, tables
from lab.references.posteriordb import STAN, as_json

PROGRAM = STAN / "sparse_probit.stan"
TABLE = Path(__file__).parents[1] / "calibration" / "stan_twin.csv"
POINTS = 20
LIMIT = 1e-8
VARIABLES = ("tau_bias", "bias_raw", "tau", "beta_raw")


def points(problem: av.Problem, count: int) -> list[dict[str, np.ndarray]]:
    """Return points: the prior's draws, with noise of sd 1/2 on the unconstrained scale."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(count):
        drawn = problem.simulate(rng)
        for weight, variance in (("bias", "tau_bias"), ("beta", "tau")):
            drawn[f"{weight}_raw"] = drawn[weight] / np.sqrt(drawn[variance])
        point = {}
        for name in VARIABLES:
            value = np.asarray(drawn[name], dtype=float)
            step = 0.5 * rng.normal(size=value.shape)
            point[name] = value * np.exp(step) if name.startswith("tau") else value + step
        found.append(point)
    return found


def of_pymc(problem: av.Problem, where: list[dict[str, np.ndarray]]) -> np.ndarray:
    """Return the log densities of unconstrained parameters under the PyMC model."""
    density = problem.model.compile_logp()
    transformed = {"tau_bias": "tau_bias_log__", "tau": "tau_log__"}
    values = [
        density({transformed.get(n, n): np.log(x) if n in transformed else x for n, x in p.items()})
        for p in where
    ]
    return np.array(values, dtype=float)


def of_stan(problem: av.Problem, where: list[dict[str, np.ndarray]]) -> np.ndarray:
    """Return the same of the Stan program, compiled by httpstan."""
    from httpstan import models

    code = PROGRAM.read_text()
    asyncio.run(models.build_services_extension_module(code))
    module = models.import_services_extension_module(models.calculate_model_name(code))
    given = as_json(problem.data)
    values = []
    for point in where:
        parts = [np.log(x) if n.startswith("tau") else x for n, x in point.items()]
        vector = np.concatenate([np.atleast_1d(part) for part in parts]).tolist()
        values.append(module.log_prob(given, vector, True))
    return np.array(values)


def main() -> None:
    """Compare the two log densities, and store them."""
    problem = problems.problem("sparse_probit", problems.synthetic(40, 12))
    where = points(problem, POINTS)
    ours, theirs = of_pymc(problem, where), of_stan(problem, where)
    found = {"point": range(1, POINTS + 1), "PyMC": ours, "Stan": theirs}
    frame = pd.DataFrame(found | {"difference": ours - theirs})
    spread = np.ptp(ours - theirs)
    command = f"python -m lab.references.stan_twin, httpstan {version('httpstan')}"
    tables.write(TABLE, frame, command)
    same = spread < LIMIT * max(1.0, float(np.abs(ours).max()))
    print(f"largest minus smallest difference {spread:.1e}: {'' if same else 'not '}the same model")


if __name__ == "__main__":
    main()
