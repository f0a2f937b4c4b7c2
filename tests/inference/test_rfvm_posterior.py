"""Rung 2 for RFVM: one posterior, written in several forms, has one set of shared quantities.

All are compared with an oracle that shares no code with PyMC: prior draws weighed by the
likelihood, for so few samples that this works. A mean of NUTS has an error of about 1/50 posterior
sd and the limit is near 6 errors, so a shift of 0.15 sd in any component would be caught.

The default run has the form whose every variable is drawn; the slow one those that integrate
precisions or noise out, whose density `tests/models` compares with its own by quadrature.
"""

import numpy as np
import pytest
from scipy import special

import ardvark as av
from ardvark.models.parts import ard
from tests.inference.batches import batch_mean, largest_t, weighted
from tests.inference.spiral import spiral
from tests.support import rng, seed

FORMS = {
    "hierarchical, explicit": {},
    "marginal, explicit": {"parametrization": "marginal"},
    "hierarchical, integrated": {"latent_noise": "integrated"},
    "marginal, integrated": {"parametrization": "marginal", "latent_noise": "integrated"},
}
CASES = [
    pytest.param(form, id=form, marks=pytest.mark.slow if number else ())
    for number, form in enumerate(FORMS)
]


def make(**hypers):
    """Sixteen points and three centres; noise of sd 4, so that leaving it out is visible."""
    return av.problem("rfvm", spiral(16), basis=[0, 5, 10], noise_rate=30.0, **hypers)


def bounded(point, Z):
    """Return bounded functions (..., component) of eta, the weights, their product and tau.

    The dense prior's weights have Student-t tails with nu = 3: their means converge, their
    variances barely. On [0, 1] every moment exists.
    """
    D, N = Z.shape[1], len(Z)
    scale = 1.0 / max(D, np.sqrt(N * D))
    v, a = point["feature_weight"] / scale, point["sample_weight"]
    primal = v * (a @ Z) * scale  # the identified product (..., D)
    tau = point["tau"][..., None] / 4.0
    parts = [special.expit(point["eta"]), v / (1 + v), np.arctan(a), np.arctan(primal)]
    return np.concatenate([*parts, tau / (1 + tau)], axis=-1)


def prior_mean(problem, draws=60_000):
    """Return the posterior's Mean of `bounded`, from weighed draws of the prior."""
    h, random = problem.hypers, rng(1)
    B, D = problem.Z.shape
    a = ard.draw(random, h.sample_prior, draws * B, signed=True)[1]
    v = ard.draw(random, h.feature_prior, draws * D)[1]
    point = {
        "sample_weight": a.reshape(draws, B),
        "feature_weight": v.reshape(draws, D),
        "bias": h.bias_sd * random.standard_normal(draws),
        "tau": random.gamma(h.noise_shape, 1.0 / h.noise_rate, draws),
    }
    w = point["feature_weight"] * (point["sample_weight"] @ problem.Z)
    point["eta"] = point["bias"][:, None] + w @ problem.X.T
    return weighted(problem, point, bounded(point, problem.Z), enough=2000)


@pytest.fixture(scope="module", params=CASES)
def fitted(request):
    """The Mean of a form's fit."""
    problem = make(**FORMS[request.param])
    tree = av.fit(problem, "nuts", random_seed=seed(5), draws=2500, progressbar=False)
    assert tree.attrs["status"] == "finished", tree.attrs["reason"]
    point = {str(k): v.values for k, v in tree["posterior"].data_vars.items()}
    return batch_mean(bounded(point, problem.Z))


@pytest.fixture(scope="module")
def truth():
    return prior_mean(make())


@pytest.mark.statistical
def test_a_form_has_the_posterior_of_the_paper(fitted, truth):
    t, limit = largest_t(fitted, truth)
    assert t < limit


@pytest.mark.statistical
def test_another_model_disagrees(fitted):
    """Negative control: without the latent noise it is another posterior, and the test sees it.

    Over 9 seeds the largest t was 15 to 21, with an sd of 2; the limit is 6.4.
    """
    t, limit = largest_t(fitted, prior_mean(make(latent_noise="none")))
    assert t > limit


def test_fingerprints_follow_the_posterior_and_forms_the_writing():
    problems, none = [make(**hypers) for hypers in FORMS.values()], make(latent_noise="none")
    assert len({p.fingerprint for p in problems}) == 1
    assert none.fingerprint != problems[0].fingerprint
    assert len({p.form for p in (*problems, none)}) == 5


def test_prediction_does_not_depend_on_the_form():
    """The latent noise is integrated out of it, also where the form keeps it as a variable."""
    explicit, integrated = make(), make(latent_noise="integrated")
    silent, random = make(latent_noise="none"), rng(2)
    for _ in range(5):
        point = explicit.simulate(random)
        expected = integrated.log_likelihood(point)
        np.testing.assert_array_equal(explicit.log_likelihood(point), expected)
        assert np.abs(silent.log_likelihood(point) - expected).max() > 1e-3
