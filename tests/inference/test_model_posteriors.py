"""Rung 2 for PFCVM, JCFO and their family: the forms of one posterior agree, sampled by NUTS.

RFVM's is `test_rfvm_posterior.py`; FS-SKLR's two forms are compared by quadrature, exactly, in
`tests/models/test_fsklr.py`. A mean of NUTS has an error of at most 1/20 posterior sd (400
effective draws) and the limit is near 7 errors of two means: a shift of half an sd in any component
would be caught, and of 0.2 sd in most, whose effective size is several thousand.

The default run integrates the precisions out by quadrature instead (`test_marginal_forms.py` in
`tests/models`), and holds every form's density against the paper's; so all of this is slow.
"""

import numpy as np
import pytest
from arviz_stats.base import array_stats

import ardvark as av
from ardvark.inference.methods.refits import Sharing
from ardvark.models import ZOO
from tests.inference.batches import batch_mean, largest_t
from tests.inference.spiral import spiral
from tests.support import seed

N, D = 12, 3
ESS_FLOOR = 400

pytestmark = pytest.mark.slow
CASES = [
    ("pfcvm", "linear", 1),
    ("jcfo", "polynomial", 1),
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
    ("horseshoe", "", 1),
]

# what a wrong density would be, as other values of the model's data: {model: change}
WRONG = {
    "pfcvm": lambda h: {"basis_labels": np.ones(N)},  # s left out of the basis
    "pcvm": lambda h: {"basis_labels": np.ones(N)},
    "rvm": lambda h: {"sample_rate": 10.0 * h.sample_rate},
    "jcfo": lambda h: {"gamma2": h.gamma2**0.5},  # a rate without its root
    "sparse_probit": lambda h: {"gamma1": h.gamma1**2},
    "horseshoe": lambda h: {"global_scale": 30.0 * h.global_scale},
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


def bounded(parts, scales):
    """Return bounded functions of the parts (chain, draw, component).

    Bounded by the arctangent, every moment exists whatever the tails, and an error can be trusted.
    """
    return np.concatenate([np.arctan(v / scales[k]) for k, v in parts.items()], axis=-1)


@pytest.fixture(scope="module", params=CASES, ids=lambda c: "-".join(map(str, c)))
def case(request):
    """The Means of every form of one model, and of a wrong density: forms, {form: Mean}."""
    name, kernel, degree = request.param
    kernels = {"kernel": kernel, "degree": degree} if kernel else {}
    kernels |= {"scale": "fixed"} if name in ("jcfo", "sparse_probit") else {}
    choices = [c for c in ZOO[name].choices() if c.get("scale", "fixed") == "fixed"]
    forms = [c["parametrization"] for c in choices if c.get("kernel", "") == kernel]
    found, scales, models = {}, {}, {}

    def sample(form, label, **changes):
        own = av.problem(name, spiral(N, D), parametrization=form, **kernels, **changes)
        problem = Sharing.of(own, models)  # the wrong density costs no compilation
        settings = {"draws": 1500}
        if form == "latent":  # z follows an eta with heavy tails: small steps
            settings["target_accept"] = 0.99
        if form == "latent" and degree > 1:
            settings = {"draws": 4000, "tune": 2000, "target_accept": 0.995}
        tree = av.fit(problem, "nuts", random_seed=seed(5), progressbar=False, **settings)
        assert tree.attrs["status"] == "finished", tree.attrs["reason"]
        parts = components(tree, problem)
        if not scales:  # from the first form, for all: typical sizes
            scales.update({k: np.median(np.abs(v)) for k, v in parts.items()})
        x = bounded(parts, scales)
        assert array_stats.ess(x, chain_axis=0, draw_axis=1, method="mean").min() > ESS_FLOOR
        found[label] = batch_mean(x)
        return problem

    first = sample(forms[0], forms[0])
    sample(forms[0], "wrong", **WRONG[name](first.hypers))
    for form in forms[1:]:
        other = sample(form, form)
        assert other.fingerprint == first.fingerprint
        assert other.form != first.form
    return forms, found


@pytest.mark.statistical
def test_forms_agree(case):
    forms, found = case
    for form in forms[1:]:
        t, limit = largest_t(found[forms[0]], found[form])
        assert t < limit, form


@pytest.mark.statistical
def test_a_wrong_density_disagrees(case):
    """Negative control: the same comparison sees another posterior.

    For PFCVM the largest t was above 160 in five seeds, and the limit is 6.5.
    """
    forms, found = case
    for form in forms:
        t, limit = largest_t(found[form], found["wrong"])
        assert t > limit, form
