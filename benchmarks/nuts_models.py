"""NUTS on every continuous model and parametrisation: time, mixing, and memory of a gradient.

    python -m benchmarks.nuts_models                          everything (ARDVARK_DATA for the data)
    python -m benchmarks.nuts_models --list                   the names of the rows
    python -m benchmarks.nuts_models --only 'pfcvm-*' '*-sonar-*'
    python -m benchmarks.nuts_models --only memory

Rows are appended to OUT/rows.csv as they end; a killed run goes on with the same command. Data:
`sonar` and `digits38` shuffled with a fixed seed, their first 100 and 120 rows (rbf kernel), and
`colon_discrete` whole, 62 x 2000 (linear kernels). The goal: R-hat of eta below 1.01 and at most 5
divergences in each model's default form, in no more seconds of sampling than first tries took.

A bulk ESS is the smallest over the components of eta; ESS per second is of sampling alone.
"""

import argparse
import csv
import subprocess
import sys
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np

import ardvark as av
from ardvark.data import Dataset
from ardvark.inference.comparison.table import compare
from ardvark.models import ZOO

FIRST_TRIES = {  # seconds of sampling, before any tuning, by model, data and kernel
    "pfcvm-colon_discrete-linear": 18,
    "pfcvm-sonar-rbf": 47,
    "jcfo-colon_discrete-linear": 20,
    "jcfo-colon_discrete-polynomial": 29,
    "jcfo-sonar-rbf": 158,
    "rfvm-colon_discrete-linear": 18,
}
KERNELS = {"sonar": ("rbf",), "digits38": ("rbf",), "colon_discrete": ("linear", "polynomial")}
SIZES = {"sonar": 100, "digits38": 120, "colon_discrete": None}
COLUMNS = (
    "row", "default", "draws", "tune", "chains", "seed", "fingerprint", "status", "seconds_compile",
    "seconds_run", "rhat_eta", "ess_eta", "ess_per_second", "divergences", "tree_depth",
    "first_try",
)  # fmt: skip
LINE = "{:<52} {:>9} {:>8} {:>9} {:>7} {:>8} {:>8} {:>5} {:>6}"


def rows() -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Yield (name of the row, model, data, hyperparameters)."""
    for data in SIZES:
        for model in ("pfcvm", "jcfo", "rfvm", "pcvm", "rvm", "sparse_probit"):
            for choice in ZOO[model].choices():
                kernel = choice.get("kernel")
                # the polynomial kernel of degree 1 is JCFO's own linear one; the degree-2 kernels
                # of the others are no goal
                if kernel is not None and (
                    kernel not in KERNELS[data] or (kernel == "polynomial" and model != "jcfo")
                ):
                    continue
                yield "-".join([model, data, *choice.values()]), model, data, choice


def load(name: str) -> Dataset:
    data, size = av.load(name), SIZES[name]
    if size is None:
        return data
    return data.take(np.random.default_rng(0).permutation(data.N)[:size])


def is_default(model: str, choice: dict[str, Any]) -> bool:
    """Whether the form is the model's default one; the kernel follows the data."""
    hypers = ZOO[model].Hypers()
    return all(getattr(hypers, k) == v for k, v in choice.items() if k != "kernel")


def measure(problem: Any, settings: argparse.Namespace) -> dict[str, Any]:
    tree = av.fit(
        problem,
        "nuts",
        draws=settings.draws,
        chains=settings.chains,
        tune=settings.tune,
        random_seed=settings.seed,
        progressbar=False,
        keep="shared",
    )
    row = compare({"nuts": tree}).table.loc["nuts"]
    import arviz_stats

    eta = tree["posterior"].to_dataset()[["eta"]]
    ess = float(arviz_stats.ess(eta, method="bulk")["eta"].min())
    return {
        "status": tree.attrs["status"],
        "seconds_compile": round(row["seconds_compile"], 1),
        "seconds_run": round(row["seconds_run"], 1),
        "rhat_eta": round(row["rhat_eta"], 4),
        "ess_eta": round(ess),
        "ess_per_second": round(ess / row["seconds_run"], 1),
        "divergences": int(row["divergences"]),
        "tree_depth": round(float(tree["sample_stats"]["tree_depth"].mean()), 2),
    }


