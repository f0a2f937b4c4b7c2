"""The judge on posteriordb: each verdict beside the truth that the reference draws say.

    python -m lab.posteriordb.trial DATABASE --expect      before any fit
    python -m lab.posteriordb.trial DATABASE               two hours; a run that was stopped goes on
    python -m lab.posteriordb.trial DATABASE --unseen      on posteriors that nothing was decided on

A twin of each model (`twins.py`) is fitted as a user would fit it, in one call each: by `exact`, by
the mean field (`advi`), by `laplace`, and by PyMC's own full-rank ADVI, whose draws are adopted.
`ardvark.compare` says what each may be used for, with `exact` as its reference. It never sees
posteriordb's draws. The truth is from those: how far each mean is off, in standard deviations, and
each standard deviation, as a ratio.

What is expected is written down before any fit, from the reference draws alone. A mean field
has the conditional standard deviations of a normal posterior, so its smallest ratio to the marginal
ones is known; it is expected to be trusted if that is at least `NEAR`. Laplace is exact for a
normal posterior; it is expected to be trusted if no component of the unconstrained vector is skewed
by more than `SKEWED`. PyMC's full-rank ADVI starts at 0 with steps for numbers of size 1, so it is
expected to be right where Laplace is and no mean is more than `REACH` standard deviations away.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pymc as pm
import xarray as xr
from scipy import stats

import ardvark as av
from ardvark.inference.fits.datatree import group
from ardvark.inference.fits.diagnostics import ess
from lab import rows, tables
from lab.posteriordb.database import Database
from lab.posteriordb.identities import FREE, collected, unconstrained
from lab.posteriordb.twins import TWINS, UNSEEN

HERE = Path(__file__).parent
NEAR, SKEWED, REACH = 0.8, 0.3, 50.0
METHODS = ("exact", "advi", "laplace", "full-rank ADVI")
LEVELS = ("trust", "converged", "with care", "do not use", "not judged")
STEPS = 30_000
"""Iterations of PyMC's full-rank ADVI."""
WRONG_MEAN, WRONG_SD = 0.5, 0.6
"""A fit whose worst component is beyond one of these must not be called trust."""
RIGHT_MEAN, RIGHT_SD = 0.1, 0.9
"""A fit whose components are all within these must not be called `do not use`."""


def expected(database: Database, names: list[str]) -> pd.DataFrame:
    """Return which fits are expected to be trusted, from the reference draws alone."""
    found = []
    for name in names:
        draws = collected(database.draws(name))
        draws = FREE.get(name, lambda given, _: given)(draws, database.data(name))
        points = unconstrained({**TWINS, **UNSEEN}[name](database.data(name)), draws)
        u = np.array([np.concatenate([np.ravel(x) for x in p.values()]) for p in points])
        cov = np.cov(u, rowvar=False)
        ratio = float((1.0 / np.sqrt(np.diag(np.linalg.inv(cov)) * np.diag(cov))).min())
        skew = float(np.abs(stats.skew(u, axis=0)).max())
        away = float((np.abs(u.mean(axis=0)) / u.std(axis=0)).max())
        normal = skew <= SKEWED
        found.append(
            {
                "posterior": name,
                "smallest ratio of a mean field": ratio,
                "largest skewness": skew,
                "farthest mean": away,
                "advi": "trust" if ratio >= NEAR and normal else "not",
                "laplace": "trust" if normal else "not",
                "full-rank ADVI": "trust" if normal and away <= REACH else "not",
            }
        )
    return pd.DataFrame(found)


# --- fits and what is said of them ----------------------------------------------------------------


def fitted(model: pm.Model) -> dict[str, xr.DataTree]:
    """Return the fits of a model, each with the settings that a user gets."""
    quiet = {"random_seed": 1, "progressbar": False}
    fits = {m: av.fit(model, m, **quiet) for m in ("exact", "advi", "laplace")}
    with model:
        q = pm.fit(STEPS, method="fullrank_advi", random_seed=1, progressbar=False)
        fits["full-rank ADVI"] = av.adopt(model, q.sample(4000), kind="approximation")
    return fits


def components(tree: xr.DataTree) -> dict[str, np.ndarray]:
    """Return draws (chain, draw) by component, under posteriordb's names: places count from 1."""
    found: dict[str, np.ndarray] = {}
    for name, values in group(tree, "posterior").items():
        x = values.transpose("chain", "draw", ...).values
        flat = x.reshape(*x.shape[:2], -1)
        for k in range(flat.shape[2]):
            found[f"{name}[{k + 1}]" if x.ndim > 2 else str(name)] = flat[..., k]
    return found


