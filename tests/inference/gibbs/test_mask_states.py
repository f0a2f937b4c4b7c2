"""States of the binary masks' sampler: their points are copies, their starts are dispersed."""

import numpy as np
import pytest
from scipy import stats

from ardvark.inference.contract.backend import Job
from ardvark.inference.contract.chains import Length
from ardvark.inference.contract.target import Target
from ardvark.inference.gibbs import sampling
from ardvark.inference.gibbs.masks import Sampler
from tests.inference.gibbs.mask_oracle import make
from tests.support import ALARM, rng, seed


@pytest.mark.parametrize("model", [m for m, file in sampling.SAMPLERS.items() if file == "masks"])
def test_a_point_stays_what_it_was(model):
    """Sweeps change the state in place; what was stored of it belongs to its own sweep."""
    problem, random = make(model), rng(1)
    sampler = Sampler(problem)
    state = sampler.start(random, 0)
    held = [sampler.point(state)]
    copies = [{name: x.copy() for name, x in held[0].items()}]
    for _ in range(200):
        sampler.sweep(state, random)
        held.append(sampler.point(state))
        copies.append({name: x.copy() for name, x in held[-1].items()})
    for point, copy in zip(held, copies, strict=True):
        for name, x in point.items():
            np.testing.assert_array_equal(x, copy[name], err_msg=name)
        np.testing.assert_allclose(point["eta"], problem.decision(point), atol=1e-9)
    for name in copies[0]:
        if problem.hypers.FEATURE_MASK or name != "feature_weight":
            assert any((copy[name] != copies[0][name]).any() for copy in copies), name


@pytest.mark.statistical
def test_the_noise_precision_starts_at_a_draw_of_its_prior():
    problem, random = make("fs_skr", noise_shape=6.0, noise_rate=1.5), rng(2)
    sampler = Sampler(problem)
    tau = [sampler.start(random, chain).tau for chain in range(300)]
    assert stats.kstest(tau, stats.gamma(6.0, scale=1.0 / 1.5).cdf).pvalue > ALARM


@pytest.mark.statistical
def test_each_chain_starts_with_a_share_of_features_of_its_own():
    """A tenth, a half, a quarter and a fiftieth of 800: the nearest two are 6.8 sds apart."""
    problem = make(D=800, kernel="linear")
    job = Job(seed=seed(3), chains=4, draws=1)
    with sampling.chains(Target(problem), sampling.Options(), job, Length(1, 1)) as running:
        on = [int(state.zeta.sum()) for state in running.states]
    assert on[1] > on[2] > on[0] > on[3]
