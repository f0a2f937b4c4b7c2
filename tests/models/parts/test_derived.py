"""What a file leaves out is derived from its PyMC model: the same as what the zoo's files say."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

import ardvark as av
from ardvark.common.validate import InputError
from ardvark.inference.methods import own_model
from ardvark.models import ZOO, ModelSpec, horseshoe, pcvm, rvm
from ardvark.models.parts.derived import NAMES
from tests.models import toy_model
from tests.models.forms import make, prior_points, stacked
from tests.support import rng

# forms in which the variables of the PyMC model are the paper's
CASES = {
    "rvm": (rvm, {"parametrization": "marginal"}),
    "pcvm": (pcvm, {"parametrization": "marginal"}),
    "toy": (toy_model, {}),
}


def without(module, *names):
    """Return the file without some of its functions."""
    kept = {n: x for n, x in vars(module).items() if n not in names and not n.startswith("__")}
    return SimpleNamespace(**kept, __doc__=module.__doc__)


@pytest.fixture
def problem_of(monkeypatch):
    def build(spec, **hypers):
        monkeypatch.setitem(ZOO, spec.name, spec)
        return make(spec.name, hypers)

    return build


@pytest.mark.parametrize("case", CASES)
def test_derived_functions_are_those_of_the_file(case, problem_of):
    module, hypers = CASES[case]
    written = problem_of(ModelSpec.of(module), **hypers)
    derived = problem_of(ModelSpec.of(without(module, *NAMES)), **hypers)
    point = stacked(prior_points(written, 6))
    point = {name: x.reshape(2, 3, *x.shape[1:]) for name, x in point.items()}
    ours = derived.log_joint(point)
    assert ours.shape == (2, 3)
    # PyMC may leave constants out, and here leaves out none
    np.testing.assert_allclose(ours, written.log_joint(point), rtol=1e-9)
    given = (point, derived.hypers)
    np.testing.assert_allclose(
        derived.spec.log_jacobian(*given), written.spec.log_jacobian(*given), rtol=1e-6, atol=1e-8
    )
    for name, x in written.to_free(point).items():
        np.testing.assert_allclose(derived.to_free(point)[name], x)


def test_other_data_and_other_hyperparameters_are_other_densities(problem_of):
    spec = ModelSpec.of(without(toy_model, *NAMES))
    problem = problem_of(spec)
    point = {"beta": rng(1).normal(size=(3, 4))}
    fold, wide = problem.take(range(6)), problem.with_hypers(weight_sd=5.0)
    for other in (problem, fold, wide, problem):
        expected = toy_model.log_joint(point, other.inputs, other.y, other.hypers)
        np.testing.assert_allclose(other.log_joint(point), expected, rtol=1e-10)


def test_what_is_done_to_the_model_of_a_problem_changes_nothing(problem_of):
    problem = problem_of(ModelSpec.of(without(toy_model, *NAMES)))
    point = {"beta": rng(1).normal(size=(3, 4))}
    before = problem.log_joint(point)
    with problem.model as model:
        model.set_data("label", 1 - problem.y)
    np.testing.assert_array_equal(problem.log_joint(point), before)


def test_the_zoo_writes_its_own():
    assert ModelSpec.of(horseshoe).log_joint is horseshoe.log_joint


def test_a_wrong_function_beside_derived_ones_is_noticed_before_sampling(problem_of, monkeypatch):
    monkeypatch.setattr(own_model, "_COMPARED", set())
    file = without(toy_model, "log_jacobian", "to_free")
    file.log_joint = lambda *given: 2.0 * toy_model.log_joint(*given)
    with pytest.raises(InputError, match=r"^log_joint of the model 'toy' contradicts"):
        av.fit(problem_of(ModelSpec.of(file)), "advi", progressbar=False)
    other = without(toy_model, *NAMES)
    other.decision = lambda *given: 1.0 + toy_model.decision(*given)
    with pytest.raises(InputError, match="decision of the model 'toy'"):
        av.fit(problem_of(ModelSpec.of(other)), "advi", progressbar=False)


def test_what_cannot_be_derived_is_asked_for():
    with pytest.raises(AttributeError, match="decision"):
        ModelSpec.of(without(toy_model, "decision"))
    assert {f.name for f in dataclasses.fields(ModelSpec)} > {*NAMES}
