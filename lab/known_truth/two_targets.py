"""JCFO, FS-SKLR and a plain spike and slab where the truth is known: a linear and a curved target."""

import argparse
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import optimize, special

import ardvark as av
from lab import tables
from lab.known_truth import known_truth
from lab.known_truth.known_truth import BAYES_ACCURACY, EXACT, Cell, Found, Method, Truth, Zoo
from lab.known_truth.report import pm
from lab.known_truth.results import ESS, Results
from lab.yardsticks import spike_and_slab

HERE = Path(__file__).parent


SETS = 10
CELLS = [Cell(100, 20, correlation, 3) for correlation in (0.0, 0.5)]


def curved(cell: Cell, data_set: int) -> Truth:
    """Return a data set whose decision value is a weighted sum of squares, less its median."""
    linear = known_truth.simulate(cell, data_set)
    c = np.abs(linear.w)
    shape = [X**2 @ c for X in (linear.X, linear.X_new)]
    middle = np.median(shape[1])

    def right(s: float) -> float:
        return float(special.expit(s * np.abs(shape[1] - middle)).mean()) - BAYES_ACCURACY

    s = optimize.brentq(right, 1e-3, 1e3)
    rng = np.random.default_rng([70, data_set, round(100 * cell.correlation)])
    p, best = (special.expit(s * (x - middle)) for x in shape)
    y, y_new = ((rng.random(len(x)) < x).astype(int) for x in (p, best))
    return Truth(linear.X, y, linear.X_new, y_new, s * c, best)


TARGETS = {"linear": (known_truth.simulate, 1), "curved": (curved, 2)}
"""What draws a target's data sets, and the degree of JCFO's kernel."""
TUNED = {"select": "holdout_open", "starts": 1}


def jcfo(truth: Truth, seed: int, degree: int) -> Found:
    """Sample JCFO's posterior at the gammas that its own algorithm chooses."""
    problem = av.problem("jcfo", (truth.X, truth.y), scale="fixed", degree=degree)
    found = av.fit(problem, "jcfo_em", random_seed=seed, progressbar=False, **TUNED)["fit"]
    chosen = {name: float(found[name]) for name in ("gamma1", "gamma2")}
    return Zoo("jcfo", "exact", {"scale": "fixed", "degree": degree, **chosen}, EXACT)(truth, seed)


def plain(truth: Truth, seed: int) -> Found:
    """Sample the spike and slab; P is that of a bit."""
    center, scale = truth.X.mean(0), truth.X.std(0)
    found = spike_and_slab.sample((truth.X - center) / scale, truth.y, seed, ess=ESS)
    w = found.weight.reshape(-1, len(truth.w))
    eta = found.bias.reshape(-1, 1) + w @ ((truth.X_new - center) / scale).T
    p = (w != 0.0).mean(axis=0)
    facts = {
        "status": "finished" if found.finished else "not_converged",
        "iterations": 2 * found.weight.shape[1], "rhat": found.rhat,
    }  # fmt: skip
    return Found(np.abs(w).mean(0), p > 0.5, p, None, special.expit(eta).mean(0), facts)


def methods(degree: int) -> dict[str, Method]:
    """Return the methods of a target."""
    own = {"a_z": 0.5, "a_zeta": 0.5, "mask_prior": "printed"}
    kernel = {"scale": "fixed", "degree": degree}
    return {
        "jcfo_em": Zoo("jcfo", "jcfo_em", kernel, TUNED),
        "jcfo, exact": partial(jcfo, degree=degree),
        "fsklr_savb": Zoo("fsklr", "fsklr_savb", own, {"gram": "whole"}, bits=True),
        "fsklr, exact": Zoo("fsklr", "exact", options=EXACT, bits=True),
        "spike and slab": plain,
        "horseshoe, exact": Zoo("horseshoe", "exact", options=EXACT),
        "L1": known_truth.lasso,
    }
