"""Rung 2: one posterior, written in several forms, has one set of shared quantities.

Also the size-aware statement of what such a test can see: with the effective sizes required here
(400 and more) a shift of 4.5 sqrt(2 / 400) = 0.3 posterior sd in any component would be caught.
"""

import arviz_stats
import numpy as np
import pytest

import ardvark as av

FORMS = {
    "hierarchical": {},
    "marginal": {"parametrization": "marginal"},
    "integrated": {"latent_noise": "integrated"},
}
PARTS = ("eta", "feature_weight", "sample_weight")


def bounded(tree, problem):
    """Return bounded functions of the shared quantities, stacked (chain, draw, component).

    Weights have Student-t tails with nu = 3: their means converge, their variances barely. On
    [0, 1] every moment exists and the Monte Carlo error can be trusted.
    """
    posterior = tree["posterior"]
    scale = 1.0 / max(problem.data.D, np.sqrt(problem.data.N * problem.data.D))
    v = posterior["feature_weight"].values / scale
    a = posterior["sample_weight"].values
    eta = posterior["eta"].values
    primal = (v * (a @ problem.Z)) * scale  # the identified product, (chain, draw, D)
    squashed = [1 / (1 + np.exp(-eta)), v / (1 + v), np.arctan(a), np.arctan(primal)]
    return np.concatenate(squashed, axis=-1)


def summary(values):
    dataset = arviz_stats.base.array_stats
    mean = values.mean(axis=(0, 1))
    error = dataset.mcse(values, chain_axis=0, draw_axis=1, method="mean")
    size = dataset.ess(values, chain_axis=0, draw_axis=1, method="mean")
    return mean, error, size


@pytest.fixture(scope="module")
def fits(small_data):
    data = small_data(N=14, D=3)
    found = {}
    for name, hypers in {**FORMS, "none": {"latent_noise": "none"}}.items():
        # noise of sd about 2.4, so that leaving it out is another posterior by a wide margin
        problem = av.problem("rfvm", data, noise_rate=12.0, **hypers)
        tree = av.fit(problem, "nuts", random_seed=5, progressbar=False)
        assert tree.attrs["status"] == "ok", tree.attrs["reason"]
        found[name] = (problem, tree, *summary(bounded(tree, problem)))
    return found


@pytest.mark.parametrize("form", ["marginal", "integrated"])
def test_forms_agree(fits, form):
    _, _, mean0, error0, size0 = fits["hierarchical"]
    _, _, mean, error, size = fits[form]
    assert min(size0.min(), size.min()) > 400
    z = (mean - mean0) / np.sqrt(error**2 + error0**2)
    # about 50 components, two forms: |z| < 4.5 leaves one false alarm in a thousand runs
    assert np.abs(z).max() < 4.5


def test_another_model_disagrees(fits):
    """Negative control: without the latent noise it is another posterior, and the test sees it."""
    _, _, mean0, error0, _ = fits["hierarchical"]
    _, _, mean, error, _ = fits["none"]
    assert np.abs((mean - mean0) / np.sqrt(error**2 + error0**2)).max() > 6.0


def test_fingerprints_follow_the_posterior_and_forms_the_writing(fits):
    problems = {name: found[0] for name, found in fits.items()}
    same = {problems[n].fingerprint for n in FORMS}
    assert len(same) == 1
    assert problems["none"].fingerprint not in same
    assert len({p.form for p in problems.values()}) == 4


def test_nuts_has_the_expectations_of_importance_sampling(small_data):
    """An oracle that shares no code with PyMC: weigh prior draws by the likelihood.

    With few samples the prior is close enough to the posterior for importance sampling to work.
    """
    problem = av.problem("rfvm", small_data(N=6, D=2, seed=3))
    rng = np.random.default_rng(1)
    draws = [problem.simulate(rng) for _ in range(60_000)]
    names = ("sample_weight", "feature_weight", "bias", "tau")
    stacked = {k: np.stack([d[k] for d in draws]) for k in names}
    eta = problem.decision(stacked)
    log_w = problem.log_likelihood(stacked, eta).sum(axis=-1)
    w = np.exp(log_w - log_w.max())
    w /= w.sum()
    assert 1 / (w**2).sum() > 5000
    f = np.concatenate([1 / (1 + np.exp(-eta)), stacked["tau"][:, None] / 4], axis=1)
    f = f / (1 + f)
    exact = w @ f
    exact_error = np.sqrt((w**2) @ (f - exact) ** 2)

    tree = av.fit(problem, "nuts", random_seed=2, progressbar=False)
    posterior = tree["posterior"]
    eta = 1 / (1 + np.exp(-posterior["eta"].values))
    g = np.concatenate([eta, posterior["tau"].values[..., None] / 4], axis=-1)
    mean, error, size = summary(g / (1 + g))
    assert size.min() > 400
    assert (np.abs(mean - exact) < 4.5 * np.sqrt(error**2 + exact_error**2)).all()
