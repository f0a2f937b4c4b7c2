"""Run the released RFVM program once. This file is a process of its own: see `authors.py`.

    python authors_program.py FOLDER JOB.npz OUT.npz

FOLDER has the authors' `RFVM_prune_elbo_dep.py`. Nothing of ours is imported, and the program is
not changed. Two things around it are: `scipy.linalg.pinv` is given back the keyword `rcond`, which
SciPy has dropped since (the program catches the error and then never updates q(a)); and what it
prints for every iteration goes nowhere.
"""

import contextlib
import inspect
import io
import sys
import warnings
from typing import Any

import numpy as np
from scipy import linalg

EXAMPLE = {"prune": 1, "pruning_crit": 0.01, "prune_a": 1, "pruning_crit_a": 0.001, "tol": 1e-5}
"""The settings of the released example, with at most 5000 iterations."""


def give_back_rcond() -> None:
    """Let `scipy.linalg.pinv` take `rcond`, a share of the largest singular value, once more."""
    now = linalg.pinv
    if "rcond" not in inspect.signature(now).parameters:
        linalg.pinv = lambda a, rcond: now(a, rtol=rcond)


def states_of(model: Any) -> list[dict[str, np.ndarray]]:
    """Return a list that gets the program's q after each of its iterations, and before the first.

    A state is noted where the program asks for its predictions, once an iteration; it has the
    means of v and a at full size, with zeros for what is pruned.
    """
    states, update = [], model.update

    def note() -> None:
        q, v, a = model.q_dist, np.zeros(model.K_dep), np.zeros(model.N)
        v[model.index], a[model.index_a] = q.V["mean"].ravel(), q.A["mean"].ravel()
        b, tau = (np.asarray(x).item() for x in (q.b["mean"], q.tau_mean()))
        states.append({"v": v, "a": a, "bias": np.asarray(b), "tau": np.asarray(tau)})

    def updated() -> None:
        if not states:
            note()
        update()
        note()

    model.update = updated
    return states


def main(code: str, job: str, out: str) -> None:
    """Fit the training rows of a job; store how the program ended, and its P(y = 1)."""
    give_back_rcond()
    sys.path.insert(0, code)
    import RFVM_prune_elbo_dep as program  # type: ignore[import-not-found]

    given = np.load(job)
    np.random.seed(int(given["seed"]))  # noqa: NPY002 (the program draws its start from it)
    model = program.LR_ARD()
    states = states_of(model) if given["trace"] else []
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = (given[name] for name in ("X", "y", "X_test", "y_test"))
        model.fit(*data, maxit=int(given["iterations"]), **EXAMPLE)
    found: dict[str, Any] = {
        "bound": np.array(model.L, dtype=float).ravel(),
        "features": model.index,
        "samples": model.index_a,
        "count_features": model.num_feat,
        "count_samples": model.num_sample,
        "label": np.asarray(model.labs_final[len(model.L) - 1]).ravel(),
        "probability": np.asarray(model.labels_pred[-1], dtype=float).ravel(),
    }
    for name in states[0] if states else ():
        found[name] = np.array([state[name] for state in states])
    np.savez(out, **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
