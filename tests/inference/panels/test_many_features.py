"""The panel that is suggested, on data whose five true features are known among 300: exact fits."""

import numpy as np
import pytest
from scipy import special, stats

import ardvark as av
from ardvark.inference.panels.projection import design
from tests.support import ALARM, rng, seed

EFFECTS = (2.0, -2.0, 1.5, -1.5, 1.5)
RUNS, OFTEN = 10, 0.95


def met(number):
    """Return whether a suggested panel is small, and predicts fresh rows as the posterior does."""
    g = rng(1000 + number)
    X = g.normal(size=(1150, 300))
    y = (g.uniform(size=1150) < special.expit(X[:, :5] @ EFFECTS)).astype(int)
    problem = av.problem("sparse_probit", X[:150], y[:150])
    asked = {"random_seed": seed(number), "keep": "shared", "progressbar": False}
    fit = av.fit(problem, "exact", **asked)
    panel = av.panel(problem, fit, progressbar=False)
    fresh = problem.data.from_arrays(X[150:], y[150:])
    full = av.predict(problem, fit, fresh).mean(("chain", "draw")).values
    there = problem.at(fresh.X)
    own = panel.predictions.submodel(panel.features)
    p = own.probability(design(there.X[:, panel.features], there.C))
    apart = np.log(np.where(fresh.y == 1, p, 1.0 - p))
    apart -= np.log(np.where(fresh.y == 1, full, 1.0 - full))
    return len(panel.names) <= 8 and apart.mean() >= -apart.std(ddof=1) / np.sqrt(len(apart))


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.statistical
def test_a_suggested_panel_is_small_and_predicts_as_the_posterior_does():
    """At most eight features and at most one standard error below: so in 21 of 22 runs.

    The rule that compares with the full posterior alone fails in 17 of these, so that this test
    sees it with probability 0.9.
    """
    misses = sum(not met(number) for number in range(RUNS))
    assert misses <= stats.binom.isf(ALARM, RUNS, 1.0 - OFTEN)
