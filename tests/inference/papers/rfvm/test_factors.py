"""RFVM's variational factors against an independent bound, perturbations and Monte Carlo.

Negative controls: updates and rates that are known to be wrong must fail the same checks.
"""

import numpy as np
import pytest
from scipy import special, stats

from ardvark.inference.papers.rfvm import factors as rfvm_factors
from ardvark.inference.papers.rfvm.factors import Factors
from ardvark.inference.papers.rfvm.vb import Options, iterate
from ardvark.models import Inputs, rfvm
from ardvark.models.parts import ard
from ardvark.models.parts.distributions import logistic_logp
from ardvark.models.parts.effects import VISIBLE
from tests.inference.papers.rfvm.dense import (
    DENSE,
    SLAB,
    WIDE,
    arrays,
    factors,
    hypers,
)
from tests.inference.papers.whitened import check_standard_normal
from tests.support import ALARM, rng, z_limit

# --- the bound ------------------------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize(("v_factor", "given"), [("truncated", SLAB), ("folded", WIDE)])
def test_elbo_is_the_expectation_it_claims_to_be(v_factor, given):
    X, y, Z = arrays(8, 5, number=2, B=4)
    h = hypers(8, 4, 5, **given)
    q = factors(X, y, Z, h, sweeps=5, v_factor=v_factor)
    point = q.draws(rng(7), 100_000)
    lam = np.tanh(q.xi / 2) / (4 * q.xi)
    bounded = (
        np.log(special.expit(q.xi)) + (y - 0.5) * point["u"] - q.xi / 2
        - lam * (point["u"] ** 2 - q.xi**2)
    )  # fmt: skip
    likelihood = logistic_logp(y, point["u"])
    assert (bounded <= likelihood + 1e-12).all()
    joint = rfvm.log_joint(point, Inputs(X, Z), y, h) + (bounded - likelihood).sum(axis=1)
    terms = joint - q.log_q(point)
    z = (terms.mean() - q.elbo()) / (terms.std() / len(terms) ** 0.5)
    assert abs(z) < z_limit()


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("given", "v_factor", "optimum"),
    [
        (DENSE, "truncated", -3.4115), (DENSE, "folded", -3.4133),
        ({}, "truncated", None),
    ],
    ids=["dense-truncated", "dense-folded", "sparse-truncated"],
)  # fmt: skip
def test_elbo_is_below_the_evidence(given, v_factor, optimum):
    """On three fixed rows, where every start ends at one bound; the dense evidence is -2.12."""
    X, y = np.array([[-1.2], [0.1], [1.1]]), np.array([0.0, 0.0, 1.0])
    Z, h = np.array([[0.9]]), hypers(3, 1, 1, **given)
    options = Options(v_factor=v_factor, tolerance=1e-10)
    run = iterate(Factors(X, y, Z, h, rng(0), options), options)
    assert v_factor == "folded" or run.falls() == 0
    if optimum is not None:
        assert run.elbo[-1] == pytest.approx(optimum, abs=5e-5)  # as many digits as are given
    random, S = rng(11), 400_000
    a = ard.draw(random, h.sample_prior, S, signed=True)[1]
    v = ard.draw(random, h.feature_prior, S)[1]
    tau = random.gamma(h.noise_shape, 1 / h.noise_rate, S)
    eta = random.normal(0.0, h.bias_sd, S)[:, None] + (v * a * Z[0, 0])[:, None] * X[:, 0]
    u = eta + random.standard_normal((S, 3)) * tau[:, None] ** -0.5
    likelihood = np.exp(logistic_logp(y, u).sum(axis=1))
    # E_q[ln joint - ln q] with the true likelihood lies between the bound and the evidence
    point = run.q.draws(random, 50_000)
    gap = rfvm.log_joint(point, Inputs(X, Z), y, h) - run.q.log_q(point)
    slack = z_limit(2) * gap.std() / len(gap) ** 0.5
    evidence = likelihood.mean() + z_limit(2) * likelihood.std() / S**0.5
    assert run.elbo[-1] < gap.mean() + slack
    assert gap.mean() - slack < np.log(evidence)


# --- the updates ----------------------------------------------------------------------------------


def test_a_start_at_the_slab_finds_what_one_inside_the_spike_loses():
    """On fixed data of three informative features of 20, whose prior expects about five."""
    random = np.random.default_rng(0)
    X = random.standard_normal((100, 20))
    y = (random.random(100) < special.expit(X[:, :3] @ [2.0, -2.0, 1.5])).astype(float)
    h = hypers(100, 100, 20)
    ends, effects = [], []
    for inside in (False, True):
        q = Factors(X, y, X, h, np.random.default_rng(1), Options(v_factor="truncated"))
        if inside:
            q.delta_rate = q.delta_shape * h.feature_prior.scale**2 + 0.0 * q.delta_rate
            q.psi_rate = q.psi_shape * h.sample_prior.scale**2 + 0.0 * q.psi_rate
            q.m, q.precision = q.m * h.feature_prior.scale, q.delta
            q._set_v()
        run = iterate(q, q.options)
        assert run.reason is None
        assert run.falls() == 0
        ends.append(run.elbo[-1])
        effects.append(q.v * np.abs(X.T @ q.a))  # of a standard deviation of each feature, on eta
    assert ends[0] > ends[1] + 0.1
    assert effects[0][:2].min() > 0.5
    assert effects[1].max() < VISIBLE


def test_products_in_blocks_equal_one_product(monkeypatch):
    X, _, Z = arrays(6, 11, number=5, B=4)
    w = rng(0).random(11)
    monkeypatch.setattr(rfvm_factors, "_BLOCK", 3)
    np.testing.assert_allclose(rfvm_factors._product(X.T, w, Z.T), X @ np.diag(w) @ Z.T, rtol=1e-12)


