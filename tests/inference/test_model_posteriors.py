"""Rung 2 for PFCVM, JCFO and their family: the forms of one posterior agree, sampled by NUTS.

RFVM's is `test_rfvm_posterior.py`; FS-SKLR's two forms are compared by quadrature, exactly, in
`tests/models/test_fsklr.py`. With the effective sizes required here (400 and more) a shift of
4.5 sqrt(2 / 400) = 0.3 posterior sd in any component would be caught.

The default run has the default kernel of the two papers; the slow one every other combination.
"""

import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy import stats

import ardvark as av
from ardvark.inference.comparison.leave_one_out import share_model
from ardvark.models import ZOO

N, D = 12, 3
FALSE_ALARM = 1e-3  # of one comparison of two forms, over all its components
ESS_FLOOR = 400

QUICK = [("pfcvm", "linear", 1), ("jcfo", "polynomial", 1)]
SLOW = [
    ("pfcvm", "polynomial", 2),
    ("pfcvm", "rbf", 1),
    ("pcvm", "linear", 1),
    ("pcvm", "polynomial", 2),
    ("pcvm", "rbf", 1),
    ("rvm", "linear", 1),
    ("jcfo", "linear", 1),
    ("jcfo", "polynomial", 2),
    ("jcfo", "rbf", 1),
    ("sparse_probit", "", 1),
]
CASES = [pytest.param(c, id=f"{c[0]}-{c[1]}-{c[2]}") for c in QUICK]
CASES += [pytest.param(c, id=f"{c[0]}-{c[1]}-{c[2]}", marks=pytest.mark.slow) for c in SLOW]

# what a wrong density would be, as other values of the model's data: {model: change}
WRONG = {
    "pfcvm": lambda h: {"basis_labels": np.ones(N)},  # s left out of the basis
    "pcvm": lambda h: {"basis_labels": np.ones(N)},
    "rvm": lambda h: {"sample_rate": 10.0 * h.sample_rate},
    "jcfo": lambda h: {"gamma2": h.gamma2**0.5},  # a rate without its root
    "sparse_probit": lambda h: {"gamma1": h.gamma1**2},
}


def components(tree, problem):
    """Return eta, weights and their identified products as {name: (chain, draw, component)}."""
    posterior = tree["posterior"]
    parts = {"eta": posterior["eta"].values}
    v = posterior["feature_weight"].values
    if "feature_weight" not in problem.spec.fixed:
        parts["feature_weight"] = v
    if "sample_weight" in problem.spec.shared:
        a = posterior["sample_weight"].values
        parts |= {"sample_weight": a, "product": v * (a @ problem.Z)}
    return parts


def summary(parts, scales):
    """Return mean, its Monte Carlo error and effective size of bounded functions of the parts.

    Bounded by the arctangent, every moment exists whatever the tails, and the error can be trusted.
    """
    x = np.concatenate([np.arctan(v / scales[k]) for k, v in parts.items()], axis=-1)
    axes = {"chain_axis": 0, "draw_axis": 1, "method": "mean"}
    return x.mean(axis=(0, 1)), array_stats.mcse(x, **axes), array_stats.ess(x, **axes)


def largest_z(one, other):
    """Return the largest standardised difference, and the limit for that many comparisons."""
    z = np.abs(one[0] - other[0]) / np.hypot(one[1], other[1])
    return z.max(), stats.norm.isf(FALSE_ALARM / 2 / len(z))


@pytest.fixture(scope="module", params=CASES)
def case(request, small_data):
    """The fits of every form of one model, and one of a wrong density: {form: summary}."""
    name, kernel, degree = request.param
    data = small_data(N=N, D=D)
    kernels = {"kernel": kernel, "degree": degree} if kernel else {}
    forms = [c["parametrization"] for c in ZOO[name].choices() if c.get("kernel", "") == kernel]
    found, scales, models = {}, {}, {}

    def sample(form, label, **changes):
        problem = av.problem(name, data, parametrization=form, **kernels, **changes)
        share_model(problem, models)  # the wrong density costs no compilation
        settings = {"draws": 1500}
        if form == "latent" and degree > 1:  # z follows an eta with heavy tails: small steps
            settings = {"draws": 4000, "tune": 2000, "target_accept": 0.995}
        tree = av.fit(problem, "nuts", random_seed=5, progressbar=False, **settings)
        assert tree.attrs["status"] == "ok", tree.attrs["reason"]
        parts = components(tree, problem)
        if not scales:  # from the first form, for all: typical sizes
            scales.update({k: np.median(np.abs(v)) for k, v in parts.items()})
        found[label] = summary(parts, scales)
        return problem

    first = sample(forms[0], forms[0])
    sample(forms[0], "wrong", **WRONG[name](first.hypers))
    for form in forms[1:]:
        other = sample(form, form)
        assert other.fingerprint == first.fingerprint
        assert other.form != first.form
    return forms, found


def test_forms_agree(case):
    forms, found = case
    for form in forms:
        assert found[form][2].min() > ESS_FLOOR, form
    for form in forms[1:]:
        z, limit = largest_z(found[forms[0]], found[form])
        assert 3.5 < limit < 4.5
        assert z < limit, form


def test_a_wrong_density_disagrees(case):
    """Negative control: the same comparison sees another posterior, by a wide margin."""
    forms, found = case
    for form in forms:
        z, limit = largest_z(found[form], found["wrong"])
        assert z > 1.5 * limit, form
