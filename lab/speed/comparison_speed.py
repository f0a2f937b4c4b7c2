"""What a comparison costs where features are many: time, memory, and the size of its page.

    python -m lab comparison_speed

Four sets of 4 x 1000 draws of RFVM at 62 x 2000: two are prior draws, called chains, the others
such draws with smaller weights, called approximations. The cost does not depend on what they hold.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

import ardvark as av
from lab.records import at_most, table
from lab.script import Measured, Part, seconds
from lab.speed.fits import peak_gb

CHAINS = 4


def drawn(problem: av.Problem, seed: int, scale: float, draws: int) -> dict[str, np.ndarray]:
    """Return draws (chain, draw, ...) of the prior, weights of features scaled."""
    rng = np.random.default_rng(seed)
    points = [problem.simulate(rng) for _ in range(CHAINS * draws)]
    names = ("feature_weight", "sample_weight", "bias", "tau")
    arrays = {name: np.array([point[name] for point in points]) for name in names}
    arrays["feature_weight"] *= scale
    return {name: x.reshape(CHAINS, draws, *x.shape[1:]) for name, x in arrays.items()}


def measure(given: argparse.Namespace) -> Measured:
    """Return seconds, the peak of memory and the size of the page."""
    N, D, draws = (12, 5, 20) if given.quick else (62, 2000, 1000)
    rng = np.random.default_rng(0)
    problem = av.problem("rfvm", (rng.normal(size=(N, D)), np.arange(N) % 2))
    made = {"nuts": (1, 1.0, "mcmc"), "gibbs": (2, 1.0, "mcmc")}
    made |= {"advi": (3, 0.7, "approximation"), "rfvm_vb": (4, 0.5, "approximation")}
    fits = {
        name: av.adopt(problem, drawn(problem, seed, scale, draws), kind=kind)
        for name, (seed, scale, kind) in made.items()
    }
    held, cpu, began = peak_gb(), time.process_time(), time.perf_counter()
    comparison = av.compare(fits, reference="nuts", problem=problem)
    clock, cpu = time.perf_counter() - began, time.process_time() - cpu
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        page_clock = seconds(lambda: comparison.to_html(path))
        size = path.stat().st_size / 1e6
    values = {
        "comparison, s": clock, "comparison, processor's s": cpu, "page, s": page_clock,
        "page, MB": size, "peak memory, MB": 1e3 * peak_gb(),
        "before the comparison, MB": 1e3 * held,
    }  # fmt: skip
    what = f"four fits of {CHAINS * draws} draws of RFVM at {N} x {D}"
    return Measured(
        [
            at_most(f"{what} compared", clock, 30.0, "s"),
            at_most("peak memory", peak_gb(), 2.0, "GB"),
            at_most("size of the page", size, 3.0, "MB"),
        ],
        [table("", [{"what": k, "value": v} for k, v in values.items()], {"value": ".2f"})],
    )


MEASURES = (
    "inference/comparison",
    "inference/fits",
    "inference/comparison/report",
    "inference/scoring",
    "inference/comparison/verdicts",
)
PARTS = [Part("A comparison", measure)]
