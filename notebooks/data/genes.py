"""Write the summaries of gene expression posteriors that `10_genes` reads.

    ARDVARK_DATA=... python notebooks/data/genes.py [PART ...]

samples the exact posteriors of two gene data sets, and writes files beside this one: summaries of
posteriors and correlations between leading genes, but no values of the data. Each part writes files
of its own:

    colon, golub    PFCVM on all samples (a minute; five minutes)
    horseshoe       the regularised horseshoe on colon (ten minutes)
    halves          PFCVM, L1 logistic regression and JCFO's algorithm on random halves of colon
                    (five minutes)

    genes_PART.csv          one row per leading gene: its number in the data, P(active)
                            (of an effect above 0.1), its Monte Carlo error, its value under the
                            prior, the signed effect (mean, sd, 5 % and 95 % quantiles), and the
                            group of correlated genes that it belongs to (-1: none)
    genes_PART_groups.csv   one row per group: its leading gene, size, P(any active), its Monte
                            Carlo error, its value under the prior, and the largest P(active)
    genes_PART_fit.csv      sizes, diagnostics, and the distribution of the number of active genes
    genes_PART_pairs.csv    pairs of the leading genes: the correlation of their expression, and how
                            often each, both and neither is active
    genes_halves.csv        the ten leading genes of each half, by each method
"""

import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from sklearn.linear_model import LogisticRegression

import ardvark as av
from ardvark.inference.fits import diagnostics
from ardvark.inference.fits.activity import activity
from ardvark.inference.fits.selection import weights_of
from ardvark.models.parts.effects import VISIBLE

HERE = Path(__file__).parent
COMMAND = "ARDVARK_DATA=... python notebooks/data/genes.py"
LEADING, PAIRED, TOP, HALVES = 60, 15, 10, 8


def leading(found: xr.Dataset) -> np.ndarray:
    """Return the numbers of the leading genes, the largest P(active) first."""
    return np.argsort(-found["p_active_feature"].values, kind="stable")[:LEADING]


def of_genes(found: xr.Dataset) -> pd.DataFrame:
    """Return what is said of each leading gene."""
    low, high = found["effect_at_feature"].sel(quantile=[0.05, 0.95], method="nearest").values
    columns = {
        "number": np.arange(found.sizes["feature"]),
        "p_active": found["p_active_feature"].values,
        "mcse": found["mcse_feature"].values,
        "prior": found["prior_feature"].values,
        "effect": found["effect_feature"].values,
        "effect_sd": found["effect_sd_feature"].values,
        "low": low,
        "high": high,
        "group": found["group_of_feature"].values,
    }
    table = pd.DataFrame(columns, index=pd.Index(found["feature"].values, name="gene"))
    return table.iloc[leading(found)]


def of_groups(found: xr.Dataset) -> pd.DataFrame:
    """Return what is said of each group of correlated genes."""
    names, member = found["feature"].values, found["group_of_feature"].values
    columns = {
        "leading": names[found["leading_feature"].values],
        "genes": np.bincount(member[member >= 0]),
        "p_any": found["p_active_group"].values,
        "mcse": found["mcse_group"].values,
        "prior": found["prior_group"].values,
        "largest": [
            found["p_active_feature"].values[member == g].max() for g in range(found.sizes["group"])
        ],
    }
    return pd.DataFrame(columns).rename_axis("group").head(LEADING)


def of_fit(fit: xr.DataTree, found: xr.Dataset, active: np.ndarray) -> pd.DataFrame:
    """Return sizes, diagnostics and the numbers of active genes, as (what, name, value)."""
    eta = fit["posterior"]["eta"]
    one = active[:, :, leading(found)[0]].astype(float)
    indicator = xr.DataArray(one, dims=("chain", "draw"))
    rows: list[tuple[str, Any, float]] = [
        ("fit", "status", fit.attrs["status"]),
        ("fit", "chains", eta.sizes["chain"]),
        ("fit", "draws per chain", eta.sizes["draw"]),
        ("fit", "seconds", round(float(fit.attrs["seconds_run"]))),
        ("fit", "samples", eta.sizes["obs"]),
        ("fit", "genes", found.sizes["feature"]),
        ("fit", "worst R-hat of eta", round(float(diagnostics.rhat(eta).max()), 4)),
        ("fit", "smallest bulk ESS of eta", round(float(diagnostics.ess(eta, "bulk").min()))),
        ("fit", "R-hat of the leading gene", round(float(np.max(diagnostics.rhat(indicator))), 4)),
        ("fit", "active genes, prior", round(float(found.attrs["prior_features"]), 1)),
        ("fit", "effect towards", found.attrs["towards"]),
    ]
    for what in ("active", "n90"):
        values, counts = np.unique(found[f"{what}_features"], return_counts=True)
        shares = counts / counts.sum()
        rows += [(what, int(v), round(float(s), 5)) for v, s in zip(values, shares, strict=True)]
    return pd.DataFrame(rows, columns=["what", "name", "value"]).set_index("what")


