"""RFVM by its authors' own program, on their example and on the folds of the papers' tables.

    ARDVARK_DATA=... python -m lab.papers.authors --code FOLDER [--data SETS] [--alone SETS]
    python -m lab.papers.authors --code FOLDER --trace

FOLDER is a checkout of github.com/albello1/RFVM, commit 83cb0cb, which is not part of this project.
Its program runs in a process of its own (`authors_program.py`), with the settings of its example:
pruning at 0.01 and 0.001, tolerance 1e-5, at most 5000 iterations. The example that is stored there
comes first. It has to end as it is stored, or nothing else is computed. Then each fold of the sets.
The option `program` of `rfvm_vb` is run beside it, from the program's own start, and alone on
larger sets. Rows are kept in results/ as they end; `authors.csv` and the table of the page are
written last.

--trace writes `authors_trace.csv` instead: forty iterations on a small problem, which the option
`program` of `rfvm_vb` has to follow.

Of the other three papers no program of the authors was found.
"""

import argparse
import hashlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from ardvark.data import Dataset
from ardvark.inference.papers.rfvm.program import IMPLIED, Program
from ardvark.inference.papers.rfvm.vb import Options, iterate
from ardvark.models import ZOO
from lab import rows, tables
from lab.papers.fold import log_score
from lab.papers.protocols import Group, split
from lab.papers.tables import GROUPS, RELEASED

HERE = Path(__file__).parents[1] / "paper_check"
STORED, TRACE = HERE / "authors.csv", HERE / "authors_trace.csv"
KEPT = Path("results/authors.csv")
PROGRAM = "RFVM_prune_elbo_dep.py"
SETS = ("colon_discrete", "sonar", "ionosphere")
"""One of genes, and two of moderate size, whose runs end in minutes."""
ALONE = ("lymphoma_discrete",)
"""Of the paper, and larger: the program's D x D matrices take too long there."""
THEIRS, OURS = "the authors' program", "`rfvm_vb`, program=True"
MOST = 5000
SHORT = 40  # iterations of the trace
EXAMPLE = "the released example"
ENDS = {"iterations": 881, "features": 6, "vectors": 1, "right": 25, "test": 25}
"""How the example ends that is stored in the repository: 0.3 % of 2000 features, 1.33 % of 75."""
Arrays = dict[str, np.ndarray]


def run(
    code: Path,
    X: np.ndarray,
    y: np.ndarray,
    X_test: np.ndarray,
    y_test: np.ndarray,
    seed: int = 0,
    iterations: int = MOST,
    trace: bool = False,
) -> Arrays:
    """Return what the program ends with.

    Parameters
    ----------
    code : Path
        The folder of the program.
    X, y, X_test, y_test : array (N, D), (N,), (M, D), (M,)
        Standardised inputs, labels 0 and 1. The program never fits the test rows.
    seed : int
        Of NumPy's global generator, from which the program draws its start.
    iterations : int
        The most that it may take.
    trace : bool
        Keep q after every iteration.

    Returns
    -------
    dict
        `bound` of every iteration, `features` and `samples` that are left, `count_features` and
        `count_samples` of every iteration from the seventh on, `label` (M,), `probability` (M,);
        with a trace `v` (T + 1, D), `a` (T + 1, N), `bias` and `tau` (T + 1,), the start first.

    Raises
    ------
    subprocess.CalledProcessError
        The program has failed.
    """
    script = Path(__file__).with_name("authors_program.py")
    with tempfile.TemporaryDirectory() as folder:
        job, out = (Path(folder) / name for name in ("job.npz", "out.npz"))
        np.savez(
            job, X=X, y=y.astype(int), X_test=X_test, y_test=y_test.astype(int), seed=seed,
            iterations=iterations, trace=trace,
        )  # fmt: skip
        command = [sys.executable, str(script), str(code), str(job), str(out)]
        subprocess.run(command, check=True)
        with np.load(out) as found:
            return dict(found)


