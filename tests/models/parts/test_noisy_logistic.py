"""log E[sigmoid(m + sd e)] as one operation: Gauss's rule on panels, and the plain formula."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import optdb
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.db import RewriteDatabaseQuery
from scipy import special

from ardvark.models.parts.noisy_logistic import (
    LogMeanSigmoid,
    label_logp,
    log_mean_sigmoid,
    noisy_log_sigmoid,
    plain_formula,
)
from tests.support import rng

M = (-1000.0, -300.0, -101.0, -40.0, -5.0, -1.0, 0.0, 0.5, 3.0, 20.0, 300.0, 1000.0)
SD = (0.01, 0.1, 0.5, 1.0, 1.12, 1.25, 2.0, 3.7, 10.0, 31.0, 100.0)


def exact(m, sd):
    """The logarithm and its two derivatives by 20 nodes on each of 400 panels.

    A panel is 0.14 wide, and at most half the width of the sigmoid where it bends.
    """
    kink = -m / sd
    c = np.clip(kink, 0.0, sd)
    edges = np.append(np.linspace(c - 14.0, c + 14.0, 201), kink + np.linspace(-60, 60, 241) / sd)
    edges = np.unique(edges[np.abs(edges - c) <= 14.0])
    nodes, weights = np.polynomial.legendre.leggauss(20)
    half = np.diff(edges)[:, None] / 2.0
    e = edges[:-1, None] + half * (1.0 + nodes)
    z = m + sd * e
    top = special.log_expit(m + sd * c) - 0.5 * c * c
    f = np.exp(special.log_expit(z) - 0.5 * e * e - top) * half * weights
    slope, total = f * special.expit(-z), f.sum()
    value = np.log(total) + top - 0.5 * np.log(2.0 * np.pi)
    return value, slope.sum() / total, (e * slope).sum() / total


@pytest.mark.parametrize("sd", SD)
def test_value_and_derivatives(sd):
    """Also on either side of m = -sd^2, where the integrand is mirrored."""
    m = np.array([*M, -sd * sd - 0.3, -sd * sd, -sd * sd + 0.3, -0.5 * sd * sd])
    found = log_mean_sigmoid(m, np.full(len(m), sd))
    expected = np.transpose([exact(each, sd) for each in m])
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14, atol=1e-11)


def test_without_the_poles_the_rule_fails():
    """Negative control: the same nodes alone, at an sd where the poles are near."""
    e = 0.5 * np.arange(-16, 17)
    rule = np.log(0.5 * (special.expit(0.2 + 10.0 * e) @ np.exp(-0.5 * e**2)) / np.sqrt(2 * np.pi))
    assert abs(rule - exact(0.2, 10.0)[0]) > 1e-3


def test_noise_without_end_is_a_probit():
    """At sd = 1e6 the logistic's own width is lost: log Phi(m / sd), and no loop over 5e5 poles."""
    m, sd = np.array([-3e6, -1e6, 0.0, 2e6]), np.full(4, 1e6)
    value, by_m, by_sd = log_mean_sigmoid(m, sd)
    z = m / sd
    np.testing.assert_allclose(value, special.log_ndtr(z), atol=1e-5)
    mills = np.exp(-0.5 * z**2 - special.log_ndtr(z)) / np.sqrt(2.0 * np.pi)
    np.testing.assert_allclose(by_m * sd, mills, rtol=1e-5)
    np.testing.assert_allclose(by_sd * sd, -z * mills, rtol=1e-5, atol=1e-12)


def test_labels_share_one():
    eta = np.array([-1e3, -3.0, 0.0, 2.0, 1e3])[:, None]
    total = sum(np.exp(label_logp(y, eta, np.array([0.01, 1.7, 100.0]))) for y in (0, 1))
    assert total.shape == (5, 3)
    np.testing.assert_allclose(total, 1.0, atol=1e-11)


INPUTS = [pt.dvector("m"), pt.dvector("sd")]


def functions(value, mode):
    """Value, derivatives and second derivatives of a function that is not linear in it."""
    first = pt.grad((pt.tanh(value) * (1.0 + pt.arange(value.shape[0]))).sum(), INPUTS)
    second = pt.grad(sum((g * pt.cos(g)).sum() for g in first), INPUTS)
    return pytensor.function(INPUTS, [value, *first, *second], mode=mode)


def test_derivatives_are_those_of_the_plain_formula():
    """In the range where that one is good, to what it is good for."""
    random = rng(1)
    given = 3.0 * random.normal(size=7), random.uniform(0.3, 3.0, size=7)
    by_formula = functions(plain_formula(*INPUTS), "FAST_COMPILE")(*given)
    found = functions(noisy_log_sigmoid(*INPUTS), "FAST_COMPILE")(*given)
    for a, b in zip(found, by_formula, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)


def test_shapes_broadcast():
    m, sd = pt.dmatrix(), pt.dscalar()
    f = pytensor.function([m, sd], noisy_log_sigmoid(m, sd), mode="FAST_COMPILE")
    at = rng(2).normal(size=(2, 3))
    np.testing.assert_array_equal(f(at, 1.5), label_logp(1, at, 1.5))


def test_other_backends_get_the_formula():
    outputs = [noisy_log_sigmoid(*INPUTS)]
    graph = FunctionGraph(INPUTS, outputs, clone=True)
    optdb.query(RewriteDatabaseQuery(include=["jax"])).rewrite(graph)
    assert not any(isinstance(n.op, LogMeanSigmoid) for n in graph.apply_nodes)
