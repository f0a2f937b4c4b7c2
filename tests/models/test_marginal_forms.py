"""A marginal form is the integral of the form it comes from, its constants too.

Rung 1 compares densities of one form. Here two forms of one model: what the second leaves out is
integrated out of the first by quadrature, at the model's own `log_joint`.
"""

import pytest

from ardvark.models import ZOO
from tests.models.forms import in_short, log_joint_at, make, prior_points
from tests.models.integrals import (
    over_the_line,
    over_the_positive,
    over_the_side_of_y,
    without,
)

PRECISIONS = {
    "pfcvm": ("alpha", "beta"),
    "pcvm": ("alpha",),
    "rvm": ("alpha",),
    "rfvm": ("psi", "delta"),
    "jcfo": ("tau_bias", "tau", "rho"),
    "sparse_probit": ("tau_bias", "tau"),
    "horseshoe": ("tau_variance", "lambda_variance"),
}
"""What the marginal form leaves out, each with its own weight or scale: one integral an entry."""

MASKS = {"fsklr", "sklr", "fs_skr"}
"""Explicit and integrated mask probabilities are integrated in test_fsklr.py."""


def small(name, choice, **changed):
    labels = {"basis_labels": [1, -1, 1]} if ZOO[name].labels_in_basis else {}
    basis = {"basis": [0, 2, 4]} if ZOO[name].has_basis else {}
    return make(name, {**choice, **changed}, N=5, D=2, **basis, **labels)


def check(kept, marginal, names, integrate):
    """The marginal density is the integral, within the quadratures' errors.

    The largest is that of the integrated noise of `log_joint`: 4e-8 for each of five samples.
    """
    assert kept.fingerprint == marginal.fingerprint
    for point in prior_points(kept, 3):
        exact = log_joint_at(marginal, point, point["y"])
        assert without(kept, point, names, integrate) == pytest.approx(float(exact), abs=1e-6)


@pytest.mark.parametrize(
    ("name", "choice"),
    [
        pytest.param(name, choice, id="-".join([name, *choice.values()]))
        for name in PRECISIONS
        for choice in in_short(ZOO[name])  # no precision knows of a kernel
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


def test_latent_decision_values_integrate_to_the_probit():
    latent = small("jcfo", {"kernel": "rbf"}, parametrization="latent")
    probit = small("jcfo", {"kernel": "rbf"}, parametrization="hierarchical")
    check(latent, probit, ["z"], over_the_side_of_y)


def test_every_model_with_several_forms_is_here():
    forms = {n: spec.Hypers().fill(8, 8, 3).form_fields() for n, spec in ZOO.items()}
    assert {n for n in forms if forms[n]} == set(PRECISIONS) | MASKS
    assert {n for n in forms if "latent_noise" in forms[n]} == {"rfvm"}