def of_pairs(problem: Any, found: xr.Dataset, active: np.ndarray) -> pd.DataFrame:
    """Return, for each pair of the first genes, their correlation and joint activity."""
    first, names = leading(found)[:PAIRED], found["feature"].values
    alike = np.corrcoef(problem.X[:, first], rowvar=False)
    on = active.reshape(-1, active.shape[-1])[:, first]
    rows = [
        (
            names[first[i]], names[first[j]], alike[i, j], on[:, i].mean(), on[:, j].mean(),
            (on[:, i] & on[:, j]).mean(), (~on[:, i] & ~on[:, j]).mean(),
        )
        for i, j in combinations(range(PAIRED), 2)
    ]  # fmt: skip
    columns = ["first", "second", "correlation", "p_first", "p_second", "p_both", "p_neither"]
    return pd.DataFrame(rows, columns=columns).set_index("first")


def write(part: str, table: pd.DataFrame) -> None:
    """Write a file, with the command that makes it on its first line."""
    header = f"# {COMMAND} {part.partition('_')[0]}; ardvark {av.__version__}\n"
    (HERE / f"genes_{part}.csv").write_text(header + table.round(4).to_csv())


def posterior(part: str, problem: Any, method: str, **options: Any) -> None:
    """Sample a posterior, and write its files."""
    fit = av.fit(problem, method, random_seed=1, progressbar=False, keep="shared", **options)
    found = av.select(problem, fit, VISIBLE)
    weights = weights_of(problem, fit["posterior"].to_dataset())
    active = activity(problem, weights, VISIBLE)["feature"].active
    write(part, of_genes(found))
    write(f"{part}_groups", of_groups(found))
    write(f"{part}_fit", of_fit(fit, found, active))
    write(f"{part}_pairs", of_pairs(problem, found, active))


def by_l1(problem: Any) -> np.ndarray:
    """Return the size of each gene's weight in L1 logistic regression at C = 1."""
    model = LogisticRegression(l1_ratio=1.0, solver="liblinear", random_state=0)
    return np.abs(model.fit(problem.X, problem.y).coef_[0])


def by_exact(problem: Any) -> np.ndarray:
    """Return each gene's P(active) in the exact posterior."""
    fit = av.fit(problem, "exact", ess=400.0, random_seed=1, progressbar=False, keep="shared")
    return av.select(problem, fit, VISIBLE)["p_active_feature"].values


def by_jcfo(problem: Any) -> np.ndarray:
    """Return the feature weights of JCFO's algorithm, after its filter and with its hold-out."""
    settings = {"prefilter": 50, "select": "holdout", "starts": 1}
    again = av.problem("jcfo", problem.data, scale="fixed")
    fit = av.fit(again, "jcfo_em", random_seed=1, progressbar=False, **settings)
    return fit["posterior"]["feature_weight"].values[0, 0]


METHODS = {"PFCVM, exact": by_exact, "L1 logistic": by_l1, "JCFO's algorithm": by_jcfo}


def halves() -> None:
    """Write the leading genes of each method on random halves of colon, with their size."""
    data, rows = av.load("colon"), []
    for half in range(HALVES):
        problem = av.problem("pfcvm", data.split(test=0.5, random_seed=half)[0])
        for method, rank in METHODS.items():
            size = rank(problem)
            order = np.argsort(-size, kind="stable")[:TOP]
            for place, k in enumerate(order[size[order] > 0.0], start=1):
                rows.append((method, half, place, data.feature_names[k], size[k]))
    columns = ["method", "half", "place", "gene", "size"]
    write("halves", pd.DataFrame(rows, columns=columns).set_index("method"))


PARTS = {
    "colon": lambda: posterior("colon", av.problem("pfcvm", "colon"), "exact"),
    "golub": lambda: posterior("golub", av.problem("pfcvm", "golub"), "exact"),
    "horseshoe": lambda: posterior(
        "horseshoe", av.problem("horseshoe", "colon"), "nuts", draws=6000
    ),
    "halves": halves,
}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