def example() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the data of the stored example as `of_fold` does: 75 and 25 rows, 2000 features."""
    from sklearn.datasets import make_classification
    from sklearn.model_selection import train_test_split

    X, y = make_classification(n_samples=100, n_features=2000, n_classes=2, random_state=999)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, random_state=31)
    X, X_test = standardised(X, X_test)
    return X, y, X_test, y_test


def standardised(X: np.ndarray, X_test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both by mean and standard deviation of X; a column that does not vary is 0."""
    mean, sd = X.mean(axis=0), X.std(axis=0)
    sd = np.where(sd > 0.0, sd, 1.0)
    return (X - mean) / sd, (X_test - mean) / sd


def small() -> tuple[np.ndarray, np.ndarray]:
    """Return the problem of the trace: 40 rows, 6 features, of which two decide the label."""
    random = np.random.default_rng(1)
    X = random.standard_normal((40, 6)) + 0.5 * random.standard_normal((40, 1))
    y = (X[:, 0] - X[:, 1] + 0.5 * random.standard_normal(40) > 0.0).astype(int)
    return standardised(X, X)[0], y


# --- rows -----------------------------------------------------------------------------------------


def theirs(code: Path, data: Sequence[np.ndarray]) -> rows.Row:
    """Return how the program ended, as a row of the table."""
    X, y, X_test, y_test = data
    started = time.perf_counter()
    end = run(code, X, y, X_test, y_test)
    bound, true = end["bound"], y_test == 1
    return {
        "iterations": len(bound),
        "ended": ended(len(bound), not np.isnan(bound[-1])),
        "features": len(end["features"]),
        "vectors": len(end["samples"]),
        "right": int((end["label"] == true).sum()),
        "log_score": log_score(np.nan_to_num(end["probability"], nan=0.5), true),
        "bound": bound[-1],
        "seconds": round(time.perf_counter() - started, 1),
    }


def ours(data: Sequence[np.ndarray]) -> rows.Row:
    """Return how our option ends from the program's own start; its log score is not compared."""
    X, y, X_test, y_test = data
    N, D = X.shape
    started = time.perf_counter()
    options = Options(program=True, **IMPLIED, tolerance=1e-5, max_sweeps=MOST)
    h = ZOO["rfvm"].make_hypers(RELEASED).fill(N, N, D)
    q = Program(X, y.astype(float), X, h, np.random.default_rng(0), options)
    random = np.random.RandomState(0)
    a, v = np.asarray(random.normal(size=N)), np.asarray(random.normal(size=D))
    q.start_from(v, a, float(random.normal()))
    found = iterate(q, options)
    eta = (X_test[:, q.features] * q.v) @ X[np.ix_(q.samples, q.features)].T @ q.a + q.b
    failed = found.reason is not None and found.reason.code == "failed"
    return {
        "iterations": len(q.bounds) + failed,  # the program counts the one that it stops in
        "ended": ended(len(q.bounds), not failed),
        "features": len(q.features),
        "vectors": len(q.samples),
        "right": int(((eta >= 0.0) == (y_test == 1)).sum()),
        "bound": np.nan if failed else q.bounds[-1],
        "seconds": round(time.perf_counter() - started, 1),
    }


def ended(iterations: int, is_number: bool) -> str:
    """Return what ended a run; "no number" is the bound after a negative rate of tau."""
    if not is_number:
        return "no number"
    return "most iterations" if iterations == MOST else "its rule"


def work(
    code: Path, sets: Sequence[str], alone: Sequence[str] = ()
) -> Iterator[tuple[rows.Row, Callable[[], rows.Row]]]:
    """Yield the example, then the folds of the sets: what tells them apart, and how to compute.

    On the sets `alone` our option runs without the program.
    """
    program = hashlib.sha256((code / PROGRAM).read_bytes()).hexdigest()[:8]
    for name, fold, data in problems([*sets, *alone]):
        (N, D), M = data[0].shape, len(data[2])
        key = {"program": program, "data": name, "fold": fold}
        key |= {"train": N, "test": M, "of_features": D}
        if name not in alone:
            yield key | {"by": THEIRS}, partial(theirs, code, data)
        yield key | {"by": OURS}, partial(ours, data)


def problems(sets: Sequence[str]) -> Iterator[tuple[str, int, tuple[np.ndarray, ...]]]:
    """Yield the example, then each fold of the sets: a name, a fold, and X, y, X_test, y_test."""
    yield EXAMPLE, 0, example()
    for name in sets:
        group = next(g for g in GROUPS if g.data == name)
        whole = group.load()
        for fold in range(group.folds):
            yield name, fold, of_fold(group, whole, fold)


