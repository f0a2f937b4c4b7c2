"""The binary masks' sampler starts its chains apart."""

import pytest
from scipy import stats

from ardvark.inference.samplers.gibbs import method
from ardvark.inference.samplers.gibbs.masks import Sampler
from ardvark.inference.target.backend import Job
from ardvark.inference.target.length import Length
from ardvark.inference.target.target import Target
from tests.inference.samplers.gibbs.mask_oracle import make
from tests.support import ALARM, rng, seed


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
    with method.chains(Target(problem), method.Options(), job, Length.of_draws(1)) as running:
        on = [int(state.zeta.sum()) for state in running.states]
    assert on[1] > on[2] > on[0] > on[3]
