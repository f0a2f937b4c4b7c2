"""Rung 1 of the ladder, for every model and every form: the density is the paper's.

`log_joint` is written from the paper in NumPy and SciPy, `build` in PyMC. Two independent routes to
one number: they may differ by a constant, so differences over prior draws are compared.
"""

import dataclasses

import numpy as np
import pytest

from ardvark.data import Dataset
from ardvark.inference.generic import nuts
from ardvark.models import ZOO
from ardvark.models.problems import make_problem
from ardvark.validate import InputError

FORMS = [(name, choice) for name, spec in ZOO.items() for choice in spec.choices()]
IDS = ["-".join([name, *choice.values()]) for name, choice in FORMS]
every_form = pytest.mark.parametrize(("name", "choice"), FORMS, ids=IDS)
every_model = pytest.mark.parametrize("name", list(ZOO))


def make(name, choice, N=9, D=4, seed=0, **hypers):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D))
    y = np.arange(N) % 2
    return make_problem(ZOO, name, Dataset.from_arrays(X, y), **choice, **hypers)


def prior_points(problem, n, seed=1):
    rng = np.random.default_rng(seed)
    return [problem.simulate(rng) for _ in range(n)]


def at_own_labels(problem, point):
    """Return the log density at a point's own labels: a latent form is 0 at any others."""
    spec, h = problem.spec, problem.hypers
    joint = spec.log_joint(point, problem.inputs, point["y"], h)
    return joint + spec.log_jacobian(point, h)


def values_at(model, free):
    """Return the transformed values of the PyMC model's free variables."""
    values = {}
    for rv in model.free_RVs:
        transform = model.rvs_to_transforms[rv]
        value = np.asarray(free[rv.name])
        value_var = model.rvs_to_values[rv]
        if transform is None:
            values[value_var.name] = value.astype(value_var.dtype)
        else:
            values[value_var.name] = transform.forward(value, *rv.owner.inputs).eval()
    return values


@every_form
def test_pymc_density_is_the_papers_density(name, choice):
    problem = make(name, choice)
    model = problem.model
    compiled = model.compile_logp(mode="FAST_COMPILE")
    differences = []
    for point in prior_points(problem, 20):
        model.set_data("label", point["y"])
        ours = float(at_own_labels(problem, point))
        theirs = float(compiled(values_at(model, problem.to_free(point))))
        assert np.isfinite(ours)
        differences.append((ours - theirs, abs(ours)))
    offset = differences[0][0]
    for difference, size in differences:
        assert abs(difference - offset) < 1e-10 * max(1.0, size)


@every_form
def test_density_without_the_jacobian_is_told_apart(name, choice):
    """Negative control of the test above: a dropped Jacobian changes the differences."""
    problem = make(name, choice)
    jacobians = [
        float(problem.spec.log_jacobian(p, problem.hypers)) for p in prior_points(problem, 20)
    ]
    if not any(t is not None for t in problem.model.rvs_to_transforms.values()):
        assert np.ptp(jacobians) == 0.0
    else:
        assert np.ptp(jacobians) > 1e-3


@every_form
def test_leading_axes_give_the_same_density(name, choice):
    problem = make(name, choice)
    points = prior_points(problem, 3)
    stacked = {k: np.stack([p[k] for p in points]) for k in points[0]}
    together = at_own_labels(problem, stacked)
    assert together.shape == (3,)
    np.testing.assert_allclose(together, [at_own_labels(problem, p) for p in points], rtol=1e-12)
    np.testing.assert_allclose(problem.decision(stacked), stacked["eta"], rtol=1e-10)


@every_form
def test_shared_quantities_and_dims(name, choice):
    problem = make(name, choice)
    model = problem.model
    named = {k: tuple(map(str, v)) for k, v in model.named_vars_to_dims.items()}
    expected = {"feature_weight": ("feature",), "sample_weight": ("basis",), "eta": ("obs",)}
    for key in problem.spec.shared:
        assert key in model.named_vars
        assert named[key] == expected[key]
    for rv in model.free_RVs:
        if rv.ndim:
            assert named[rv.name] == problem.spec.dims.get(rv.name, expected.get(rv.name))
    for dim, names in problem.coords.items():
        assert tuple(model.coords[dim]) == names


@every_form
def test_gradient_is_finite_far_out(name, choice):
    problem = make(name, choice)
    model = problem.model
    if model.discrete_value_vars:  # then nothing that follows a gradient may take it
        assert "are discrete" in nuts.supports(model, problem)
        return
    gradient = model.compile_dlogp(mode="FAST_COMPILE")
    rng = np.random.default_rng(3)
    for size in (1.0, 5.0, 10.0):
        start = {k: size * rng.normal(size=np.shape(v)) for k, v in model.initial_point().items()}
        assert np.isfinite(gradient(start)).all()


@every_model
def test_prior_is_useful_at_every_size(name):
    """The prior median of |eta| lies between 0.5 and 3 at small, fat and tall data."""
    spec = ZOO[name]
    kernels = [{"kernel": k} for k in spec.kernels] if len(spec.kernels) > 1 else [{}]
    for choice in kernels:
        for N, D in ((30, 6), (72, 7129), (200, 40)):
            problem = make(name, choice, N=N, D=D)
            rng = np.random.default_rng(4)
            eta = np.concatenate([problem.simulate(rng)["eta"] for _ in range(60)])
            assert 0.5 < np.median(np.abs(eta)) < 3.0, (choice, N, D)


@every_model
def test_filled_values_are_idempotent_and_described(name):
    problem = make(name, {})
    again = problem.hypers.filled(problem.data.N, len(problem.basis), problem.data.D)
    assert again == problem.hypers
    text = problem.describe()
    for field in dataclasses.fields(problem.hypers):
        assert field.name in text
        assert getattr(problem.hypers, field.name) is not None
        assert field.metadata["paper"]


@every_model
def test_a_setting_outside_its_choices_is_refused(name):
    for setting in ZOO[name].Hypers.choices():
        with pytest.raises(InputError, match=f"{setting} must be one of"):
            make(name, {setting: "nonsense"})


@every_model
def test_likelihood_is_normalised(name):
    """P(y = 0) + P(y = 1) = 1 at every sample; a density of the score integrates to 1."""
    problem = make(name, {})
    point = prior_points(problem, 1)[0]
    eta = problem.decision(point)
    if problem.spec.link == "identity":
        y, weight = np.linspace(-200.0, 200.0, 400_001), 2.0 * 1e-3
    else:
        y, weight = np.array([0, 1]), 1.0
    log_p = problem.spec.log_predictive(y[:, None], eta, point, problem.hypers)
    np.testing.assert_allclose(weight * np.exp(log_p).sum(axis=0), 1.0, atol=1e-9)