def of_fold(group: Group, data: Dataset, fold: int) -> tuple[np.ndarray, ...]:
    """Return X, y, X_test and y_test of a fold, standardised on its training rows."""
    training, test = split(group.protocol, data, fold)
    X, X_test = standardised(np.asarray(data.X[training]), np.asarray(data.X[test]))
    return X, data.y[training], X_test, data.y[test]


def check_example(row: rows.Row) -> None:
    """Raise a RuntimeError if the example has not ended as it is stored."""
    found = {name: row[name] for name in ENDS}
    if found != ENDS:
        raise RuntimeError(f"the example ended with {found}; stored is {ENDS}")


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a line a data set and program: means over folds, beside what is printed."""
    out = []
    for (name, by), mine in frame.groupby(["data", "by"], sort=False):
        shares = {
            "accuracy": mine["right"] / mine["test"],
            "features": mine["features"] / mine["of_features"],
            "vectors": mine["vectors"] / mine["train"],
        }
        few, many = mine["iterations"].min(), mine["iterations"].max()
        cells = {
            "data": name,
            "by": by,
            "iterations": f"{few}" if few == many else f"{few} to {many}",
            "no number": f"{(mine['ended'] == 'no number').sum()} of {len(mine)}",
        }
        for what, values in shares.items():
            spread = f" +- {100 * (values.var() / len(values)) ** 0.5:.1f}" if len(mine) > 1 else ""
            value = 100 * values.mean()
            shown = f"{value:.1f}{spread}" if what == "accuracy" else f"{value:.3g}"
            said = printed(str(name)).get(what)
            cells[f"{what}, %"] = f"{shown} [{said:g}]" if said else shown
        out.append(cells)
    return pd.DataFrame(out)


def printed(name: str) -> dict[str, float]:
    """Return the paper's accuracy, features ("vectors" too) of a set; {} if it has not got it."""
    for group in GROUPS:
        if group.paper == "RFVM" and group.data == name:
            row = next(row for row in group.rows if row.label == "rfvm_vb-elbo")
            return row.printed | {"vectors": row.printed["samples"]}
    return {}


# --- the trace ------------------------------------------------------------------------------------


def trace(code: Path) -> pd.DataFrame:
    """Return the program's first iterations on the small problem, a row each, the start first."""
    X, y = small()
    end = run(code, X, y, X, y, iterations=SHORT, trace=True)
    lost = SHORT + 1 - len(end["count_features"])  # the first iterations do not prune
    counts = {
        "features": [X.shape[1]] * lost + list(end["count_features"]),
        "vectors": [len(X)] * lost + list(end["count_samples"]),
    }
    frame = pd.DataFrame({"bound": [np.nan, *end["bound"]], **counts})
    for name in ("bias", "tau"):
        frame[name] = end[name]
    for name in ("v", "a"):
        for k, column in enumerate(end[name].T):
            frame[f"{name}{k}"] = column
    return frame


def main(words: Sequence[str] | None = None) -> None:
    """Compute what is asked for and write it."""
    parser = argparse.ArgumentParser(prog="lab.papers.authors", description=(__doc__ or "")[:76])
    parser.add_argument("--code", type=Path, required=True, help="folder of the released program")
    parser.add_argument("--data", default=",".join(SETS), help="data sets, comma-separated")
    parser.add_argument("--alone", default=",".join(ALONE), help="sets for our option alone")
    parser.add_argument("--trace", action="store_true", help="forty iterations of a small problem")
    given = parser.parse_args(words)
    if given.trace:
        tables.write(TRACE, trace(given.code), "lab.papers.authors --code RFVM --trace")
        return
    sets, alone = ([name for name in x.split(",") if name] for x in (given.data, given.alone))
    found: list[rows.Row] = []
    for key, compute in work(given.code, sets, alone):
        found += rows.computed(KEPT, [(key, compute)])
        check_example(found[0])
    frame = pd.DataFrame(found)
    tables.write(STORED, frame, "lab.papers.authors --code RFVM")
    page = Path(__file__).with_name("rfvm.md")
    tables.fill(page, authors=tables.markdown(summary(frame)))


if __name__ == "__main__":
    main()
