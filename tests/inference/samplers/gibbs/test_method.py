"""What every exact Gibbs sampler shares: how sweeps become stored draws."""

import numpy as np
import pytest

import ardvark as av
from tests.support import rng


def test_a_thinned_chain_is_every_so_many_th_sweep_of_the_same_chain():
    X = rng(0).normal(size=(20, 3))
    problem = av.problem("fsklr", (X, X[:, 0] > 0))
    given = {"chains": 2, "tune": 3, "random_seed": 1, "progressbar": False}
    every = av.fit(problem, "gibbs", draws=6, **given)["posterior"]  # by default each sweep
    third = av.fit(problem, "gibbs", draws=2, thin=3, **given)["posterior"]
    for name, x in third.data_vars.items():
        np.testing.assert_array_equal(x.values, every[name].values[:, 2::3], err_msg=name)
    assert (every["eta"].values[:, 1:] != every["eta"].values[:, :-1]).any()


@pytest.mark.parametrize(
    ("model", "hypers"),
    [
        ("fsklr", {"mask_probability": "explicit"}),
        ("jcfo", {}),
        ("pfcvm", {}),
        ("rfvm", {"parametrization": "hierarchical"}),
        ("pfcvm", {"kernel": "rbf"}),
        ("sparse_probit", {}),
    ],
)
def test_lp_has_the_jacobian(model, hypers):
    """Of the unconstrained vector: without transforms the Jacobian would be the same everywhere."""
    X = rng(0).normal(size=(12, 3))
    problem = av.problem(model, (X, X[:, 0] > 0), **hypers)
    given = {"chains": 2, "tune": 3, "draws": 5, "random_seed": 1, "progressbar": False}
    tree = av.fit(problem, "gibbs", **given)
    point = {str(k): v.values for k, v in tree["posterior"].data_vars.items()}
    jacobian = problem.spec.log_jacobian(point, problem.hypers)
    assert np.ptp(jacobian) > 0.1
    found = tree["sample_stats"]["lp"].values
    np.testing.assert_allclose(found, problem.log_joint(point) + jacobian, rtol=1e-10)
