"""When two numbers are one: what is computed in two ways, and what only looks like it."""

import math

import numpy as np

from ardvark.common.rounding import differ
from tests.support import rng


def test_one_number_computed_in_two_ways_does_not_differ():
    """Of sixteen terms: fifteen sums or products, each off by at most half of eps."""
    draws = rng(0)
    for _ in range(2000):
        terms = np.exp(draws.normal(0.0, 10.0, size=16))
        forth, back = terms.cumsum()[-1], terms[::-1].cumsum()[-1]
        assert not differ(forth, back)
        assert not differ(forth, math.fsum(terms))
        assert not differ(terms.cumprod()[-1], terms[::-1].cumprod()[-1])


def test_the_least_difference_that_counts():
    """At any size, down to where float64 has no more digits."""
    eps = np.finfo(float).eps
    for size in (1.0, -1.0, 1e9, 1e-9, 1e300, 1e-290):
        assert not differ(size, size * (1.0 + 15.0 * eps))
        assert differ(size, size * (1.0 + 17.0 * eps))
    assert differ(0.0, 5e-324)
    assert differ(-1.7e308, 1.7e308)
    assert not differ(0.0, -0.0)