def sample(settings: argparse.Namespace) -> None:
    path = settings.out / "rows.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    asked = {k: str(getattr(settings, k)) for k in ("draws", "tune", "chains", "seed")}
    done = {}
    if path.exists():
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                if all(row[k] == v for k, v in asked.items()):
                    done[row["row"], row["fingerprint"]] = row
    header = ("", "compile s", "run s", "first try", "R-hat", "ESS", "ESS/s", "div", "depth")
    print(LINE.format(*header) + "   (* default form)", flush=True)
    datasets: dict[str, Dataset] = {}
    for name, model, data, choice in rows():
        if not any(fnmatch(name, pattern) for pattern in settings.only):
            continue
        datasets[data] = datasets.get(data) or load(data)
        problem = av.problem(model, datasets[data], **choice)
        row = done.get((name, problem.fingerprint))
        if row is None:
            kernel = choice.get("kernel", "none")
            row = {
                "row": name,
                "default": "*" if is_default(model, choice) else "",
                "fingerprint": problem.fingerprint,
                "first_try": FIRST_TRIES.get(f"{model}-{data}-{kernel}", ""),
                **asked,
                **measure(problem, settings),
            }
            new = not path.exists()
            with path.open("a", newline="") as file:  # a line is written at once
                writer = csv.DictWriter(file, COLUMNS)
                if new:
                    writer.writeheader()
                writer.writerow(row)
        shown = (
            "seconds_compile", "seconds_run", "first_try", "rhat_eta", "ess_eta", "ess_per_second",
            "divergences", "tree_depth",
        )  # fmt: skip
        print(LINE.format(name + row["default"], *(str(row[k]) for k in shown)), flush=True)


# --- memory of one gradient -----------------------------------------------------------------------


def resident(what: str) -> float:
    """Return resident memory ("VmRSS") or its peak ("VmHWM") in MB, from Linux."""
    text = Path("/proc/self/status").read_text()
    return next(float(x.split()[1]) for x in text.splitlines() if x.startswith(what)) / 1024.0


def peak_of(call: Callable[[], Any]) -> float:
    """Return the memory in MB that a call needs at its peak, beyond what is resident before."""
    Path("/proc/self/clear_refs").write_text("5")  # sets the peak to what is resident now
    before = resident("VmRSS")
    call()
    return resident("VmHWM") - before


def gradient_memory(N: int, D: int, model: str, kernel: str) -> None:
    """Print the memory of one compiled gradient, and of one (N, N, D) array, measured alike."""
    rng = np.random.default_rng(0)
    degree = {"degree": 2} if kernel == "polynomial" else {}
    data = (rng.normal(size=(N, D)), np.arange(N) % 2)
    problem = av.problem(model, data, kernel=kernel, **degree)
    gradient = problem.model.compile_dlogp()
    start = problem.model.initial_point()
    gradient(start)  # compiles, which has a peak of its own
    found, cube = peak_of(lambda: gradient(start)), peak_of(lambda: np.ones((N, N, D)))
    print(
        f"{model:<8} {kernel:<11} N = {N:>3}, D = {D:>4}: a gradient {found:6.1f} MB, "
        f"an (N, N, D) array {cube:6.1f} MB, an (N, N) one {N * N * 8 / 2**20:.1f} MB",
        flush=True,
    )


def memory() -> None:
    for N, D in ((400, 40), (100, 2000)):
        for model in ("pfcvm", "jcfo"):
            for kernel in ("rbf", "polynomial"):
                # a process for each, so that peaks do not add up
                code = f"gradient_memory({N}, {D}, {model!r}, {kernel!r})"
                command = f"from benchmarks.nuts_models import gradient_memory; {code}"
                subprocess.run([sys.executable, "-c", command], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=["*"], help="patterns of rows, or memory")
    parser.add_argument("--out", type=Path, default=Path("results/nuts_models"))
    parser.add_argument("--list", action="store_true", help="print the names of the rows")
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--tune", type=int, default=1000)
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    settings = parser.parse_args()
    if settings.list:
        print("\n".join(name for name, *_ in rows()))
        return
    if settings.only != ["memory"]:
        sample(settings)
    if "*" in settings.only or "memory" in settings.only:
        memory()


if __name__ == "__main__":
    main()
