"""The horseshoe's posterior in both forms, against quadrature that shares no code with the model.

With one feature, the likelihood depends on the scales only through the standard deviation of the
weight. So the posterior of all variables is a few one-dimensional integrals. With three features,
prior draws weighed by the likelihood take the place of quadrature.

The default run has the marginal form. In the hierarchical one NUTS needs twenty times as many
steps; its density is compared with the other one's in `tests/models/test_marginal_forms.py`.
"""

from functools import cache

import numpy as np
import pytest
from scipy import special, stats

import ardvark as av
from tests.inference.batches import batch_mean, exactly, largest_t, weighted
from tests.inference.spiral import spiral
from tests.support import rng, seed

FORMS = ("marginal", pytest.param("hierarchical", marks=pytest.mark.slow))
TAU_0, SLAB, DF, BIAS = 0.5, 1.5, 5.0, 0.8
GIVEN = {"global_scale": TAU_0, "slab_scale": SLAB, "slab_df": DF, "bias_sd": BIAS}
X = np.linspace(-2.0, 2.5, 10)
Y = (X > 0.3).astype(int)  # separable: the slab decides how large the weight is
every_form = pytest.mark.parametrize("form", FORMS)


def drawn(problem, number=1):
    """Return the draws of NUTS {name: (chain, draw, ...)}, with steps small enough for a spike."""
    settings = {"draws": 1200, "target_accept": 0.97, "progressbar": False}
    tree = av.fit(problem, "nuts", random_seed=seed(number), **settings)
    assert tree.attrs["status"] == "finished", tree.attrs["reason"]
    return {str(k): v.values for k, v in tree["posterior"].data_vars.items()}


# --- one feature: quadrature ----------------------------------------------------------------------


def grid(low, high, step=0.05):
    """Return points of a trapezoidal rule in log x, and their weights, as x and dx."""
    x = np.exp(np.arange(low, high, step))
    return x, step * x


@cache
def of_the_weight():
    """Return log sd (S,), and E[f(b, w) p(y | b, w)] (k, S) for b ~ N(0, BIAS), w ~ N(0, sd).

    The first f is 1, the others are the first ones of `of_one_feature`.
    """
    at = np.linspace(-9.0, 4.0, 66)
    z, dz = np.linspace(-8.0, 8.0, 641, retstep=True)
    node, mass = np.polynomial.hermite_e.hermegauss(24)
    b, mass = BIAS * node, mass / mass.sum()
    found = []
    for log_sd in at:
        w = np.exp(log_sd) * z
        eta = b[:, None, None] + w[:, None] * X  # (b, w, row)
        joint = mass[:, None] * stats.norm.pdf(z) * dz
        joint = joint * np.exp(special.log_expit((2 * Y - 1) * eta).sum(-1))
        p_row = [(joint * special.expit(eta[..., i])).sum() for i in range(len(X))]
        f = [joint.sum(), (joint * np.arctan(w)).sum(), (joint * w**2 / (1 + w**2)).sum()]
        found.append([*f, *p_row])
    return at, np.array(found).T


@cache
def by_quadrature(tau_0=TAU_0, regularised=True):
    """Return the posterior means of `of_one_feature`."""
    tau, d_tau = grid(-18.0, 18.0, 0.1)
    s, d_s = grid(-16.0, 16.0, 0.1)  # tau lambda
    c2, d_c2 = grid(-5.0, 7.0, 0.1)
    local = s / tau[:, None]
    p_tau_s = stats.halfcauchy.pdf(tau, scale=tau_0)[:, None] * stats.halfcauchy.pdf(local)
    p_tau_s = p_tau_s * (d_tau / tau)[:, None] * d_s  # d lambda = ds / tau
    p_c2 = stats.invgamma.pdf(c2, DF / 2, scale=DF * SLAB**2 / 2) * d_c2
    assert p_tau_s.sum() == pytest.approx(1.0, abs=1e-5)
    assert p_c2.sum() == pytest.approx(1.0, abs=1e-5)
    sd = (1.0 / s[:, None] ** 2 + (1.0 / c2 if regularised else 0.0 * c2)) ** -0.5  # (s, c2)
    at, known = of_the_weight()
    f = np.array([np.interp(np.log(sd), at, row) for row in known]) * p_c2  # (k, s, c2)
    p_s = p_tau_s.sum(0)
    of_s = f[0].sum(1)
    found = [
        *(f[1:] * p_s[:, None]).sum((1, 2)),
        p_s @ f[0] @ (c2 / (c2 + 1.0)),
        (tau / (tau + TAU_0)) @ p_tau_s @ of_s,
        ((p_tau_s * local / (local + 1.0)) @ of_s).sum(),
    ]
    return np.array(found) / (p_s @ of_s)


