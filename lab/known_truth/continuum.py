"""Whether lists of features are as false as they promise, where true effects have every size.

    python -m lab.known_truth.continuum                    fit what is missing, then report
    python -m lab.known_truth.continuum --processes 2      with two fits at once

In `known_truth.py` the smallest true effect is 0.73 logits, so nothing lies near the size of 0.5
that is reported. Here the weights are 0.25 t with t of Student's distribution with 2 degrees of
freedom: 18 % of them are above 0.5, and there is no gap anywhere. Rows are normal in blocks of five
features, of variance 1 and correlation 0 or 0.5; the labels follow the model's own link without a
bias or latent noise. None of the priors is this distribution. 200 rows; 30 or 100 features.

Each model of the zoo that ranks features is fitted by `exact` until all that may be quoted has 400
effective draws, or for 4096 iterations; fits that have not converged are counted and left out. The
list "FDR 10 %" is the longest one whose mean of 1 - P(|effect| > 0.5) is at most 0.1. A listed
feature is false if its true effect is 0.5 or less. Cells have equal weight, and the standard error
of a share is that of a ratio over data sets (`results.ratio`). Each fit is a line of
`continuum.csv`, written as it ends; the same command goes on where a killed run ended.
"""

import argparse
import itertools
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy import special, stats

import ardvark as av
from ardvark.inference.fits.selection import summary
from lab import rows, tables
from lab.known_truth.known_truth import BLOCK, promised
from lab.known_truth.report import pm
from lab.known_truth.results import Estimate, mean, ratio
from lab.origin import version
from lab.rows import Row

HERE = Path(__file__).parent
FITS = HERE / "continuum.csv"
SCALE, FREEDOM = 0.25, 2.0
THRESHOLD = 0.5
SETS = 6
OPTIONS = {"ess": 400.0, "limit": 4096, "cores": 1}
MODELS = {
    "rfvm": {},
    "pfcvm": {},
    "horseshoe": {},
    "jcfo": {"kernel": "linear"},
    "sparse_probit": {},
}
"""The models, and what is set in each."""


class Cell(NamedTuple):
    """Rows, features and the correlation within a block."""

    N: int
    D: int
    correlation: float


CELLS = [Cell(*levels) for levels in itertools.product((200,), (30, 100), (0.0, 0.5))]
KEY = (*Cell._fields, "data_set", "model")


def simulate(cell: Cell, data_set: int, link: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return X (N, D), y (N,) and the weights w (D,): a function of the arguments."""
    rng = np.random.default_rng([cell.N, cell.D, round(100 * cell.correlation), data_set, 65])
    w = SCALE * rng.standard_t(FREEDOM, cell.D)
    common = np.repeat(rng.normal(size=(cell.N, cell.D // BLOCK)), BLOCK, axis=1)
    own = rng.normal(size=(cell.N, cell.D))
    X = np.sqrt(cell.correlation) * common + np.sqrt(1.0 - cell.correlation) * own
    p = stats.norm.cdf(X @ w) if link == "probit" else special.expit(X @ w)
    return X, (rng.random(cell.N) < p).astype(int), w


def fit(cell: Cell, data_set: int, model: str) -> Row:
    """Return the row of one fit."""
    began = time.process_time()
    link = "probit" if av.ZOO[model].link.startswith("probit") else "logistic"
    X, y, w = simulate(cell, data_set, link)
    problem = av.problem(model, (X, y), **MODELS[model])
    tree = av.fit(
        problem, "exact", draws=400, random_seed=data_set, progressbar=False, keep="shared",
        **OPTIONS,
    )  # fmt: skip
    found, large = tree["selection"].to_dataset(), np.abs(w) > THRESHOLD
    p, numbers = found["p_active_feature"].values, summary(found, "feature")
    row = cell._asdict() | {"data_set": data_set, "model": model, "commit": version()}
    row |= {"status": tree.attrs["status"], "iterations": tree.attrs["iterations"]}
    row |= {"cpu_seconds": round(time.process_time() - began, 1), "large": int(large.sum())}
    row |= {name: round(numbers[name], 4) for name in ("active", "prior", "background")}
    row |= {"half_right": int((p > 0.5)[large].sum()), "half_false": int((p > 0.5)[~large].sum())}
    row |= {"half_expected": float((1.0 - p)[p > 0.5].sum())}
    row |= promised("fdr", p, large, 0.1)
    return {name: rows.plain(value) for name, value in row.items()}


def computed(processes: int = 1) -> list[Row]:
    """Fit what the file lacks, keep each row as it ends, and return all of them."""
    held = rows.read(FITS)
    every = [(c, s, m) for s in range(1, SETS + 1) for c in CELLS for m in MODELS]
    missing = [
        (c, s, m)
        for c, s, m in every
        if rows.find(held, c._asdict() | {"data_set": s, "model": m}) is None
    ]
    work = (delayed(fit)(*piece) for piece in missing)
    for row in Parallel(n_jobs=processes, return_as="generator_unordered")(work):
        held.append(row)
        tables.write(FITS, pd.DataFrame(held), "python -m lab.known_truth.continuum")
    return held


def shares(frame: pd.DataFrame, which: str) -> tuple[Estimate, float, Estimate]:
    """Return the share of a list that is false, what it promises, and the excess with its error."""
    cell = frame.groupby(list(Cell._fields)).ngroup().to_numpy()
    false, right, expected = (
        frame[f"{which}_{name}"].to_numpy(dtype=float) for name in ("false", "right", "expected")
    )
    whole = false + right
    return (
        ratio(false, whole, cell),
        ratio(expected, whole, cell).value,
        ratio(false - expected, whole, cell),
    )


def table(held: list[Row]) -> pd.DataFrame:
    """Return one row a model: what its lists promise, and what is false in them."""
    frame, listed = pd.DataFrame(held), []
    for model in MODELS:
        every = frame[frame["model"] == model]
        own = every[every["status"] == "finished"]
        if own.empty:
            continue
        cell = own.groupby(list(Cell._fields)).ngroup().to_numpy()
        row: Row = {"model": model, "converged": f"{len(own)} of {len(every)}"}
        for which, name in (("fdr", "FDR 10 %"), ("half", "P > 1/2")):
            false, promise, excess = shares(own, which)
            found = (own[f"{which}_right"] / own["large"].clip(lower=1)).to_numpy(dtype=float)
            power = mean(found, cell)
            empty = int((own[f"{which}_right"] + own[f"{which}_false"] == 0).sum())
            row |= {
                f"{name}: promised": f"{promise:.2f}",
                f"{name}: false": pm(false),
                f"{name}: kept": "yes" if abs(excess.value) <= 2 * excess.error else "no",
                f"{name}: power": pm(power),
                f"{name}: empty": empty,
            }
        listed.append(row)
    return pd.DataFrame(listed)


def main(words: list[str] | None = None) -> None:
    """Fit what is missing, and fill the table of the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--processes", type=int, default=1, help="fits at once (1)")
    held = computed(parser.parse_args(words).processes)
    tables.fill(HERE / "KNOWN_TRUTH.md", kept=tables.markdown(table(held), {}))


if __name__ == "__main__":
    from lab.known_truth import continuum  # by the name by which other processes import it

    continuum.main()
