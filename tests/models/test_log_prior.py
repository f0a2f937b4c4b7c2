"""The prior's density: the joint without observations, the same in every form."""

import numpy as np
import pytest
from scipy import integrate, stats

from ardvark.common.validate import InputError
from ardvark.models import ZOO
from tests.models.forms import FORMS, make, prior_points, stacked, unlike

SPARSE = [name for name in ZOO if "slab" in ZOO[name].Hypers.__dataclass_fields__]


@pytest.mark.parametrize("form", FORMS)
def test_it_is_the_joint_less_the_likelihood(form):
    """In the form without precisions, latent noise and latent scores, with all observations."""
    name, choice = form
    problem = make(name, choice)
    point = stacked(prior_points(problem, 4))
    h = problem.hypers.marginal()
    joint = problem.spec.log_joint(point, problem.inputs, problem.y, h)
    likelihood = problem.spec.log_predictive(problem.y, problem.decision(point), point, h)
    parts = problem.log_prior(point)
    # two rules for the integral over the noise, each right to 1e-11 a label
    atol = 2e-11 * len(problem.y) if "latent_noise" in choice else 0.0
    rest = joint - likelihood.sum(-1)
    np.testing.assert_allclose(sum(parts.values()), rest, rtol=1e-10, atol=atol)
    assert all(v.shape == (4,) for v in parts.values())


@pytest.mark.parametrize("name", SPARSE)
def test_every_form_has_the_same(name):
    found = []
    for choice in ZOO[name].choices():
        linear = choice["kernel"] == "linear"
        if linear and choice.get("latent_noise") != "none":
            problem = make(name, choice, bias_sd=2.0)
            point = stacked(prior_points(make(name, kernel="linear"), 3))
            found.append(problem.log_prior(point))
    assert len(found) > 1
    for other in found[1:]:
        for part, values in other.items():
            np.testing.assert_allclose(values, found[0][part], rtol=1e-12)


def by_quadrature(name, h, part, x):
    """Return the log density (...,) of weights (..., k): Student-t times slab, over its integral.

    By the hyperparameters of this part's own names, and SciPy.
    """
    kind = part.removesuffix("_weight")
    shape, rate, slab = (getattr(h, f"{kind}_{what}") for what in ("shape", "rate", "slab"))
    law = stats.t(2.0 * shape, scale=np.sqrt(rate / shape))
    mass = integrate.quad(lambda u: law.pdf(u) * np.exp(-0.5 * (u / slab) ** 2), -9.0, 9.0)[0]
    signed = part == "sample_weight" and name in ("rvm", "rfvm")
    each = law.logpdf(x) - 0.5 * (x / slab) ** 2 - np.log(mass) + (0.0 if signed else np.log(2.0))
    return each.sum(-1)


@pytest.mark.parametrize("name", SPARSE)
def test_the_parts_are_those_of_their_own_variables(name):
    """Moving the weights of one kind moves its own part and no other; the rest is the bias's."""
    problem = make(name, {"kernel": "linear"}, **unlike(name))
    point = stacked(prior_points(problem, 3))
    before = problem.log_prior(point)
    h = problem.hypers
    for part in before.keys() - {"rest"}:
        np.testing.assert_allclose(before[part], by_quadrature(name, h, part, point[part]))
    for part in before:
        if part == "rest":
            moved = {**point, "bias": 2.0 * point["bias"] + 1.0}
        else:
            moved = {**point, part: 2.0 * point[part]}
            if part == "sample_weight" and "w" in point:
                moved["w"] = 2.0 * point["w"]
        after = problem.log_prior(moved)
        for other, values in after.items():
            if other == part:
                assert (np.abs(values - before[other]) > 1e-3).all()
            else:
                np.testing.assert_allclose(values, before[other], rtol=1e-9, atol=1e-9)
    bias = stats.norm.logpdf(point["bias"], 0.0, h.bias_sd)
    if "tau" in point:
        bias = bias + stats.gamma.logpdf(point["tau"], h.noise_shape, scale=1.0 / h.noise_rate)
    np.testing.assert_allclose(before["rest"], bias, rtol=1e-9, atol=1e-9)


def test_what_is_not_there_is_named():
    problem = make("pfcvm", {"kernel": "linear"})
    point = stacked(prior_points(problem, 2))
    del point["w"]
    with pytest.raises(InputError, match="needs 'w', which is missing: fit with keep='all'"):
        problem.log_prior(point)
