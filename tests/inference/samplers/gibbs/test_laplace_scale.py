"""Why a learned scale is the default of JCFO and sparse probit: thousands of features."""

import numpy as np
import pytest

import ardvark as av
from tests.support import rng, seed


def of_genes(model, **given):
    """P(y = 1) of 100 new rows, of which 60 have y = 0: 2000 features, of which 20 are shifted."""
    y = np.tile([0, 0, 0, 1, 1], 32)
    X = rng(8).standard_normal((len(y), 2000))
    X[:, :20] += 1.5 * (2 * y[:, None] - 1)
    problem, quiet = av.problem(model, X[:60], y[:60], **given), {"progressbar": False}
    length = {"draws": 100, "tune": 150, "chains": 2, "selection": False, "keep": "shared"}
    fit = av.fit(problem, "gibbs", random_seed=seed(8), **length, **quiet)
    return av.predict(problem, fit, X[60:]).mean(("chain", "draw")).values, y[60:]


@pytest.mark.statistical
def test_by_default_jcfo_tells_classes_apart_among_thousands_of_features():
    """Some 98 of 100 rows are right, and at the fixed scale the largest P(y = 1) is 0.41."""
    p, y = of_genes("jcfo")
    assert ((p > 0.5) == y).mean() > 0.85
    p, y = of_genes("jcfo", scale="fixed")
    assert (p < 0.5).all()


@pytest.mark.statistical
def test_by_default_sparse_probit_is_surer_of_what_is_plain():
    """The log scores are near -0.48 and -0.54; both classify nearly all rows right."""
    default, fixed = (of_genes("sparse_probit", **x) for x in ({}, {"scale": "fixed"}))
    scores = [np.log(np.where(y == 1, p, 1.0 - p)).mean() for p, y in (default, fixed)]
    assert scores[0] > scores[1] + 0.02
