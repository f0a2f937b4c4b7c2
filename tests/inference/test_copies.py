"""Rung 2 for the sparse prior: two copies of an informative feature, both ways to explain the data.

Under the sparse prior either copy may be visible, or both, and between the two lies little
probability: a sampler that stays with one copy shows a fine trace and is wrong. NUTS is compared
with prior draws weighed by the likelihood, which see every mode and share no code with PyMC. All
eight P(active) and the probabilities of "both copies" and "one of them" are asked for; their
errors are about 0.01 to 0.02, so a shift of 0.15 would be caught.
"""

import numpy as np
import pytest
from scipy import special

import ardvark as av
from ardvark.models.parts import ard
from ardvark.models.parts.effects import VISIBLE
from tests.inference.batches import Mean, batch_mean, largest_t
from tests.support import rng, seed

D = 8
MODELS = ["pfcvm", pytest.param("rfvm", marks=pytest.mark.slow)]


def make(name, **hypers):
    """Sixteen rows; the first two features are the same, and the labels follow them."""
    random = np.random.default_rng(3)
    X = random.normal(size=(16, D))
    X[:, 1] = X[:, 0]
    y = (X[:, 0] + 0.5 * random.normal(size=16) > 0.0).astype(int)
    expected = {"active_features": 1.0, "slab": 4.0} | hypers
    return av.problem(name, (X, y), basis=[0, 5, 10], **expected)


def asked(problem, theta, a):
    """Return (..., D + 2): which features are visible, whether both copies are, whether one is."""
    w = theta * (a @ problem.Z)
    visible = np.abs(w) * np.sqrt(np.mean(problem.X**2, axis=0)) > VISIBLE
    one, other = visible[..., :1], visible[..., 1:2]
    return np.concatenate([visible, one & other, one ^ other], axis=-1).astype(float)


def weighed(problem, draws):
    """Return the posterior's Mean of `asked` by importance sampling from the prior."""
    h, random = problem.hypers, rng(1)
    signed = problem.spec.name == "rfvm"
    B = len(problem.Z)
    a = ard.draw(random, h.sample_prior, draws * B, signed=signed)[1].reshape(draws, B)
    theta = ard.draw(random, h.feature_prior, draws * D)[1].reshape(draws, D)
    point = {"feature_weight": theta, "bias": h.bias_sd * random.standard_normal(draws)}
    if signed:
        point["tau"] = random.gamma(h.noise_shape, 1.0 / h.noise_rate, draws)
    else:
        a = a * problem.inputs.basis_labels
    eta = point["bias"][:, None] + (theta * (a @ problem.Z)) @ problem.X.T
    point |= {"sample_weight": a, "eta": eta}
    weight = special.softmax(problem.log_likelihood(point, eta).sum(-1))
    assert 1.0 / (weight**2).sum() > 1000
    f = asked(problem, theta, a)
    value = weight @ f
    return Mean(value, np.sqrt((weight**2) @ (f - value) ** 2), np.inf)


@pytest.fixture(scope="module", params=MODELS)
def case(request):
    """A problem, how many draws its oracle needs, and the Mean of a fit by NUTS."""
    problem = make(request.param)
    tree = av.fit(problem, "nuts", random_seed=seed(2), draws=2500, progressbar=False)
    assert tree.attrs["status"] == "finished", tree.attrs["reason"]
    posterior = tree["posterior"]
    weights = (posterior[k].values for k in ("feature_weight", "sample_weight"))
    return (
        problem,
        500_000 if request.param == "rfvm" else 200_000,
        batch_mean(asked(problem, *weights)),
    )


@pytest.mark.statistical
def test_nuts_visits_both_copies(case):
    problem, draws, found = case
    expected = weighed(problem, draws)
    assert expected.value[-1] > 0.3  # one of the two, not both: there are two modes
    t, limit = largest_t(found, expected)
    assert t < limit, (found.value, expected.value)


@pytest.mark.statistical
def test_another_prior_is_seen(case):
    """Negative control: weighed draws of a prior with three times the visible features."""
    problem, draws, found = case
    other = weighed(make(problem.spec.name, active_features=3.0), draws)
    t, limit = largest_t(found, other)
    assert t > limit