def test_negative_controls_simultaneous_and_folded_lower_the_elbo():
    """Neither does so on all data (folded: on 5 of 12 like these); so the very data are fixed.

    There the simultaneous update loses 1726 and its spectral radius is 3.6; the folded one falls in
    90 of 150 sweeps, by up to 3e-5. Sequential and truncated it can fall on no data.
    """
    fixed = {"generator": np.random.default_rng}
    X, y, Z = arrays(60, 20, number=0, **fixed)
    h = hypers(60, 60, 20, **WIDE)
    steps = {}
    for v_update in ("sequential", "simultaneous"):
        q = factors(X, y, Z, h, sweeps=30, v_factor="truncated", v_update=v_update, **fixed)
        q.m = q.m + 0.5 * q.scale
        q._set_v()
        bounds = []
        for _ in range(6):  # q(v) alone, the rest held
            bounds.append(q.elbo())
            q.update_v()
        steps[v_update] = np.diff(bounds)
    assert (steps["sequential"] > 0).all()
    assert steps["simultaneous"].min() < 0.0
    # its Jacobi matrix is no contraction
    J = q.tau * (X.T @ X) * (Z.T @ q.A @ Z) / q.precision[:, None]
    np.fill_diagonal(J, 0.0)
    assert np.abs(np.linalg.eigvals(J)).max() > 1.0

    # folded: even one feature after the other, the fixed point is no maximum
    X, y, _ = arrays(100, 10, number=0, **fixed)
    q = factors(X, y, X[:1], hypers(100, 1, 10, **WIDE), sweeps=0, v_factor="folded", **fixed)
    run = iterate(q, Options(tolerance=1e-12, max_sweeps=150))
    assert run.falls() > 0


# --- draws and densities --------------------------------------------------------------------------


def laws(q):
    """SciPy's law of every factor but q(a), by name."""
    if q.options.v_factor == "truncated":
        of_v = stats.truncnorm(-q.m / q.scale, np.inf, loc=q.m, scale=q.scale)
    else:
        of_v = stats.foldnorm(np.abs(q.m) / q.scale, scale=q.scale)
    return {
        "feature_weight": of_v,
        "delta": stats.gamma(q.delta_shape, scale=1 / q.delta_rate),
        "psi": stats.gamma(q.psi_shape, scale=1 / q.psi_rate),
        "tau": stats.gamma(q.tau_shape, scale=1 / q.tau_rate),
        "bias": stats.norm(q.b, q.var_b**0.5),
        "u": stats.norm(q.u, q.var_u**0.5),
    }


@pytest.mark.statistical
@pytest.mark.parametrize("v_factor", ["truncated", "folded"])
def test_draws_have_the_law_of_q(v_factor):
    """Each variable by a Kolmogorov-Smirnov test; q(a) whitened, with its correlations."""
    X, y, Z = arrays(10, 6, number=9, B=4)
    q = factors(X, y, Z, hypers(10, 4, 6, **WIDE), sweeps=6, v_factor=v_factor)
    S = 20_000
    point = q.draws(rng(2), S)
    white = np.linalg.solve(np.linalg.cholesky(q.Sigma), (point.pop("sample_weight") - q.a).T)
    check_standard_normal(white.T)
    found = {name: law.cdf(point.pop(name)) for name, law in laws(q).items()}
    assert not point  # every variable has been looked at
    uniform = np.concatenate([u.reshape(S, -1) for u in found.values()], axis=1)
    p_values = [stats.kstest(u, "uniform").pvalue for u in uniform.T]
    assert min(p_values) > ALARM / len(p_values)


@pytest.mark.parametrize("v_factor", ["truncated", "folded"])
def test_log_q_is_the_sum_of_scipy_densities(v_factor):
    X, y, Z = arrays(9, 5, number=10, B=4)
    q = factors(X, y, Z, hypers(9, 4, 5, **WIDE), sweeps=3, v_factor=v_factor)
    p, law = q.draws(rng(4), 20), laws(q)
    want = stats.multivariate_normal(q.a, q.Sigma).logpdf(p["sample_weight"])
    want += law["feature_weight"].logpdf(p["feature_weight"]).sum(axis=1)
    want += law["bias"].logpdf(p["bias"]) + law["tau"].logpdf(p["tau"])
    without = {k: x for k, x in p.items() if k not in ("psi", "delta", "u")}
    np.testing.assert_allclose(q.log_q(without), want, rtol=1e-9)
    for name in ("psi", "delta", "u"):
        want += law[name].logpdf(p[name]).sum(axis=1)
    np.testing.assert_allclose(q.log_q(p), want, rtol=1e-9)


# --- memory and size ------------------------------------------------------------------------------


def test_starts_share_the_columns_and_change_nothing():
    X, y, Z = arrays(9, 6, number=3, B=4)
    h = hypers(9, 4, 6)
    columns = rfvm_factors.Columns.of(X, Z)
    before = [x.copy() for x in (columns.Xt, columns.Zt, columns.G)]
    options = Options(prune=True)
    shared, own = (Factors(X, y, Z, h, rng(0), options, given) for given in (columns, None))
    assert shared.Xt is columns.Xt
    for q in (shared, own):
        q.shares = 0.99, 0.001
        for _ in range(4):
            q.sweep()
            q.prune()
        q.release()
    assert len(shared.features) < 6
    np.testing.assert_array_equal(shared.v, own.v)
    for x, old in zip((columns.Xt, columns.Zt, columns.G), before, strict=True):
        np.testing.assert_array_equal(x, old)
    assert rfvm_factors.Columns.of(X, X).Zt is not columns.Zt
    both = rfvm_factors.Columns.of(X, X)
    assert both.Zt is both.Xt
