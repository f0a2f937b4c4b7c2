"""Are the public results what they were, bit by bit? One hash for one fit of each method.

    python -m lab.same_results                   # print the hashes
    python -m lab.same_results --save FILE       # before a change that must move no number
    python -m lab.same_results --against FILE    # after it: exit 1 if a hash differs

A hash covers every array of the fit, its predictions at new rows and its row of the comparison.
Run both sides on one machine with one cache of compiled code: a newly compiled sampler may round
otherwise, and draws are chaotic.
"""

import argparse
import hashlib
import json
import sys
from pathlib import Path

import numpy as np

import ardvark as av
from ardvark.inference.fits.datatree import group, pointwise
from ardvark.inference.samplers.gibbs.method import SAMPLER_OF
from lab import problems

FITS = (
    ("rfvm", "nuts"),
    ("rfvm", "advi"),
    ("rfvm", "laplace"),
    ("rfvm", "rfvm_vb"),
    ("pfcvm", "nuts"),
    ("pfcvm", "pfcvm_lp"),
    ("pfcvm", "pfcvm_em"),
    ("rvm", "pfcvm_lp"),
    ("jcfo", "jcfo_em"),
    *((model, "gibbs") for model in SAMPLER_OF if av.ZOO[model].link != "identity"),
    ("fsklr", "fsklr_savb"),
)


def data(N: int, seed: int) -> av.Dataset:
    """Two classes told apart by two of six features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 6))
    y = (X[:, 0] - X[:, 1] + 0.7 * rng.normal(size=N) > 0).astype(int)
    return av.Dataset.from_arrays(X, np.array(["healthy", "ill"])[y], name="small")


def digest(model: str, method: str) -> str:
    """Return the hash of one fit, its predictions and its scores."""
    problem = problems.problem(model, data(30, 0))
    fit = av.fit(problem, method, draws=60, chains=2, random_seed=7, progressbar=False)
    out = hashlib.sha256()
    for name in ("posterior", "sample_stats", "log_likelihood", "selection", "fit"):
        variables = pointwise(fit) if name == "log_likelihood" else group(fit, name)
        for variable in sorted(variables.data_vars):
            out.update(f"{name}/{variable}".encode())
            out.update(np.ascontiguousarray(variables[variable].values))
    test = data(12, 1)
    out.update(np.ascontiguousarray(av.predict(problem, fit, test.X).values))
    table = av.compare({method: fit}, problem=problem, test=test).table
    timed = [c for c in table.columns if c.startswith("seconds")]
    out.update(table.drop(columns=timed).loc[[method]].to_csv().encode())
    return out.hexdigest()[:16]


def main(words: list[str] | None = None) -> int:
    """Print every hash; compare with those of another run when asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--save", type=Path)
    parser.add_argument("--against", type=Path)
    given = parser.parse_args(words)
    found = {}
    for model, method in FITS:
        found[f"{model} {method}"] = digest(model, method)
        print(f"{model:<8} {method:<11} {found[f'{model} {method}']}", flush=True)
    if given.save:
        given.save.write_text(json.dumps(found, indent=1))
    if given.against is None:
        return 0
    before = json.loads(given.against.read_text())
    moved = [name for name in before if found.get(name) != before[name]]
    print(f"{len(before) - len(moved)} of {len(before)} the same", *moved, sep="\n  ")
    return int(bool(moved))


if __name__ == "__main__":
    sys.exit(main())
