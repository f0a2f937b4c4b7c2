"""The transition of MAMS, and the models on which it moves, under the joint test."""

import pytest

from ardvark.inference.calibration.joint import joint_test
from ardvark.inference.calibration.mams_kernel import MamsKernel
from tests.inference.calibration.test_nuts import FORMS, Changed, make
from tests.support import ALARM, seed


@pytest.fixture(scope="module")
def kernel():
    problem = make("sparse_probit", N=6, D=2, parametrization="marginal")
    return problem, MamsKernel(problem)


@pytest.mark.statistical
@pytest.mark.parametrize("wrong", [False, True])
def test_joint_test_of_mams(kernel, wrong):
    """Labels that never arrive are caught: over six seeds -log10 p is 117 to 144, the limit at 5.5.

    In three dimensions the Metropolis step corrects too little to be seen here. `test_mams` has a
    control for it.
    """
    problem, used = kernel
    used = Changed(used, set_labels=lambda y: None) if wrong else used
    settings = {"replicates": 300, "sweeps": 5, "references": 49, "random_seed": seed()}
    found = joint_test(problem, lambda _: used, **settings)
    assert found.failed == 0
    assert (found.p_value > ALARM) == (not wrong)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(("name", "choice"), FORMS)
def test_mams_leaves_every_posterior_invariant(name, choice):
    """Every form of every continuous model: 1000 replicates see 0.2 sd, or a factor of 1.2."""
    found = joint_test(make(name, N=10, **choice), MamsKernel, replicates=1000, random_seed=seed())
    assert found.failed == 0
    assert found.p_value > ALARM, found.table.head()