def truth(tree: xr.DataTree, reference: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return how far a fit is from the reference draws: the worst component of each kind.

    `z` is the largest of means and of mean squares, in Monte Carlo standard errors of both.
    """
    own, off, ratio, z = components(tree), {}, {}, 0.0
    for name, known in reference.items():
        if name not in own:
            continue
        mine, mean, sd = own[name], known.mean(), known.std(ddof=1)
        off[name] = abs(mine.mean() - mean) / sd
        ratio[name] = mine.std(ddof=1) / sd
        for power in (1, 2):
            pairs = [((x - mean) / sd) ** power for x in (mine, known)]
            errors = [p.std(ddof=1) ** 2 / _effective(p) for p in pairs]
            z = max(z, abs(pairs[0].mean() - pairs[1].mean()) / np.sqrt(sum(errors)))
    far, narrow = max(off, key=off.__getitem__), min(ratio, key=ratio.__getitem__)
    return {
        "mean off by": off[far], "of": far, "smallest sd ratio": ratio[narrow], "its": narrow,
        "largest sd ratio": max(ratio.values()), "z": z,
    }  # fmt: skip


def _effective(draws: np.ndarray) -> float:
    """Return the effective number of draws (chain, draw)."""
    return float(ess(xr.DataArray(draws[..., None], dims=("chain", "draw", "k")), "bulk")[0])


def judged(database: Database, name: str) -> dict[str, Any]:
    """Return what is said of every fit of one posterior, beside the truth."""
    model = {**TWINS, **UNSEEN}[name](database.data(name))
    fits, reference = fitted(model), database.draws(name)
    comparison = av.compare(fits, reference="exact")
    row: dict[str, Any] = {}
    for method, tree in fits.items():
        verdict = comparison.verdict[method]
        said = {"level": verdict.level, "why": verdict.headline} | verdict.words
        said |= {"status": tree.attrs["status"], "seconds": tree.attrs["seconds_run"]}
        if group(tree, "posterior").data_vars:
            said |= truth(tree, reference)
        row |= {f"{method}: {key}": value for key, value in said.items()}
    return row


def long(found: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `judged` as one row a fit."""
    listed = []
    for _, row in found.iterrows():
        for method in METHODS:
            own = {
                key.partition(": ")[2]: value
                for key, value in row.items()
                if str(key).startswith(f"{method}: ")
            }
            listed.append({"posterior": row["posterior"], "method": method} | own)
    return pd.DataFrame(listed)


def counted(fits: pd.DataFrame, beforehand: pd.DataFrame) -> pd.DataFrame:
    """Return by method how often each level was said, how often wrongly, and as expected."""
    rows_of = []
    ahead = beforehand.set_index("posterior")
    for method in METHODS:
        own = fits[fits["method"] == method].set_index("posterior")
        trusted = own["level"].isin(["trust", "converged"])
        near, far = right(own), wrong(own)
        row: dict[str, Any] = {"method": method, "fits": len(own)}
        row |= {level: int((own["level"] == level).sum()) for level in LEVELS}
        row |= {
            "wrong and trusted": int((far & trusted).sum()), "of wrong": int(far.sum()),
            "right and condemned": int((near & (own["level"] == "do not use")).sum()),
            "of right": int(near.sum()),
        }  # fmt: skip
        if method in ahead:
            as_expected = (ahead.loc[own.index, method] == "trust") == trusted
            row["as expected"] = int(as_expected.sum())
        rows_of.append(row)
    return pd.DataFrame(rows_of)


def wrong(fits: pd.DataFrame) -> pd.Series:
    """Whether a fit must not be trusted, by the reference draws."""
    return (fits["mean off by"] > WRONG_MEAN) | (fits["smallest sd ratio"] < WRONG_SD)


def right(fits: pd.DataFrame) -> pd.Series:
    """Whether a fit must not be condemned."""
    narrow, wide = fits["smallest sd ratio"] >= RIGHT_SD, fits["largest sd ratio"] <= 1 / RIGHT_SD
    return (fits["mean off by"] <= RIGHT_MEAN) & narrow & wide


def shown(fits: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each posterior: what was said of each method, with its worst component."""
    listed = []
    for name in dict.fromkeys(fits["posterior"]):
        own = fits[fits["posterior"] == name].set_index("method")
        row = {"posterior": name, "exact": own.loc["exact", "level"]}
        row["z"] = f"{own.loc['exact', 'z']:.1f}"
        for method in METHODS[1:]:
            fit = own.loc[method]
            row[method] = (
                f"{fit['level']}: {fit['mean off by']:.2g} sd, {fit['smallest sd ratio']:.2g}"
            )
        listed.append(row)
    return pd.DataFrame(listed)


def publish() -> None:
    """Put the tables that are there into the page."""
    beforehand, tables_of = tables.read(HERE / "expected.csv"), {}
    for which in ("trial", "unseen"):
        path = HERE / f"{which}.csv"
        if path.exists():
            fits = tables.read(path)
            tables_of[f"{which}_counts"] = tables.markdown(counted(fits, beforehand))
            tables_of[which] = tables.markdown(shown(fits))
    tables.fill(HERE / "POSTERIORDB.md", **tables_of)


def main(words: list[str] | None = None) -> None:
    """Write down what is expected, or fit and judge."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("database", type=Path, help="a clone of posteriordb")
    parser.add_argument("--expect", action="store_true", help="only what is expected")
    parser.add_argument("--unseen", action="store_true", help="the posteriors held back")
    asked = parser.parse_args(words)
    database, which = Database(asked.database), "unseen" if asked.unseen else "trial"
    names = list(UNSEEN if asked.unseen else TWINS)
    command = "python -m lab.posteriordb.trial DATABASE" + " --unseen" * asked.unseen
    if asked.expect:
        both = expected(database, [*TWINS, *UNSEEN])
        tables.write(HERE / "expected.csv", both, f"{command} --expect")
        return
    work = (({"posterior": n}, lambda n=n: judged(database, n)) for n in names)
    found = rows.computed(Path("results/posteriordb") / f"{which}.csv", work)
    tables.write(HERE / f"{which}.csv", long(pd.DataFrame(found)), command)
    publish()


if __name__ == "__main__":
    main()
