"""A model of one's own whose functions contradict its PyMC model, or raise, is refused unfitted."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pymc as pm
import pytest

import ardvark as av
from ardvark.common.declared import Settings
from ardvark.common.validate import InputError
from ardvark.inference.methods import own_model
from ardvark.inference.target.backend import Result
from ardvark.inference.target.target import Target
from ardvark.models import ZOO
from tests.models.forms import FORMS, make, unlike
from tests.support import rng

OWN = ZOO["pcvm"]  # its weights are positive: they are transformed
POSITIVE = {"parametrization": "marginal"}


@pytest.fixture(autouse=True)
def _nothing_compared(monkeypatch):
    monkeypatch.setattr(own_model, "_COMPARED", set())


@pytest.fixture(autouse=True)
def method(monkeypatch):
    """A method that only counts how often it is reached, and returns one state."""

    def fit(target, options, job):
        counting.reached += 1
        drawn = target.zoo_problem.simulate(rng(0))
        return Result({"eta": drawn["eta"][None, None]})

    counting = SimpleNamespace(NAME="count", KIND="point", Options=Settings, fit=fit, reached=0)
    counting.supports = lambda target: None
    monkeypatch.setitem(av.inference.BACKENDS, "count", counting)
    return counting


def of(spec, number=0, **settings):
    """Return a problem of a model of one's own."""
    with pytest.MonkeyPatch.context() as zoo:
        zoo.setitem(ZOO, spec.name, spec)
        return make(spec.name, settings.pop("choice", POSITIVE), number=number, **settings)


def changed(name, function):
    """Return the model with one function of one's own, which gets the right one first."""
    right = getattr(OWN, name)
    return dataclasses.replace(OWN, **{name: lambda *given: function(right, *given)})


def fitted(problem):
    return av.fit(problem, "count", progressbar=False)


def moved(points, name):
    return points | {name: 1.1 * points[name] + 0.1}


WRONG = {
    "log_joint is doubled": (
        changed("log_joint", lambda right, *given: 2.0 * right(*given)),
        r"^log_joint of the model 'pcvm' contradicts its PyMC model.*at 3 random points they are",
    ),
    "log_joint lacks the prior of the bias": (
        changed(
            "log_joint",
            lambda right, p, i, y, h: right(p, i, y, h) + 0.5 * (p["bias"] / h.bias_sd) ** 2,
        ),
        "^log_joint of the model 'pcvm' contradicts",
    ),
    "log_jacobian is zero": (
        changed("log_jacobian", lambda right, point, h: np.zeros(np.shape(point["bias"]))),
        "^log_jacobian of the model 'pcvm' contradicts",
    ),
    "log_joint is not a number": (
        changed("log_joint", lambda right, *given: np.nan * right(*given)),
        "'pcvm' contradicts",
    ),
    "log_joint sums over draws": (
        changed("log_joint", lambda right, *given: right(*given).sum()),
        r"log_joint of .* must return one number for each draw, an array of shape \(3,\) here",
    ),
    "to_free moves a variable": (
        changed("to_free", lambda right, *given: moved(right(*given), "bias")),
        "to_free of the model 'pcvm' contradicts its PyMC model: bias is",
    ),
    "to_free lacks a variable": (
        changed("to_free", lambda right, *given: {}),
        "to_free of the model 'pcvm' contradicts its PyMC model: (?s:.*) gives None",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_function_is_named_before_it_is_fitted(case, method):
    spec, message = WRONG[case]
    with pytest.raises(InputError, match=message):
        fitted(of(spec))
    assert not method.reached


def test_a_decision_that_is_not_eta_is_named(method):
    """`log_joint` here is still right: in the package's files it asks its own `decision`."""
    spec = changed("decision", lambda right, *given: right(*given) + 0.01)
    with pytest.raises(InputError, match=r"decision of the model 'pcvm' contradicts .*: eta is"):
        fitted(of(spec))
    assert not method.reached


def test_what_cannot_be_told_names_both():
    """Weights that are scaled in `build`: neither density has the Jacobian of that alone."""
    jacobian = changed("log_jacobian", lambda right, point, h: np.zeros(np.shape(point["bias"])))
    problem = of(jacobian, choice={"parametrization": "hierarchical"})
    with pytest.raises(InputError, match=r"^log_joint, or log_jacobian, of the model 'pcvm'"):
        fitted(problem)


@pytest.mark.parametrize(
    "name", ["log_joint", "log_jacobian", "to_free", "simulate", "decision", "log_predictive"]
)
def test_a_function_that_raises_is_named_before_it_is_fitted(name, method):
    def broken(right, *given):
        raise KeyError("no such weight")

    with pytest.raises(InputError, match=f"{name} of the model 'pcvm' raised") as caught:
        fitted(of(changed(name, broken)))
    causes = [caught.value.__cause__, caught.value.__cause__.__cause__]
    assert any(isinstance(cause, KeyError) for cause in causes)
    assert not method.reached


def test_a_right_model_is_fitted_and_compared_once_a_form(method, monkeypatch):
    """Constants may differ. Another form, kernel or kind of prior is compared again."""
    seen = []
    whole = own_model.compare_functions
    monkeypatch.setattr(
        own_model, "compare_functions", lambda *given: [seen.append(1), whole(*given)]
    )
    spec = changed("log_joint", lambda right, *given: right(*given) + 5.0)
    for number in range(2):
        fitted(of(spec, number))
    assert (len(seen), method.reached) == (1, 2)
    fitted(of(spec, choice=POSITIVE | {"kernel": "rbf"}))
    fitted(of(spec, choice={"parametrization": "hierarchical"}))
    assert len(seen) == 3
    fitted(of(spec, sample_slab=2.0))
    fitted(of(spec, sample_slab=3.0))
    assert len(seen) <= 4


def test_hyperparameters_too_sparse_to_draw_from_are_fitted(method):
    """`Problem.simulate` refuses them; nothing is wrong with the model."""
    spec = changed("to_free", lambda right, *given: right(*given))
    problem = of(spec, sample_shape=0.01, sample_rate=1e-4)
    with pytest.raises(InputError, match="cannot simulate"):
        problem.simulate(rng(0))
    own_model.check_own(Target(problem))


def test_where_no_density_is_finite_nothing_is_compared(caplog):
    with pm.Model() as model:
        x = pm.Normal("x")
        pm.Potential("nowhere", x * np.inf)
    own_model.compare_functions(of(OWN), model)
    assert "pcvm was not compared with its PyMC model" in caplog.text
    assert "its log density is not finite" in caplog.text


def test_the_packages_models_are_not_compared(monkeypatch):
    monkeypatch.setattr(own_model, "compare_functions", lambda *given: pytest.fail("compared"))
    for name in ZOO:
        own_model.check_own(Target(make(name)))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.slow
def test_no_right_model_is_refused(form):
    """Every form of every model of the package, none of whose functions is wrong."""
    name, choice = form
    problem = make(name, choice, **unlike(name, choice=choice))
    own_model.compare_functions(problem, problem.model)
