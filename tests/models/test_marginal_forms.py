"""A marginal form is the integral of the form it comes from, its constants too.

Rung 1 compares densities of one form. Here two forms of one model: what the second leaves out is
integrated out of the first by quadrature, at the model's own `log_joint`.
"""

import numpy as np
import pytest
from scipy import special

from ardvark.models import ZOO
from tests.models.forms import log_joint_at, make, prior_points

PRECISIONS = {
    "pfcvm": ("alpha", "beta"),
    "pcvm": ("alpha",),
    "rvm": ("alpha",),
    "rfvm": ("psi", "delta"),
    "jcfo": ("tau_bias", "tau", "rho"),
    "sparse_probit": ("tau_bias", "tau"),
}
"""What the marginal form leaves out, each with its own weight: one integral an entry."""

MASKS = {"fsklr", "sklr", "fs_skr"}
"""Explicit and integrated mask probabilities are integrated in test_fsklr.py."""


def small(name, choice, **changed):
    labels = {"basis_labels": [1, -1, 1]} if ZOO[name].labels_in_basis else {}
    basis = {} if name == "sparse_probit" else {"basis": [0, 2, 4]}
    return make(name, {**choice, **changed}, N=5, D=2, **basis, **labels)


def integrated_out(problem, point, name, values, weight):
    """Return log of the integral of exp log_joint over every entry of one variable.

    The entries do not meet in any factor: the integral is a product of one-dimensional ones, each
    the sum over `values` (S,) + the entry's shape, with `weight` of that shape times the step.
    """
    top = log_joint_at(problem, point, point["y"])
    total = top
    for index in np.ndindex(np.shape(point[name])):
        x = np.broadcast_to(point[name], (len(values), *np.shape(point[name]))).copy()
        x[(slice(None), *index)] = values[(slice(None), *index)]
        many = {k: np.broadcast_to(v, (len(values), *np.shape(v))) for k, v in point.items()}
        log_density = log_joint_at(problem, many | {name: x}, point["y"])
        w = np.broadcast_to(weight, x.shape)[(slice(None), *index)]
        total = total + special.logsumexp(log_density, b=w) - top
    return total


def over_the_positive(problem, point, name):
    """Integrate over x > 0 in log x, where the integrand falls at least exponentially.

    The trapezoidal rule converges geometrically for a smooth integrand on the whole line; halving
    the step changes nothing.
    """
    step = 0.05
    x = np.exp(np.arange(-80.0, 80.0, step))
    x = np.multiply.outer(x, np.abs(np.asarray(point[name])))  # around the drawn values
    return integrated_out(problem, point, name, x, step * x)


def over_the_line(problem, point, name):
    step = 0.05
    sd = 1.0 if name == "z" else np.asarray(point["tau"]) ** -0.5
    x = point["eta"] + sd * np.arange(-40.0, 40.0, step)[:, None]
    return integrated_out(problem, point, name, x, sd * step)


def over_the_side_of_y(problem, point, name):
    """z has the sign of y: integrate over |z| in log |z|."""
    step = 0.02
    size = np.exp(np.arange(-45.0, 6.0, step))
    z = (2.0 * point["y"] - 1.0) * size[:, None]
    return integrated_out(problem, point, name, z, step * size[:, None])


def check(kept, marginal, names, integrate):
    """The marginal density is the integral, within the quadratures' errors.

    The largest is that of the integrated noise of `log_joint`: 4e-8 for each of five samples.
    """
    assert kept.fingerprint == marginal.fingerprint
    for point in prior_points(kept, 3):
        top = log_joint_at(kept, point, point["y"])
        found = top + sum(integrate(kept, point, n) - top for n in names)
        exact = log_joint_at(marginal, point, point["y"])
        assert float(found) == pytest.approx(float(exact), abs=1e-6)


@pytest.mark.parametrize(
    ("name", "choice"),
    [
        pytest.param(name, choice, id="-".join([name, *choice.values()]))
        for name in PRECISIONS
        for choice in ZOO[name].choices()
        if choice["parametrization"] == "hierarchical"
    ],
)
def test_precisions_integrate_to_the_marginal_form(name, choice):
    kept = small(name, choice)
    marginal = small(name, choice, parametrization="marginal")
    check(kept, marginal, PRECISIONS[name], over_the_positive)


@pytest.mark.parametrize("parametrization", ["hierarchical", "marginal"])
def test_latent_noise_integrates_out(parametrization):
    choice = {"parametrization": parametrization}
    explicit = small("rfvm", choice, latent_noise="explicit")
    integrated = small("rfvm", choice, latent_noise="integrated")
    check(explicit, integrated, ["u"], over_the_line)


@pytest.mark.parametrize("kernel", ZOO["jcfo"].kernels)
def test_latent_decision_values_integrate_to_the_probit(kernel):
    latent = small("jcfo", {"kernel": kernel}, parametrization="latent")
    probit = small("jcfo", {"kernel": kernel}, parametrization="hierarchical")
    check(latent, probit, ["z"], over_the_side_of_y)


def test_every_model_with_several_forms_is_here():
    several = {n for n, spec in ZOO.items() if spec.Hypers.FORM}
    assert several == set(PRECISIONS) | MASKS
    assert {n for n in several if "latent_noise" in ZOO[n].Hypers.FORM} == {"rfvm"}
