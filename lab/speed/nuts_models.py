"""NUTS on every continuous model and parametrisation: time, mixing, and memory of a gradient.

    python -m lab nuts_models                          everything (ARDVARK_DATA for the data)
    python -m lab nuts_models --only 'pfcvm-*' '*-sonar-*'
    python -m lab nuts_models --only memory

Rows are kept in WORK as they end; a killed run goes on with the same command. Data: `sonar` and
`digits38` shuffled with a fixed seed, their first 100 and 120 rows (rbf kernel), and
`colon_discrete` whole, 62 x 2000 (linear kernels). The goal: R-hat of eta below 1.01 and at most 5
divergences in each model's default form, in no more seconds of sampling than first tries took; and
a gradient that holds no (N, N, D) array.

A bulk ESS is the smallest over the components of eta; ESS per second is of sampling alone.
"""

import argparse
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np

import ardvark as av
from ardvark.data import Dataset
from ardvark.inference.fits import diagnostics
from ardvark.models import ZOO
from lab.records import Goal, at_most, table
from lab.script import Measured, Part, Row, apart, resumed, tiny

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
LIMITS = {"R-hat": 1.01, "divergences": 5}
SHARE = 0.5  # of an (N, N, D) array: a gradient needs less


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
    """Return a data set of `SIZES`, or the tiny one."""
    if name == "tiny":
        return tiny()
    data, size = av.load(name), SIZES[name]
    if size is None:
        return data
    return data.take(np.random.default_rng(0).permutation(data.N)[:size])


def is_default(model: str, choice: dict[str, Any]) -> bool:
    """Whether the form is the model's default one; the kernel follows the data."""
    hypers = ZOO[model].Hypers()
    return all(getattr(hypers, k) == v for k, v in choice.items() if k != "kernel")


def sampled(problem: Any, given: argparse.Namespace) -> Row:
    """Return what one fit costs and how it mixed."""
    tree = av.fit(
        problem,
        "nuts",
        draws=given.draws,
        chains=given.chains,
        tune=given.tune,
        random_seed=given.seed,
        progressbar=False,
        keep="shared",
    )
    eta, stats = tree["posterior"]["eta"], tree["sample_stats"]
    ess = float(diagnostics.ess(eta, "bulk").min())
    return {
        "compile, s": tree.attrs["seconds_compile"],
        "run, s": tree.attrs["seconds_run"],
        "R-hat": float(diagnostics.rhat(eta).max()),
        "ESS": ess,
        "ESS / s": ess / tree.attrs["seconds_run"],
        "divergences": diagnostics.divergences(tree),
        "tree depth": float(stats["tree_depth"].mean()),
        "status": tree.attrs["status"],
    }


def sample(given: argparse.Namespace) -> list[Row]:
    """Return a row for each model, data set and form."""
    asked = {k: getattr(given, k) for k in ("draws", "tune", "chains", "seed")}

    def work() -> Iterator[tuple[Row, Callable[[], Row]]]:
        datasets: dict[str, Dataset] = {}
        listed = [("pfcvm-tiny", "pfcvm", "tiny", {})] if given.quick else rows()
        for name, model, data, choice in listed:
            if not any(fnmatch(name, pattern) for pattern in given.only):
                continue
            datasets[data] = datasets.get(data) or load(data)
            problem = av.problem(model, datasets[data], **choice)
            first = FIRST_TRIES.get(f"{model}-{data}-{choice.get('kernel', 'none')}")
            form = {"default form": "yes" if is_default(model, choice) else "no"}
            key = {"row": name, "fingerprint": problem.fingerprint} | asked
            yield (
                key,
                lambda p=problem, f=form, t=first: f | sampled(p, given) | {"first try, s": t},
            )

    return resumed(given.work / "rows.csv", work())


def goals(found: list[Row]) -> list[Goal]:
    """Return the goals, over the default forms."""
    out, default = [], [row for row in found if row["default form"] == "yes"]
    for what, limit in LIMITS.items():
        missed = [f"{r['row']} {r[what]:.5g}" for r in default if not r[what] <= limit]
        text = f"{len(default) - len(missed)} of {len(default)}"
        text += f"; missed: {', '.join(missed)}" if missed else ""
        out.append(Goal(f"{what} at most {limit} in every default form", text, not missed))
    for row in default:
        if row["first try, s"] is not None:
            out.append(at_most(f"{row['row']}: sampling", row["run, s"], row["first try, s"], "s"))
    return out


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


def gradient_memory(N: int, D: int, model: str, kernel: str) -> Row:
    """Return the memory of one compiled gradient, and of one (N, N, D) array, measured alike."""
    rng = np.random.default_rng(0)
    degree = {"degree": 2} if kernel == "polynomial" else {}
    data = (rng.normal(size=(N, D)), np.arange(N) % 2)
    problem = av.problem(model, data, kernel=kernel, **degree)
    gradient = problem.model.compile_dlogp()
    start = problem.model.initial_point()
    gradient(start)  # compiles, which has a peak of its own
    found, cube = peak_of(lambda: gradient(start)), peak_of(lambda: np.ones((N, N, D)))
    return {
        "model": f"{model} {kernel}",
        "size": f"{N} x {D}",
        "a gradient, MB": found,
        "an (N, N, D) array, MB": cube,
        "an (N, N) one, MB": N * N * 8 / 2**20,
    }


def memory(quick: bool) -> list[Row]:
    """Return a row for each size, model and kernel, in a process of its own each."""
    if quick:
        return [gradient_memory(14, 3, "pfcvm", "linear")]
    return [
        apart(gradient_memory, N, D, model, kernel)
        for N, D in ((400, 40), (100, 2000))
        for model in ("pfcvm", "jcfo")
        for kernel in ("rbf", "polynomial")
    ]


def measure(given: argparse.Namespace) -> Measured:
    """Sample, and measure memory, where asked."""
    if given.quick:
        given.draws, given.tune, given.chains = 30, 30, 2
    out = Measured()
    if given.only != ["memory"]:
        found = sample(given)
        hidden = ("fingerprint", "draws", "tune", "chains", "seed")
        shown = [{k: v for k, v in row.items() if k not in hidden} for row in found]
        formats = {"compile, s": ".1f", "run, s": ".1f", "R-hat": ".4f", "ESS": ".0f",
                   "ESS / s": ".1f", "tree depth": ".2f"}  # fmt: skip
        title = f"{given.chains} x ({given.tune} + {given.draws}) draws"
        out.goals += goals(found)
        out.tables.append(table(title, shown, formats))
    if "*" in given.only or "memory" in given.only:
        rows = memory(given.quick)
        out.tables.append(
            table("Memory of a gradient", rows, {k: ".1f" for k in rows[0] if "MB" in k})
        )
        least = min(r["an (N, N, D) array, MB"] for r in rows)
        worst = max(r["a gradient, MB"] for r in rows)
        out.goals.append(at_most("memory of a gradient", worst, SHARE * least, "MB"))
    return out


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", nargs="+", default=["*"], help="patterns of rows, or memory")
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--tune", type=int, default=1000)
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)


MEASURES = ("inference/contract/density.py", "inference/generic/nuts.py", "models")
PARTS = [Part("NUTS on every continuous model", measure)]
