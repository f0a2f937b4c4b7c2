"""ADVI and Laplace beside those of PyMC and pymc-extras: how good q is, and what it costs.

    python -m lab.algorithms.approximations

Each method approximates the same five posteriors with the settings that a user gets. Its draws are
compared with those of a long run of NUTS, component by component on the unconstrained scale: how
far a mean is off, in standard deviations, and the ratio of the standard deviations. It needs
pymc-extras, which the project does not depend on; without it the rows of `fit_laplace` are left
out.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pymc as pm
import xarray as xr

import ardvark as av
from lab import tables

HERE = Path(__file__).parent
QUIET = {"random_seed": 1, "progressbar": False}
STEPS, DRAWS = 10_000, 4000  # as many steps as `pm.fit` takes by default


def eight_schools() -> pm.Model:
    """Return the noncentred eight schools (Rubin 1981)."""
    y, sigma = np.array([28, 8, -3, 7, -1, 1, 18, 12]), np.array([15, 10, 16, 11, 9, 11, 10, 18])
    with pm.Model() as model:
        mu, tau = pm.Normal("mu", 0.0, 5.0), pm.HalfCauchy("tau", 5.0)
        theta = pm.Normal("theta", 0.0, 1.0, shape=8)
        pm.Normal("y", mu + tau * theta, sigma, observed=y)
    return model


def of_zoo(name: str, **given: Any) -> av.Problem:
    """Return a model of the zoo on 50 rows of six features, two of which tell the classes apart."""
    random = np.random.default_rng(0)
    X = random.normal(size=(50, 6))
    y = (X[:, 0] - X[:, 1] + 0.7 * random.normal(size=50) > 0.0).astype(int)
    return av.problem(name, (X, y), **given)


FEW = {"basis": [*range(0, 50, 5)], "parametrization": "marginal"}
POSTERIORS = {
    "eight schools": eight_schools,
    "horseshoe": lambda: of_zoo("horseshoe"),
    "sparse_probit": lambda: of_zoo("sparse_probit", parametrization="marginal"),
    "rfvm": lambda: of_zoo("rfvm", **FEW, latent_noise="none"),
    "pfcvm": lambda: of_zoo("pfcvm", **FEW, kernel="linear"),
}


def components(model: pm.Model, posterior: xr.Dataset) -> np.ndarray:
    """Return draws (S, P) of the free variables, logarithms of those that PyMC transforms."""
    found = []
    for rv in model.free_RVs:
        x = posterior[rv.name].values
        x = x.reshape(x.shape[0] * x.shape[1], -1)
        with np.errstate(divide="ignore"):  # a draw that underflowed
            found.append(x if model.rvs_to_transforms[rv] is None else np.log(x))
    return np.concatenate(found, axis=1)


def quality(q: np.ndarray, reference: np.ndarray) -> dict[str, float]:
    """Return how far means and standard deviations of the components are off, of finite draws."""
    mean, sd, finite = reference.mean(axis=0), reference.std(axis=0), np.isfinite(q).all(axis=1)
    off, ratio = np.abs(q[finite].mean(axis=0) - mean) / sd, q[finite].std(axis=0) / sd
    return {
        "not finite": float(np.mean(~finite)),
        "mean off by, median": float(np.median(off)),
        "mean off by, largest": float(off.max()),
        "sd ratio, smallest": float(ratio.min()),
        "sd ratio, median": float(np.median(ratio)),
        "sd ratio, largest": float(ratio.max()),
    }


def ours(method: str) -> Any:
    """Return a function that fits by this package, and whether q comes with lp and log q."""

    def fit(problem: Any, model: pm.Model) -> tuple[xr.Dataset, bool]:
        tree = av.fit(problem, method, draws=DRAWS // 4, chains=4, **QUIET)
        stats = tree["sample_stats"] if "sample_stats" in tree.children else {}
        return tree["posterior"].to_dataset(), "log_q" in stats

    return fit


def pymc(method: str) -> Any:
    """Return a function that fits by `pm.fit`."""

    def fit(problem: Any, model: pm.Model) -> tuple[xr.Dataset, bool]:
        with model:
            found = pm.fit(STEPS, method=method, **QUIET).sample(DRAWS, random_seed=1)
        return found["posterior"].to_dataset(), "log_q" in found

    return fit


def extras(problem: Any, model: pm.Model) -> tuple[xr.Dataset, bool]:
    """Fit by `fit_laplace` of pymc-extras."""
    from pymc_extras import fit_laplace

    with model:
        found = fit_laplace(draws=DRAWS, **QUIET)
    return found["posterior"].to_dataset(), "log_q" in found


METHODS = {
    "advi": ours("advi"),
    "pm.fit advi": pymc("advi"),
    "pm.fit fullrank_advi": pymc("fullrank_advi"),
    "laplace": ours("laplace"),
    "pymc-extras fit_laplace": extras,
}


def measured(posterior: str) -> list[dict[str, Any]]:
    """Return a row for each method, on one posterior."""
    problem = POSTERIORS[posterior]()
    model = problem if isinstance(problem, pm.Model) else problem.model
    long = av.fit(problem, "nuts", draws=2500, chains=4, target_accept=0.95, **QUIET)
    reference, rows = components(model, long["posterior"].to_dataset()), []
    for name, method in METHODS.items():
        row: dict[str, Any] = {"posterior": posterior, "method": name}
        started = time.process_time()
        try:
            found, has_log_q = method(problem, model)
            row |= quality(components(model, found), reference)
            row["lp and log q"] = "yes" if has_log_q else "no"
        except ImportError:
            continue
        except Exception as error:  # a library's failure is a result
            row["failed"] = str(error).partition("\n")[0][:60]
        row["seconds"] = time.process_time() - started
        print(row, flush=True)
        rows.append(row)
    return rows


def main() -> None:
    """Measure every posterior, and fill the table of the page."""
    found = pd.DataFrame([row for posterior in POSTERIORS for row in measured(posterior)])
    tables.write(HERE / "approximations.csv", found, "python -m lab.algorithms.approximations")
    tables.show(HERE / "ALGORITHMS.md")


if __name__ == "__main__":
    main()
