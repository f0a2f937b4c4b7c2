"""Has a twin the density of posteriordb's model? Asked of posteriordb's own draws.

    python -m lab.posteriordb.identities DATABASE

Let p be a density on unconstrained vectors u, and g the gradient of its logarithm. Integration by
parts gives, for draws of p itself (Stein's identities),

    E[g_i] = 0    and    E[u_j g_i] = -1 if i = j, else 0.

The reference draws are of the Stan model, g is of the twin. A missing Jacobian, another prior or
another scale breaks one of them. Nothing is sampled, so no sampler of this project is trusted.
"""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
from scipy import linalg, stats

from lab import tables
from lab.posteriordb.database import Database
from lab.posteriordb.twins import TWINS, UNSEEN, covariance

HERE = Path(__file__).parent
ALARM = 0.001
"""The probability that the largest z of a right twin is above its limit."""
MOST = 2000
"""Draws that are looked at, evenly spaced."""
Arrays = dict[str, np.ndarray]


def collected(draws: Mapping[str, np.ndarray]) -> Arrays:
    """Return reference draws by variable, (S, ...): `beta[1]` and `beta[2]` are one vector."""
    parts: dict[str, list[np.ndarray]] = {}
    for name, values in draws.items():
        parts.setdefault(name.partition("[")[0], []).append(values.ravel())
    vector = {name.partition("[")[0] for name in draws if "[" in name}
    return {n: np.stack(x, axis=-1) if n in vector else x[0] for n, x in parts.items()}


def _free_of_schools(draws: Arrays, _: Mapping[str, np.ndarray]) -> Arrays:
    return draws | {"theta_trans": (draws["theta"] - draws["mu"][:, None]) / draws["tau"][:, None]}


def _free_of_garch(draws: Arrays, _: Mapping[str, np.ndarray]) -> Arrays:
    return draws | {"share": draws["beta1"] / (1.0 - draws["alpha1"])}


def _free_of_counts(draws: Arrays, data: Mapping[str, np.ndarray]) -> Arrays:
    x, raw = np.asarray(data["x"], dtype=float), []
    alpha, rho = pt.dscalars("alpha", "rho")
    cov = pm.pytensorf.compile([alpha, rho], covariance(x, alpha, rho, 1e-10))
    for f, a, r in zip(draws["f"], draws["alpha"], draws["rho"], strict=True):
        raw.append(linalg.solve_triangular(np.linalg.cholesky(cov(a, r)), f, lower=True))
    return draws | {"f_tilde": np.array(raw)}


FREE: dict[str, Callable[[Arrays, Mapping[str, np.ndarray]], Arrays]] = {
    "eight_schools-eight_schools_noncentered": _free_of_schools,
    "garch-garch11": _free_of_garch,
    "gp_pois_regr-gp_pois_regr": _free_of_counts,
}
"""The twins whose free variables are functions of the reference's."""


def unconstrained(model: pm.Model, draws: Arrays) -> list[dict[str, np.ndarray]]:
    """Return draws (S, ...) of the free variables as points of the model's unconstrained space."""
    moved = {}
    for variable in model.free_RVs:
        transform, values = model.rvs_to_transforms[variable], draws[variable.name]
        if transform is None:
            moved[model.rvs_to_values[variable].name] = values
            continue
        forward = pm.pytensorf.compile(
            [value := variable.type()], transform.forward(value, *variable.owner.inputs)
        )
        moved[model.rvs_to_values[variable].name] = np.array([forward(v) for v in values])
    size = len(next(iter(moved.values())))
    return [{name: np.asarray(x[s]) for name, x in moved.items()} for s in range(size)]


def largest_z(model: pm.Model, points: list[dict[str, np.ndarray]]) -> tuple[float, int]:
    """Return the largest |z| of the identities at independent draws, and how many there are."""
    names = [model.rvs_to_values[v].name for v in model.free_RVs]
    gradient = model.compile_fn(
        model.dlogp(jacobian=True), inputs=model.value_vars, on_unused_input="ignore"
    )
    u = np.array([np.concatenate([np.ravel(p[n]) for n in names]) for p in points])
    g = np.array([gradient(p) for p in points])
    u = (u - u.mean(axis=0)) / u.std(axis=0)  # E[g] = 0: a shift changes nothing but the noise
    g = g * np.array([np.concatenate([np.ravel(p[n]) for n in names]) for p in points]).std(axis=0)
    terms = [g, *((u[:, [j]] * g + (np.arange(u.shape[1]) == j)) for j in range(u.shape[1]))]
    every = np.concatenate(terms, axis=1)
    z = every.mean(axis=0) / (every.std(axis=0, ddof=1) / np.sqrt(len(every)))
    return float(np.abs(z).max()), len(z)


def checked(database: Database, names: list[str]) -> pd.DataFrame:
    """Return the largest z of each twin, beside what a right one passes once in a thousand."""
    rows = []
    for name in names:
        data, draws = database.data(name), collected(database.draws(name))
        size = len(next(iter(draws.values())))
        some = np.linspace(0, size - 1, min(size, MOST)).astype(int)
        draws = {n: x[some] for n, x in draws.items()}
        draws = FREE.get(name, lambda given, _: given)(draws, data)
        model = {**TWINS, **UNSEEN}[name](data)
        z, count = largest_z(model, unconstrained(model, draws))
        limit = float(stats.norm.isf(ALARM / (2 * count)))
        rows.append({"posterior": name, "identities": count, "largest z": z, "limit": limit})
        print(f"{name}: {z:.2f} (limit {limit:.2f})", flush=True)
    return pd.DataFrame(rows)


def main(words: list[str] | None = None) -> None:
    """Check every twin."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("database", type=Path, help="a clone of posteriordb")
    asked = parser.parse_args(words)
    found = checked(Database(asked.database), [*TWINS, *UNSEEN])
    tables.write(HERE / "identities.csv", found, "python -m lab.posteriordb.identities DATABASE")


if __name__ == "__main__":
    main()
