"""Write the summary of the colon data's posterior that `01_sparsity` reads.

    ARDVARK_DATA=... python notebooks/data/colon_sparse.py

samples PFCVM by its default (sparse) prior with NUTS and writes `colon_sparse.csv` beside this
file: summaries of the posterior and the number of genes correlated with each gene, but no values of
the data. There is one row per number:

    p_active  gene    P(active), that of an effect above 0.1, and its Monte Carlo error
    partners  gene    how many other genes have a correlation above 0.6 with it, in absolute value
    any       gene    P(it or one of these partners is active)
    any_prior gene    the same under the prior, by simulation
    with      gene    how many partners are active on average in the draws in which it is
    without   gene    the same in the draws in which it is not
    n90       number  share of draws in which this many genes carry 90 % of the effect
    active    number  share of draws in which this many genes are active
    fit       name    sizes and diagnostics of the fit
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

import ardvark as av
from ardvark.inference.fits import diagnostics
from ardvark.models.parts.effects import VISIBLE, primal_effects

LEADING = 50
ALIKE = 0.6
PRIOR_DRAWS = 2000
COMMAND = "ARDVARK_DATA=... python notebooks/data/colon_sparse.py"
FILE = Path(__file__).with_name("colon_sparse.csv")

Row = tuple[str, Any, float, float]


def active(problem: Any, theta: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Return which genes are active in S draws, shape (S, D)."""
    return primal_effects(problem.X, theta * (a @ problem.Z)) > VISIBLE


def in_posterior(problem: Any, fit: xr.DataTree) -> np.ndarray:
    """Return which genes are active in which draws of the posterior."""
    posterior, names = fit["posterior"], ("feature_weight", "sample_weight")
    drawn = (posterior[n].transpose("chain", "draw", ...).values for n in names)
    return active(problem, *(v.reshape(-1, v.shape[-1]) for v in drawn))


def in_prior(problem: Any) -> np.ndarray:
    """Return which genes are active in which draws of the prior."""
    rng = np.random.default_rng(1)
    draws = [problem.simulate(rng) for _ in range(PRIOR_DRAWS)]
    names = ("feature_weight", "sample_weight")
    return active(problem, *(np.array([d[n] for d in draws]) for n in names))


def rows(problem: Any, fit: xr.DataTree) -> Iterator[Row]:
    """Yield every number that the notebook shows."""
    eta, chosen = fit["posterior"]["eta"], av.select(problem, fit, VISIBLE)
    names = chosen["feature"].values
    p, mcse = chosen["p_active_feature"].values, chosen["mcse_feature"].values
    after, before = in_posterior(problem, fit), in_prior(problem)
    np.testing.assert_allclose(after.mean(0), p, atol=1e-12)  # one definition of active
    alike = np.abs(np.corrcoef(problem.X, rowvar=False)) > ALIKE

    yield "fit", "rhat_eta", float(diagnostics.rhat(eta).max()), np.nan
    yield "fit", "ess_eta", float(diagnostics.ess(eta, "bulk").min()), np.nan
    yield "fit", "divergences", float(diagnostics.divergences(fit)), np.nan
    yield "fit", "draws", float(len(after)), np.nan
    yield "fit", "genes", float(len(p)), np.nan
    yield "fit", "active_prior", float(before.sum(1).mean()), np.nan
    for name in ("n90", "active"):
        values, counts = np.unique(chosen[f"{name}_features"], return_counts=True)
        for value, count in zip(values, counts, strict=True):
            yield name, int(value), count / counts.sum(), np.nan
    order = np.argsort(-p, kind="stable")
    for k in order:
        yield "p_active", names[k], p[k], mcse[k]
    for k in order[:LEADING]:
        partners = alike[k] & (np.arange(len(p)) != k)
        count, on = after[:, partners].sum(1), after[:, k]
        yield "partners", names[k], float(partners.sum()), np.nan
        yield "any", names[k], float((on | (count > 0)).mean()), np.nan
        yield "any_prior", names[k], float(before[:, alike[k]].any(1).mean()), np.nan
        yield "with", names[k], float(count[on].mean()), np.nan
        yield "without", names[k], float(count[~on].mean()), np.nan


def main() -> None:
    """Sample, and write the file."""
    problem = av.problem("pfcvm", "colon")
    fit = av.fit(problem, "nuts", random_seed=1, progressbar=False)
    write(problem, fit)


def write(problem: Any, fit: xr.DataTree) -> None:
    """Write the file, with the command that makes it on its first line."""
    table = pd.DataFrame(rows(problem, fit), columns=["what", "name", "value", "mcse"]).round(4)
    found = json.loads(fit.attrs["versions"])
    versions = ", ".join(f"{name} {found[name]}" for name in ("ardvark", "pymc", "nutpie"))
    FILE.write_text(f"# {COMMAND}; {versions}\n{table.to_csv(index=False)}")


if __name__ == "__main__":
    main()
