"""How long the exact posterior takes: `exact`, by its own rule, for every model, kernel and size.

    python -m lab.speed.exact --seeds 1 2 3       all of it (hours; ARDVARK_DATA for the data)
    python -m lab.speed.exact --only colon sonar  a part

A run ends when everything that may be quoted has converged (`samplers/driver.py`), or after
the minutes of `--minutes`. A case is one of `fits.py`. Nothing else should run. A run that was
stopped goes on. When all cases are there it also writes `inference/samplers/exact/measured.csv`,
which tells a user beforehand how long `exact` will take.
"""

import argparse
from pathlib import Path

import pandas as pd

from lab import rows, tables
from lab.problems import RBF
from lab.speed.fits import PAGE, Case, work

TABLE = PAGE.parent / "exact.csv"
MEASURED = PAGE.parents[2] / "inference" / "samplers" / "exact" / "measured.csv"
LINEAR = {"kernel": "linear"}
MASKED = ("pfcvm", "rfvm")
CASES = [
    *(Case(m, d, "exact") for d in ("colon", "colon_discrete") for m in MASKED),
    *(Case(m, d, "exact") for d in ("golub", "allaml", "prostate_ge") for m in MASKED),
    *(Case("pfcvm", data, "exact", RBF) for data in ("sonar", "digits38")),
    *(Case(m, d, "exact") for d in ("digits38", "sonar") for m in MASKED),
    *(Case(m, "sonar", "exact") for m in ("jcfo", "pcvm", "rvm", "fsklr", "sklr", "fs_skr")),
    Case("jcfo", "colon", "exact", LINEAR),
    *(Case("sparse_probit", data, "exact") for data in ("sonar", "colon", "10000x30")),
    *(Case("horseshoe", data, "exact") for data in ("golub", "2000x30", "10000x30")),
    *(Case(m, d, "exact") for d in ("100x10000", "100x100000") for m in MASKED),
]
COLUMNS = [
    "model", "prior", "data", "seed", "kernel", "N", "D", "by", "seconds", "compile", "GB",
    "iterations", "R-hat", "ESS", "ended",
]  # fmt: skip


def measured(found: pd.DataFrame) -> pd.DataFrame:
    """Return the table of `samplers/exact/measured.py`: a line for each problem that was measured.

    Seconds are the median over seeds, and gigabytes the largest.
    """
    found, keys = found.fillna({"kernel": ""}), ["model", "kernel", "data", "by", "N", "D"]
    lines = []
    for key, mine in found.groupby(keys, sort=False):
        converged = (mine["ended"] == "converged").all()
        said = {
            "seconds": f"{mine['seconds'].median():.1f}",
            "gigabytes": f"{mine['GB'].max():.2f}",
            "converged": "yes" if converged else "no",
        }
        lines.append(dict(zip(keys, key, strict=True)) | said)
    return pd.DataFrame(lines).rename(columns={"by": "sampler"})


def main(words: list[str] | None = None) -> None:
    """Measure what is missing, and publish it when all cases are there."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", default=[], help="words of a case: models, data")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1], help="of each case (1)")
    parser.add_argument("--minutes", type=float, default=15.0, help="a run ends after so many")
    given = parser.parse_args(words)
    asked = [Case(c.model, c.data, c.method, c.hypers, {"minutes": given.minutes}) for c in CASES]
    found = rows.computed(Path("results/exact_speed.csv"), work(asked, given.seeds, given.only))
    if given.only:
        print(pd.DataFrame(found)[COLUMNS])
        return
    seeds = " ".join(map(str, given.seeds))
    command = f"python -m lab.speed.exact --seeds {seeds} --minutes {given.minutes:g}"
    tables.write(TABLE, pd.DataFrame(found)[COLUMNS], command)
    publish(tables.read(TABLE), PAGE, MEASURED)


def publish(found: pd.DataFrame, page: Path, table: Path) -> None:
    """Write the package's own table, and the one of the page."""
    measured(found).to_csv(table, index=False)
    tables.fill(page, times=tables.markdown(measured(found)))


if __name__ == "__main__":
    main()
