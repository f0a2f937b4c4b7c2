"""NUTS and the models under the joint tests and simulation-based calibration."""

import numpy as np
import pytest

import ardvark as av
from ardvark.inference.calibration import sbc as cal
from ardvark.inference.calibration.joint import NutsKernel, joint_test, successive_conditional
from ardvark.inference.contract.density import Density
from ardvark.models import ZOO
from tests.inference.calibration.toy import sbc
from tests.support import ALARM, rng, seed


def make(name, N=8, D=3, **hypers):
    """A problem of fixed inputs, whatever the run's seeds: the powers stated below are theirs.

    Its labels are of no use here, but for the basis.
    """
    X = np.random.default_rng(11).normal(size=(N, D))
    return av.problem(name, (X, np.arange(N) % 2), **hypers)


class Changed:
    """A kernel with one method replaced; it shares the compiled step of another."""

    def __init__(self, kernel, **methods):
        self._kernel = kernel
        self.__dict__.update(methods)

    def __getattr__(self, name):
        return getattr(self._kernel, name)


@pytest.fixture(scope="module")
def probit_kernel():
    problem = make("sparse_probit", N=6, D=2, parametrization="marginal")
    return problem, NutsKernel(problem)


@pytest.fixture(scope="module")
def pcvm_kernel():
    problem = make("pcvm")
    return problem, NutsKernel(problem)


def test_the_nuts_kernel_starts_exactly_at_a_point(probit_kernel):
    problem, kernel = probit_kernel
    point = problem.simulate(rng(0))
    again = kernel.point(kernel.state(point))
    for name in ("bias", "beta", "feature_weight", "eta"):
        np.testing.assert_allclose(again[name], point[name], rtol=1e-13)
    # the same stream, the same chain; the problem's own model keeps its labels
    ends = []
    for _ in range(2):
        generator, state = rng(1), kernel.state(point)
        kernel.set_labels(1 - problem.y)
        for _ in range(3):
            kernel.sweep(state, generator)
        ends.append(kernel.point(state)["eta"])
    np.testing.assert_array_equal(*ends)
    assert not np.array_equal(ends[0], point["eta"])
    np.testing.assert_array_equal(problem.model["label"].get_value(), problem.y)


@pytest.mark.statistical
@pytest.mark.parametrize("wrong", ["", "labels never arrive", "scale"])
def test_joint_test_of_nuts(probit_kernel, wrong):
    """Over six seeds -log10 p is 140 without the labels, and 96 at a quarter of the prior's scale.

    Their standard deviations are 11 and 4, and the limit is at 5.5.
    """
    problem, kernel = probit_kernel
    used = Changed(kernel, set_labels=lambda y: None) if "labels" in wrong else kernel
    settings = {"replicates": 300, "sweeps": 5, "references": 49, "random_seed": seed()}
    gamma1 = problem.hypers.gamma1
    try:
        kernel._model.set_data("gamma1", 16.0 * gamma1 if wrong == "scale" else gamma1)
        found = joint_test(problem, lambda _: used, **settings)
    finally:
        kernel._model.set_data("gamma1", gamma1)
    assert found.failed == 0
    assert (found.p_value > ALARM) == (not wrong)


@pytest.mark.statistical
def test_successive_conditional_of_nuts(probit_kernel):
    problem, kernel = probit_kernel
    settings = {"iterations": 1000, "references": 2000, "random_seed": seed()}
    table = successive_conditional(problem, kernel, **settings)
    assert table["holm"].iloc[0] > ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("wrong", [False, True])
def test_basis_labels_that_follow_y_are_caught(pcvm_kernel, wrong):
    """PCVM is calibrated at basis labels drawn by themselves, not at those of the data.

    Over six seeds -log10 p is then 39 on average, 31 at least, and the limit is at 5.5.
    """
    problem, kernel = pcvm_kernel
    follow = Changed(kernel, set_labels=lambda y, s: kernel.set_labels(y, 2.0 * y - 1.0))
    settings = {"replicates": 300, "sweeps": 5, "references": 49, "random_seed": seed()}
    found = joint_test(problem, lambda _: follow if wrong else kernel, **settings)
    assert found.failed == 0
    assert (found.p_value > ALARM) == (not wrong)


@pytest.mark.statistical
def test_fits_at_other_labels_share_one_compilation(monkeypatch):
    """The compiled density is made once, and the labels of each problem are handed over.

    With six labels of one class the mean of eta has their sign: over ten seeds its size is 1.6 to
    1.9, seventeen Monte Carlo errors.
    """
    compiled, right = [], Density.__init__
    monkeypatch.setattr(Density, "__init__", lambda *a: compiled.append(1) or right(*a))
    problem = make("sparse_probit", N=6, D=2, parametrization="marginal")
    for label in (1, 0, 1):
        one_class = cal.relabelled(problem, np.full(6, label), None)
        tree = av.fit(
            one_class, "nuts", draws=200, chains=2, random_seed=seed(label), progressbar=False
        )
        assert np.sign(float(tree["posterior"]["eta"].mean())) == 2 * label - 1
    assert len(compiled) == 1


# --- the full sizes -------------------------------------------------------------------------------

CONTINUOUS = [n for n in ZOO if n not in ("fsklr", "sklr", "fs_skr")]
FORMS = [
    pytest.param(n, c, id="-".join([n, *c.values()])) for n in CONTINUOUS for c in ZOO[n].choices()
]


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(("name", "choice"), FORMS)
def test_nuts_leaves_every_posterior_invariant(name, choice):
    """Every form of every continuous model: 1000 replicates see 0.2 sd, or a factor of 1.2."""
    found = joint_test(make(name, N=10, **choice), NutsKernel, replicates=1000, random_seed=seed())
    assert found.failed == 0
    assert found.p_value > ALARM, found.table.head()


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("name", CONTINUOUS)
def test_nuts_is_calibrated(name):
    settings = {"replicates": 300, "tune": 300, "cores": 1, "random_seed": seed()}
    found = sbc(make(name, N=10), "nuts", **settings)
    assert found.failed == 0
    assert found.p_value > ALARM, found.table.head()


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("name", ["pfcvm", "pcvm"])
def test_rederived_basis_labels_are_not_calibrated(name):
    """Over three seeds each, -log10 p is 18 to 26, and the limit is at 5.5."""
    settings = {"replicates": 150, "tune": 300, "cores": 1, "random_seed": seed()}
    found = sbc(make(name, N=10), "nuts", basis_labels="rederived", **settings)
    assert found.failed == 0
    assert found.p_value < ALARM
