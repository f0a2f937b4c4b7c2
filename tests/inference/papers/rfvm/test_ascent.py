"""RFVM's variational Bayes: each update is the maximum of the bound over its factor, (18), (20).

The bound is written with D x D matrices and quadrature (`dense.py`).
"""

import numpy as np
import pytest

from ardvark.inference.papers.rfvm.factors import Factors
from ardvark.inference.papers.rfvm.vb import Options
from tests.inference.papers.ascent import Ascent, check_ascent, check_control
from tests.inference.papers.rfvm.dense import (
    PARAMETERS,
    SLAB,
    WIDE,
    arrays,
    dense_elbo,
    factors,
    hypers,
    parameters,
    v_moments,
)

FACTORS = {
    "a": ("a", "Sigma"),
    "v": ("m_last", "precision_last"),
    "delta": ("delta_shape", "delta_rate"),
    "psi": ("psi_shape", "psi_rate"),
    "b": ("b", "var_b"),
    "u": ("u", "var_u"),
    "xi": ("xi",),
    "tau": ("tau_shape", "tau_rate"),
}
CHARTS = {
    name: {"a": "real", "b": "real", "u": "real", "m_last": "real", "Sigma": "covariance"}.get(
        name, "positive"
    )
    for names in FACTORS.values()
    for name in names
}


def vb(given=WIDE, v_factor="truncated", v_update="sequential", N=10, D=6, B=4):
    """The case of one prior and one kind of q(v)."""
    X, y, Z = arrays(N, D, number=3, B=B)
    h = hypers(N, B, D, **given, bias_sd=0.7)
    kind = {"v_factor": v_factor, "v_update": v_update}

    def values(q):
        """A sequential update leaves the last feature at its maximum: the others moved before."""
        p = parameters(q)
        return p | {"m_last": p["m"][-1:], "precision_last": p["precision"][-1:], "v": q.v}

    def dense(p):
        ends = {name: np.append(p[name][:-1], p[f"{name}_last"]) for name in ("m", "precision")}
        return dense_elbo({k: p[k] for k in PARAMETERS} | ends, X, y, Z, h, v_factor)

    def updated(p):
        """C.25, C.26, feature by feature or all at once, with moments by quadrature."""
        A, tau = p["Sigma"] + np.outer(p["a"], p["a"]), p["tau_shape"] / p["tau_rate"]
        G, P, v, m = X.T @ X, Z.T @ A @ Z, p["v"].copy(), np.empty(D)
        delta, r = p["delta_shape"] / p["delta_rate"], p["u"] - p["b"]
        precision = tau * np.diag(G) * np.diag(P) + delta + h.feature_slab**-2.0
        for d in range(D):
            old = v if v_update == "sequential" else p["v"]
            cross = sum(G[d, e] * P[d, e] * old[e] for e in range(D) if e != d)
            m[d] = tau * ((X[:, d] @ r) * (Z[:, d] @ p["a"]) - cross) / precision[d]
            one = {"m": m[d : d + 1], "precision": precision[d : d + 1]}
            v[d] = v_moments(one, v_factor)[0][0]
        return {"m": m, "precision": precision, "v": v}

    exact = v_factor == "truncated" and v_update == "sequential"
    return Ascent(
        start=lambda number: factors(X, y, Z, h, number, sweeps=2, **kind),
        steps={name: getattr(Factors, f"update_{name}") for name in FACTORS},
        values=values,
        dense=dense,
        objective=Factors.elbo,
        charts=CHARTS,
        maximises={k: (names, None) for k, names in FACTORS.items() if exact or k != "v"},
        formula={"v": updated},
        rises=exact,
        end=settle if exact else None,
        slack=1e-3,
    )


def settle(q):
    """Sweep until nothing changes, then once over every factor."""
    for _ in range(3000):
        before = q.elbo()
        q.sweep()
        if abs(q.elbo() - before) < 1e-11:
            return


CASES = [
    {"given": WIDE},
    {"given": SLAB, "N": 7, "D": 12, "B": 7},
    {"given": SLAB, "v_factor": "folded"},
    {"given": WIDE, "v_factor": "folded", "v_update": "simultaneous"},
    {"given": WIDE, "v_update": "simultaneous", "N": 7, "D": 12, "B": 7},
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)) or "wide")
def test_ascent(case):
    check_ascent(vb(**case))


def without_slab(name):
    """The update of one kind of weight as if it had no slab."""

    def update(q):
        slab = getattr(q, f"slab_{name}")
        setattr(q, f"slab_{name}", 0.0)
        getattr(Factors, f"update_{name}")(q)
        setattr(q, f"slab_{name}", slab)

    return update


def released_tau(q):
    """The released rate: Var(v_d) against all pairs of features."""
    pairs = (q.Xt @ q.Xt.T) * (q.Zt @ q.A @ q.Zt.T)
    np.fill_diagonal(pairs, 0.0)
    q.tau_rate = q.h.noise_rate + 0.5 * (q.R() + q.var_v @ pairs.sum(axis=1))


def set_of(name, formula):
    """A step that sets one attribute to a formula of q."""
    return lambda q: setattr(q, name, formula(q))


def folded_v(q):
    """C.24 to C.28: a folded normal's moments in the place of a truncated one's."""
    options = q.options
    q.options = Options(v_factor="folded")
    q.update_v()
    q.options = options


WRONG = {
    "a-without_slab": ("a", without_slab("a")),
    "a-sign": ("a", lambda q: (q.update_a(), setattr(q, "a", -q.a))),
    "v-without_slab": ("v", without_slab("v")),
    "v-folded": ("v", folded_v),
    "delta-without_variance": (
        "delta", set_of("delta_rate", lambda q: q.h.feature_rate + q.v**2 / 2)
    ),
    "psi-without_variance": ("psi", set_of("psi_rate", lambda q: q.h.sample_rate + q.a**2 / 2)),
    "psi-of_the_other_prior": (
        "psi", set_of("psi_rate", lambda q: q.h.feature_rate + np.diag(q.A) / 2)
    ),
    "b-without_prior": ("b", set_of("var_b", lambda q: 1.0 / (len(q.y) * q.tau))),
    "u-without_half": (
        "u", set_of("u", lambda q: q.var_u * (q.y + q.tau * (q.M @ q.a + q.b)))
    ),
    "xi-without_variance": ("xi", set_of("xi", lambda q: np.abs(q.u))),
    "tau-without_var_u": (
        "tau", set_of("tau_rate", lambda q: q.h.noise_rate + (q.R() - q.var_u.sum()) / 2)
    ),
    "tau-released": ("tau", released_tau),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_step_fails(wrong):
    check_control(vb(SLAB), *WRONG[wrong])
