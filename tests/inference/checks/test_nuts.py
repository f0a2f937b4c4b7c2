"""NUTS and the models under the joint tests and simulation-based calibration."""

import numpy as np
import pytensor
import pytest

import ardvark as av
from ardvark.inference.checks import sbc as cal
from ardvark.inference.checks.joint import NutsKernel, joint_test
from ardvark.inference.target.density import Density
from ardvark.inference.target.target import Target
from ardvark.models import ZOO
from tests.inference.checks.toy import sbc
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
def nuts():
    """A kernel of PCVM, whose step runs without Numba: the tests call it too rarely to compile."""
    problem = make("pcvm", N=6, D=2)
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        return problem, NutsKernel(problem)


def test_the_nuts_kernel_starts_exactly_at_a_point(nuts):
    problem, kernel = nuts
    point = problem.simulate(rng(0))
    again = kernel.point(kernel.state(point))
    for name in ("bias", "w", "sample_weight", "feature_weight", "eta"):
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


def no_labels(kernel):
    return Changed(kernel, set_labels=lambda *_: None)


def labels_in_the_basis(kernel):
    return Changed(kernel, set_labels=lambda y, s: kernel.set_labels(y, 2.0 * y - 1.0))


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("wrong", "replicates"), [(None, 120), (no_labels, 60), (labels_in_the_basis, 160)]
)
def test_joint_test_of_nuts(nuts, wrong, replicates):
    """PCVM is calibrated at basis labels drawn by themselves, not at those of the data."""
    problem, kernel = nuts
    used = kernel if wrong is None else wrong(kernel)
    settings = {"sweeps": 5, "references": 49, "random_seed": seed()}
    found = joint_test(problem, lambda _: used, replicates=replicates, **settings)
    assert found.failed == 0
    assert (found.p_value > ALARM) == (wrong is None), found.table.head()


def test_fits_at_other_labels_share_one_compilation(monkeypatch):
    """The compiled density is made once, and the labels of each problem are handed over.

    Where all labels are 1 it is larger by the sum of eta than where all are 0.
    """
    compiled, right = [], Density.__init__
    monkeypatch.setattr(Density, "__init__", lambda *a: compiled.append(1) or right(*a))
    problem, values = make("horseshoe", N=6, D=2, parametrization="marginal"), []
    for label in (1, 0, 1):
        density = Target(cal.relabelled(problem, np.full(6, label), None)).density
        x = np.linspace(-1.0, 1.3, density.size)
        values.append(density.logp_grad(x)[0])
    assert len(compiled) == 1
    model = problem.fitted_model
    (eta,) = density.interpreted(model.replace_rvs_by_values([model["eta"]]))(x)
    assert values[0] - values[1] == pytest.approx(eta.sum(), rel=1e-9)
    assert values[0] == values[2]
    assert abs(eta.sum()) > 0.1


# --- the full sizes -------------------------------------------------------------------------------

CONTINUOUS = [n for n in ZOO if n not in ("fsklr", "sklr", "fs_skr")]
FORMS = [
    pytest.param(n, c, id="-".join([n, *c.values()])) for n in CONTINUOUS for c in ZOO[n].choices()
]


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(("name", "choice"), FORMS)
def test_a_kernel_leaves_every_posterior_invariant(name, choice):
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
def test_rederived_basis_labels_are_not_calibrated(name, monkeypatch):
    """Over three seeds each, -log10 p is 18 to 26, and the limit is at 5.5."""
    right = cal.relabelled
    monkeypatch.setattr(cal, "relabelled", lambda problem, y, _: right(problem, y, 2.0 * y - 1.0))
    settings = {"replicates": 150, "tune": 300, "cores": 1, "random_seed": seed()}
    found = sbc(make(name, N=10), "nuts", **settings)
    assert found.failed == 0
    assert found.p_value < ALARM
