"""The vectorised diagnostics against ArviZ's, one component at a time."""

import numpy as np
import pytest
from arviz_stats.base import array_stats

from ardvark.inference.fits import chains
from tests.support import rng


def sticky(random, shape, stay):
    """Chains that repeat a draw with probability `stay`: ties, and autocorrelation."""
    x = random.normal(size=shape)
    for t in range(1, shape[1]):
        kept = random.random((shape[0], *shape[2:])) < stay
        x[:, t] = np.where(kept, x[:, t - 1], x[:, t])
    return x


def slow(random, shape, r):
    x = random.normal(size=shape)
    for t in range(1, shape[1]):
        x[:, t] = r * x[:, t - 1] + np.sqrt(1 - r * r) * x[:, t]
    return x


def special(random, chains_, draws):
    """Components (chain, draw, 9), each with something that a formula may trip over."""
    x = random.normal(size=(chains_, draws, 9))
    x[..., 0] = 2.5  # never changes
    x[..., 1] = np.arange(chains_)[:, None]  # each chain stuck elsewhere
    x[..., 2] = random.random((chains_, draws)) < 0.3  # one bit
    x[..., 3] = (random.random((chains_, draws)) < 0.5) * 1e-9
    x[..., 4] = 0.0
    x[0, draws // 2, 4] = 1.0  # changed once
    x[..., 5] = np.where(np.arange(draws) % 2, 1.0, -1.0)  # antithetic
    x[..., 6] = np.arange(draws)  # a trend
    x[0, 1, 7] = np.nan
    x[..., 8] = random.integers(0, 3, (chains_, draws))
    return x


def arrays(random, chains_, draws):
    shape = (chains_, draws, 5)
    yield "independent", random.normal(size=shape)
    yield "slow", slow(random, shape, 0.95)
    yield "antithetic", slow(random, shape, -0.6)
    yield "sticky", sticky(random, shape, 0.7)
    yield "heavy tails", random.standard_cauchy(shape)
    yield "rounded", np.round(random.normal(size=shape))
    yield "apart", random.normal(size=shape) + np.arange(chains_)[:, None, None]
    yield "special", special(random, chains_, draws)


SIZES = [(4, 200), (4, 201), (2, 57), (3, 10), (3, 8), (2, 4), (2, 5), (2, 6), (1, 100), (4, 3)]


@pytest.mark.parametrize(("count", "draws"), SIZES)
def test_every_number_is_that_of_arviz(count, draws):
    axes = {"chain_axis": 0, "draw_axis": 1}
    for name, x in arrays(rng(draws), count, draws):
        with np.errstate(all="ignore"):
            rhat = array_stats.rhat(x, **axes)
            bulk = array_stats.ess(x, method="bulk", **axes)
            tail = array_stats.ess(x, method="tail", prob=(0.05, 0.95), **axes)
            mean = array_stats.ess(x, method="mean", **axes)
            errors = [array_stats.mcse(x, method=m, **axes) for m in ("mean", "sd")]

        def same(found, expected, name=name):
            np.testing.assert_allclose(found, expected, rtol=1e-7, err_msg=name)

        same(chains.rhat(x), rhat)
        same(chains.ess(x, "bulk"), bulk)
        same(chains.ess(x, "tail"), tail)
        same(chains.ess(x, "mean"), mean)
        for found, expected in zip(chains.mixed(x), (rhat, bulk, tail), strict=True):
            same(found, expected)
        if draws > 6:  # of a few tied draws the error of the sd is the root of rounding
            same(chains.mcse(x, "mean"), errors[0])
            same(chains.mcse(x, "sd"), errors[1])


def test_blocks_change_nothing(monkeypatch):
    x = rng().normal(size=(4, 50, 23))
    whole = chains.mixed(x), chains.mcse(x, "sd")
    monkeypatch.setattr(chains, "_BLOCK", 1000)  # five components at a time
    np.testing.assert_array_equal(chains.mixed(x), whole[0])
    np.testing.assert_array_equal(chains.mcse(x, "sd"), whole[1])


@pytest.mark.parametrize(("count", "draws"), [(4, 200), (3, 41), (2, 12)])
def test_bits_have_the_numbers_of_their_values(count, draws):
    """Ranks of two values are a linear function of them; within half-chains no mean counts."""
    x = sticky(rng(draws), (count, draws, 5), 0.3) > 0.2
    x[0, :, 4] = x[1:, :, 4] = True  # never changes: a draw for each half-chain
    x[0, :, 3] = np.arange(draws) % 2 == 0
    rhat, size, within = chains.bits(x)
    np.testing.assert_allclose(rhat[:4], chains.rhat(x)[:4])
    np.testing.assert_allclose(size[:4], chains.ess(x, "bulk")[:4])
    assert within[4] == 2 * count
    half, moved = draws // 2, x[..., :4].astype(float)
    moved[:, :half] += rng(1).normal(size=(count, 1, 4))
    moved[:, -half:] += rng(2).normal(size=(count, 1, 4))
    np.testing.assert_allclose(chains.within(moved), within[:4])
