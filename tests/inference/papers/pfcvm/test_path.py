"""PFCVM's pruning by theta itself (footnote 3), and the path that a fit keeps."""

import numpy as np
import pytest

from ardvark.inference.papers.pfcvm import engine as pfcvm_engine
from tests.inference.papers.pfcvm.dense import details_of, fit, make

NEVER = {"feature_threshold": np.inf}
METHODS = pytest.mark.parametrize("method", ["pfcvm_lp", "pfcvm_em"])


def path_of(problem, method="pfcvm_lp", **options):
    """Return theta (state, D) along the path, and all that the fit stores."""
    d = details_of(fit(problem, method, path=True, draws=2, chains=1, **options))
    return d["path_feature_weight"], d


@METHODS
def test_what_is_below_the_floor_is_gone_in_the_next_iteration(method):
    """Nothing else prunes: a state has the features at the floor or above before. Fixed data."""
    floor = 0.05
    theta, d = path_of(
        make(N=20, D=8, generator=np.random.default_rng),
        method,
        feature_floor=floor,
        max_iterations=12,
        tolerance=1e-12,
        **NEVER,
    )
    assert len(theta) > 2
    np.testing.assert_array_equal(theta[1:] != 0.0, theta[:-1] >= floor)
    assert 0 < d["features_kept"][-1] < 8
    np.testing.assert_array_equal(d["features_kept"], np.count_nonzero(theta, axis=1))
    assert (d["samples_kept"] == 20).all()
    gone = np.flatnonzero(theta[-1] == 0.0)
    at = d["feature_pruned_at"][gone]
    assert ((theta[at - 1, gone] < floor) & (theta[at - 1, gone] != 0.0)).all()


def test_a_floor_of_0_removes_what_is_negative(monkeypatch):
    """On fixed data, where modes become negative; without a floor they stay and may return."""
    problem = make(N=20, D=8, generator=np.random.default_rng)
    monkeypatch.setattr(pfcvm_engine, "SMOOTHING", 0.3)
    settings = {"max_iterations": 8, "tolerance": 1e-12} | NEVER
    free, _ = path_of(problem, **settings)
    assert (free < 0.0).any()
    theta, _ = path_of(problem, feature_floor=0.0, **settings)
    np.testing.assert_array_equal(theta[1:] != 0.0, theta[:-1] > 0.0)
    assert np.count_nonzero(theta[-1]) < 8 == np.count_nonzero(free[-1])


def test_a_floor_does_not_touch_a_fixed_theta():
    with_floor, _ = path_of(make("pcvm", N=16, D=5), feature_floor=10.0)
    without, _ = path_of(make("pcvm", N=16, D=5))
    np.testing.assert_array_equal(with_floor, without)
    assert (with_floor > 0.0).all()
