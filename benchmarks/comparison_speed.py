"""What a comparison costs where features are many: time, memory, and the size of its page.

    python -m benchmarks.comparison_speed

Four sets of 4 x 1000 draws of RFVM at 62 x 2000: two are prior draws, called chains, the others
such draws with smaller weights, called approximations. The cost does not depend on what they hold.
"""

import resource
import tempfile
import time
from pathlib import Path

import numpy as np

import ardvark as av

CHAINS, DRAWS = 4, 1000


def drawn(problem: av.Problem, seed: int, scale: float) -> dict[str, np.ndarray]:
    """Return draws (chain, draw, ...) of the prior, weights of features scaled."""
    rng = np.random.default_rng(seed)
    points = [problem.simulate(rng) for _ in range(CHAINS * DRAWS)]
    names = ("feature_weight", "sample_weight", "bias", "tau")
    arrays = {name: np.array([point[name] for point in points]) for name in names}
    arrays["feature_weight"] *= scale
    return {name: x.reshape(CHAINS, DRAWS, *x.shape[1:]) for name, x in arrays.items()}


def main() -> None:
    """Print seconds of the processor, the peak of memory and the size of the page."""
    rng = np.random.default_rng(0)
    problem = av.problem("rfvm", (rng.normal(size=(62, 2000)), np.arange(62) % 2))
    made = {"nuts": (1, 1.0, "mcmc"), "gibbs": (2, 1.0, "mcmc")}
    made |= {"advi": (3, 0.7, "approximation"), "rfvm_vb": (4, 0.5, "approximation")}
    fits = {
        name: av.adopt(problem, drawn(problem, seed, scale), kind=kind)
        for name, (seed, scale, kind) in made.items()
    }
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    started, process = time.perf_counter(), time.process_time()
    comparison = av.compare(fits, reference="nuts", problem=problem)
    print(
        f"compare: {time.process_time() - process:.1f} s of the processor, "
        f"{time.perf_counter() - started:.1f} s"
    )
    started, process = time.perf_counter(), time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        page = comparison.to_html(Path(folder) / "report.html")
        size = page.stat().st_size / 1e6
    print(
        f"report: {time.process_time() - process:.1f} s of the processor, "
        f"{time.perf_counter() - started:.1f} s, {size:.2f} MB"
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"memory: {peak:.0f} MB at the peak, {held:.0f} MB before the comparison")


if __name__ == "__main__":
    main()
