"""The released RFVM program as an option: its rate of tau, its bound, its pruning and its stop.

`lab/tests/papers/test_authors.py` compares forty iterations with the program's own numbers.
"""

import numpy as np
import pytest

import ardvark as av
from ardvark.common.validate import InputError
from ardvark.inference.papers.rfvm.program import IMPLIED, Program
from ardvark.inference.papers.rfvm.stopping import averaged
from ardvark.inference.papers.rfvm.vb import Options, iterate
from tests.inference.papers.rfvm.dense import FLAT, arrays, hypers
from tests.support import rng

OPTIONS = Options(program=True, **IMPLIED)


def program(N=30, D=5, number=3, **h):
    """A run's q on fixed numbers, before its first iteration."""
    X, y, Z = arrays(N, D, number=number, generator=np.random.default_rng)
    return Program(X, y, Z, hypers(N, N, D, **(h or FLAT)), np.random.default_rng(number), OPTIONS)


def test_the_rate_of_tau_has_the_variances_against_all_pairs():
    """With D x D matrices; N |u|^2 in the first iteration, |u|^2 in the second."""
    q = program(noise_shape=1.5, noise_rate=0.7)
    for first in (True, False):
        q.update_a()
        q.update_v()
        u, X, Z, c = q.u, q.Xt.T, q.Zt.T, q.u - q.b
        q.update_tau()
        pairs = (X.T @ X) * (Z.T @ q.A @ Z)
        squares = (len(u) if first else 1.0) * (u @ u) - u @ u + c @ c
        R = squares + np.sum(q.var_u + q.var_b) - 2.0 * c @ X @ (q.v * (Z.T @ q.a))
        R += q.v @ pairs @ q.v + q.var_v @ pairs.sum(axis=1)
        assert q.tau_rate == pytest.approx(0.7 + 0.5 * R, rel=1e-10)
        q.add_bound()


class Wide(Program):
    """Var(v) is large for the first feature, whose pairs sum to less than nothing."""

    def update_v(self):
        super().update_v()
        self.var_v = np.array([1e9, 0.0])


def test_a_rate_of_tau_that_is_negative_ends_the_fit():
    """Of x_2 = -x_1 and a centre (1, 1000), G o P has the row (1, -1000) N a^2."""
    X, y = np.tile([[1.0, -1.0], [-1.0, 1.0]], (2, 1)), np.array([0.0, 1.0] * 2)
    data = X, y, np.array([[1.0, 1e3]]), hypers(4, 1, 2, **FLAT)
    run = iterate(Wide(*data, np.random.default_rng(1), OPTIONS), OPTIONS)
    assert run.reason.code == "failed"
    assert "the released rate of tau is -" in str(run.reason)


def test_what_was_pruned_is_in_the_bound_as_small_constants():
    """The bound of a pruned q is that of one with these constants in the removed places."""
    q = program()
    for _ in range(8):
        q.sweep()
    q.shares = (0.5, 0.5)
    q.prune()
    q.sweep()
    q.add_bound()
    kept, lost = len(q.v), 5 - len(q.v)
    at, lost_a = len(q.a), 30 - len(q.a)
    assert lost > 0
    assert lost_a > 1
    small, small_a = 0.05 * q.v.max(), 0.05 * np.abs(q.a).max()
    logs = np.log(q.delta_rate).sum() + lost * np.log(small)
    shape = (kept * 1e-12 + lost * small) / 5
    want = -(15.0 + 1e-14 - 2.0) * np.log(q.tau_rate) - (0.5 + shape - 2.0) * logs
    logs = np.log(q.psi_rate).sum() + lost_a * np.log(small_a)
    want -= (0.5 + (at * 1e-12 + lost_a * small_a) / 30 - 2.0) * logs
    Sigma = np.full((30, 30), small_a)
    Sigma[:at, :at] = q.Sigma
    found = np.linalg.slogdet(Sigma)[1]
    want -= 0.5 * found if np.isfinite(found) else 0.0  # nothing before it
    want -= 2.5 * (np.log(q.var_v).sum() + lost * np.log(small))
    assert q.bounds[-1] == pytest.approx(want - 0.5 * q.b**2 - q.var_b, rel=1e-10)


def test_a_last_pruning_leaves_the_marginal_of_q():
    q = program()
    for _ in range(8):
        q.sweep()
    Sigma, A = q.Sigma, q.A
    q.shares = (0.01, 0.5)
    assert q.prune()
    kept = np.ix_(q.samples, q.samples)
    assert len(q.samples) < 30
    np.testing.assert_allclose(q.factor @ q.factor.T, Sigma[kept], rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(q.A, A[kept])
    assert not q.prune()


def test_a_run_ends_by_the_average_of_its_own_bound():
    q = program()
    run = iterate(q, Options(program=True, **IMPLIED, tolerance=1e-3, max_sweeps=1000))
    count = len(q.bounds)
    assert 300 < count < 1000
    assert averaged(q.bounds, 1e-3)
    assert not averaged(q.bounds[:-1], 1e-3) or count == 301
    assert run.features[5] == 5  # nothing is pruned before the seventh iteration
    assert run.features[-1] == len(q.features)


def test_the_option_sets_the_others_and_keeps_the_bound():
    X, y, _ = arrays(20, 4, number=2, generator=rng)
    problem = av.problem("rfvm", (X, y.astype(int)), **FLAT)
    given = {"draws": 3, "chains": 1, "random_seed": 2, "progressbar": False, "restarts": 1}
    tree = av.fit(problem, "rfvm_vb", program=True, max_sweeps=30, **given)
    details = tree["fit"]
    assert details["program_bound"].dims == ("sweep",)
    assert details["program_bound"].shape == (30,)
    assert tree.attrs["status"] == "not_converged"
    with pytest.raises(InputError, match="program"):
        av.fit(problem, "rfvm_vb", program="yes", **given)