def of_one_feature(point):
    """Return bounded functions (chain, draw, k), in the order of `by_quadrature`."""
    w, c2, tau = point["beta"], point["c2"][..., None], point["tau"][..., None]
    local = point["lambda"]
    parts = [np.arctan(w), w**2 / (1 + w**2), special.expit(point["eta"])]
    parts += [c2 / (c2 + 1.0), tau / (tau + TAU_0), local / (local + 1.0)]
    return np.concatenate(parts, axis=-1)


@pytest.fixture(scope="module", params=FORMS)
def one_feature(request):
    """The Mean of a form's draws."""
    data = (X[:, None], Y)
    problem = av.problem(
        "horseshoe", data, standardize=False, parametrization=request.param, **GIVEN
    )
    return batch_mean(of_one_feature(drawn(problem)))


@pytest.mark.statistical
def test_a_form_has_the_posterior_of_quadrature(one_feature):
    t, limit = largest_t(one_feature, exactly(by_quadrature()))
    assert t < limit


@pytest.mark.statistical
@pytest.mark.parametrize("wrong", [{"tau_0": 8 * TAU_0}, {"regularised": False}], ids=str)
def test_another_prior_disagrees(one_feature, wrong):
    """Negative control: another global scale, and no slab."""
    t, limit = largest_t(one_feature, exactly(by_quadrature(**wrong)))
    assert t > limit


# --- three features: prior draws weighed by the likelihood ----------------------------------------


def of_several(point):
    """Return bounded functions (..., k) of eta, the weights, and the scales."""
    beta, tau = np.asarray(point["beta"]), np.asarray(point["tau"])[..., None]
    local = np.asarray(point["lambda"])
    parts = [special.expit(point["eta"]), np.arctan(beta), beta**2 / (1.0 + beta**2)]
    return np.concatenate([*parts, tau / (tau + TAU_0), local / (local + 1.0)], axis=-1)


def prior_draws(problem, n=200_000):
    """Return n draws of the prior, without the model's code."""
    random, D = rng(2), problem.data.D
    point = {
        "bias": BIAS * random.standard_normal(n),
        "c2": stats.invgamma.rvs(DF / 2, scale=DF * SLAB**2 / 2, size=n, random_state=random),
        "tau": TAU_0 * np.abs(random.standard_cauchy(n)),
        "lambda": np.abs(random.standard_cauchy((n, D))),
    }
    precision = 1.0 / point["c2"][:, None] + (point["tau"][:, None] * point["lambda"]) ** -2.0
    point["beta"] = random.standard_normal((n, D)) * precision**-0.5
    return point | {"eta": point["bias"][:, None] + point["beta"] @ problem.X.T}


@pytest.mark.statistical
@every_form
def test_a_form_has_the_posterior_of_several_features(form):
    problem = av.problem("horseshoe", spiral(12, 3), parametrization=form, **GIVEN)
    points = prior_draws(problem)
    truth = weighted(problem, points, of_several(points), enough=5000)
    t, limit = largest_t(batch_mean(of_several(drawn(problem, 3))), truth)
    assert t < limit
