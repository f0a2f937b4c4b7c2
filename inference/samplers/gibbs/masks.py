"""Exact Gibbs sampler for FS-SKLR, SKLR and FS-SKR: the state, and the order of its moves.

The target is the joint posterior of both masks, the coefficients and their auxiliary variables
(`models/fsklr.py`). One sweep has these steps, in this order:

1. features      zeta | alpha, z, with omega integrated out: each bit from its full conditional
                 under the logistic likelihood, then pairs and swaps. Leaves omega stale.
2. augment       omega_i ~ PG(1, eta_i) (Polson, Scott, Windle 2013, J. Am. Stat. Assoc. 108).
                 Given omega the likelihood is normal in alpha. FS-SKR is normal already and draws
                 its noise precision tau instead.
3. masks         z | zeta, omega, then zeta | z, omega (where that is costly, only in every
                 second to eighth sweep), with alpha integrated out: each bit, then pairs and
                 swaps. Leaves alpha stale.
4. coefficients  alpha | zeta, z, omega with the same omega; alpha_j ~ N(0, 1/xi) where z_j = 0.
5. once more     2, zeta as in 3, and 4, where it costs little.
6. eta           2 and 4 again, four times: given the masks, alpha follows omega slowly where the
                 labels are nearly certain, and this costs little beside a visit of the masks.
7. probabilities of the masks, if the form keeps them; every other step has them integrated out.

Covariates add C g to eta, which is an offset in all of these: r of the working likelihood of
K'alpha is r - w C g. Each draw of alpha is followed by one of g | alpha, omega (`covariates.py`),
after which nothing reads that r. It is renewed with omega, which comes next.

The order is part of the algorithm. From 3, and from the visit in 5, to the next draw of alpha,
nothing may read alpha or renew omega, and 3 must not use a stale omega. That this order is exact,
and others are not, `tests/inference/samplers/gibbs/test_masks.py` shows by enumeration. The moves
are in `mask_moves.py`.

Features are visited in 1 and in 3, because each visit works well where the other fails. Given
alpha, a bit is cheap to draw and mixes best if the data are not informative. But if the labels are
informative, alpha fits only its own mask, and of two equal features, the second rarely joins the
first. With alpha integrated out it does, at a higher cost. Correlated features need swaps, where
one must leave for another to enter, and pairs, where each is useful only if the other is there.
`lab/algorithms/ALGORITHMS.md` shows all of these.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ardvark.models import Problem, fs_skr, fsklr
from ardvark.models.parts.covariates import draw
from ardvark.models.parts.masks import expected_selected, mask_log_odds

from .covariates import Covariates
from .mask_kernel import Active, Kernel, rebuild
from .mask_moves import Working, draw_coefficients, move_features, move_samples
from .partners import correlated
from .products import by_features
from .sampler import GibbsSampler, draw_omega

REBUILD = 200  # sweeps after which M is summed from scratch
AGAIN = 4  # more draws of omega and alpha in a sweep
PARTNERS = 4  # most correlated features that a feature may pair or swap with


def swaps(n: int) -> int:
    """Return how many swaps are tried in a visit of n bits; it depends on no state."""
    return min(20, max(5, n // 2))


@dataclass
class State:
    """One chain's state; arrays are changed in place.

    zeta (D,), z (B,), alpha (B,), eta (N,); `active` holds the kernel of the A active samples;
    tau is the noise precision of FS-SKR and 0 for the logistic models. covariate (K,) are the
    weights of the covariates, and added (N,) what they add to eta, empty without any.
    """

    zeta: np.ndarray
    z: np.ndarray
    alpha: np.ndarray
    eta: np.ndarray
    active: Active
    A: int
    tau: float
    working: Working
    probabilities: dict[str, np.ndarray]
    covariate: np.ndarray
    added: np.ndarray
    sweeps: int = 0
    features_changed: int = 0
    samples_changed: int = 0


class Sampler(GibbsSampler):
    """The sampler of one problem. It has no state, so chains can share it.

    Parameters
    ----------
    problem : Problem
        A problem of fsklr, sklr or fs_skr.
    """

    STEPS = (
        "begin", "features", "augment", "samples", "collapsed_features", "coefficients",
        "probabilities",
    )  # fmt: skip

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        h = problem.hypers
        assert isinstance(h, fsklr.SampleMaskHypers)  # as `supports` says
        self.hypers = h
        self.masked = h.FEATURE_MASK
        self.left_out |= set() if self.masked else {"features", "collapsed_features"}
        self.left_out |= set() if h.mask_probability == "explicit" else {"probabilities"}
        self.noise = h if isinstance(h, fs_skr.Hypers) else None  # the normal likelihood's
        self.covariates = Covariates(problem)
        a = {variable: a for variable, _, a in h.masks()}
        Xt, Zt = by_features(problem)
        self.kernel = Kernel(Xt, Zt, float(h.delta), h.kernel_of().by_distance)
        (self.D, self.N), self.B = Xt.shape, Zt.shape[1]
        self.odds_z = mask_log_odds(np.arange(self.B), self.B, a["z"], h.mask_prior)
        self.partners = correlated(problem.X, PARTNERS)
        # attempts in a visit of the features; many pairs are not equal, and those cost nothing
        self.pairs, self.swaps = min(50, 3 * self.D), swaps(self.D)
        # what a visit with alpha integrated out costs beside the rest of a sweep, roughly: A / 2
        # as much for each bit; under the printed prior half of all samples are on
        on = max(16.0, expected_selected(self.B, a["z"], h.mask_prior))
        cost = 0.5 * on * self.D / (self.B + self.D)
        self.collapsed_every = min(8, max(1, round(cost)))
        self.collapsed_visits = 2 if self.masked and cost <= 0.5 else 1
        if self.masked:
            self.odds_zeta = mask_log_odds(np.arange(self.D), self.D, a["zeta"], h.mask_prior)

    # --- states -----------------------------------------------------------------------------------

    def start(self, rng: np.random.Generator, chain: int) -> State:
        """Return a start that differs from chain to chain: a few bits on, or up to half of them."""
        noise, share = self.noise, (0.1, 0.5, 0.25, 0.02)[chain % 4]
        zeta = rng.random(self.D) < share if self.masked else np.ones(self.D)
        tau = float(rng.gamma(noise.noise_shape, 1.0 / noise.noise_rate)) if noise else 0.0
        point = {
            "zeta": zeta,
            "z": rng.random(self.B) < share,
            "alpha": rng.normal(0.0, 0.1, self.B),
            "tau": np.asarray(tau),
        }
        if self.covariates:
            point |= draw(rng, self.problem.inputs, self.hypers)
        return self.state(point)

    def state(self, point: Any) -> State:
        """Return the state at a point of the model's variables."""
        zeta = np.array(point.get("zeta", np.ones(self.D)), dtype=np.int64)
        z = np.array(point["z"], dtype=np.int64)
        on = np.flatnonzero(z)
        sample = np.zeros(self.B, dtype=np.int64)
        sample[: len(on)] = on
        active = Active(sample, np.zeros((self.B, self.N)), np.zeros((self.B, self.N)))
        empty = Working(np.zeros(self.N), np.zeros(self.N), float(self.hypers.xi))
        g = self.covariates.at(point)
        state = State(
            zeta=zeta,
            z=z,
            alpha=np.array(point["alpha"], dtype=float),
            eta=np.zeros(self.N),
            active=active,
            A=len(on),
            tau=float(point["tau"]) if self.noise else 0.0,
            working=empty,
            probabilities={},
            covariate=g,
            added=self.covariates.C @ g if self.covariates else np.empty(0),
        )
        rebuild(zeta, self.kernel, active, state.A)
        self._decide(state)
        return state

    def point(self, state: State) -> dict[str, np.ndarray]:
        """Return the state's variables and shared quantities, as copies."""
        point = {
            "z": state.z.copy(),
            "alpha": state.alpha.copy(),
            "feature_weight": state.zeta.astype(float),
            "sample_weight": state.z * state.alpha,
            "eta": state.eta.copy(),
            **self.covariates.named(state.covariate),
        }
        if self.masked:
            point["zeta"] = state.zeta.copy()
        if self.noise:
            point["tau"] = np.asarray(state.tau)
        return point | state.probabilities

    def stats(self, state: State) -> dict[str, float]:
        """Return how many bits the last sweep changed."""
        counts = {"sample_flips": float(state.samples_changed)}
        return counts | {"feature_flips": float(state.features_changed)} if self.masked else counts

    def _decide(self, state: State) -> None:
        """Set eta = K'alpha of the active samples, with what covariates add."""
        weight = state.alpha[state.active.sample[: state.A]]
        state.eta = weight @ state.active.K[: state.A] if state.A else np.zeros(self.N)
        if self.covariates:
            state.eta = state.eta + state.added

    # --- one sweep --------------------------------------------------------------------------------

    def order(self, state: State) -> list[str]:
        """Return the steps of the next sweep: features are moved as often as they cost little."""
        now = (state.sweeps + 1) % self.collapsed_every == 0
        collapsed = ["collapsed_features"] if now else []
        first = "begin", "features", "augment", "samples", *collapsed, "coefficients"
        visit = ("augment", "collapsed_features", "coefficients") * (self.collapsed_visits - 1)
        again = ("augment", "coefficients") * AGAIN
        steps = *first, *visit, *again, "probabilities"
        return [step for step in steps if step not in self.left_out]

    def begin(self, state: State, rng: np.random.Generator) -> None:
        """Count the sweep; now and then sum M from scratch."""
        state.sweeps += 1
        state.features_changed = state.samples_changed = 0
        if state.sweeps % REBUILD == 0:
            rebuild(state.zeta, self.kernel, state.active, state.A)
            self._decide(state)

    def features(self, state: State, rng: np.random.Generator) -> None:
        """Draw every bit of zeta given alpha; try pairs and swaps."""
        self.move_features(state, rng, collapsed=False)

    def collapsed_features(self, state: State, rng: np.random.Generator) -> None:
        """The same with alpha integrated out."""
        self.move_features(state, rng, collapsed=True)

    def move_features(self, state: State, rng: np.random.Generator, *, collapsed: bool) -> None:
        """Draw every bit of zeta given alpha, or with it integrated out; try pairs and swaps."""
        state.features_changed += move_features(
            collapsed,
            rng.permutation(self.D),
            self.pairs,
            self.swaps,
            state.zeta,
            self.odds_zeta,
            self.partners,
            self.kernel,
            state.active,
            state.A,
            state.alpha[state.active.sample[: state.A]],
            state.added,
            state.eta,
            self.label_sign,
            state.tau,
            state.working,
            rng,
        )

    def augment(self, state: State, rng: np.random.Generator) -> None:
        """Draw omega (or tau), which makes the likelihood of the labels normal."""
        if self.noise:
            shape = self.noise.noise_shape + 0.5 * self.N
            rate = self.noise.noise_rate + 0.5 * np.sum((self.label_sign - state.eta) ** 2)
            state.tau = float(rng.gamma(shape, 1.0 / rate))
            w, r = np.full(self.N, state.tau), state.tau * self.label_sign
        else:
            w = draw_omega(rng, state.eta)
            r = 0.5 * self.label_sign  # y - 1/2
        if self.covariates:
            r = r - w * state.added
        state.working = Working(w, r, state.working.xi)

    def samples(self, state: State, rng: np.random.Generator) -> None:
        """Draw every bit of z with alpha integrated out, and try swaps."""
        state.A, changed = move_samples(
            rng.permutation(self.B),
            swaps(self.B),
            state.zeta,
            state.z,
            self.odds_z,
            self.kernel,
            state.active,
            state.A,
            state.working,
            rng,
        )
        state.samples_changed += changed

    def coefficients(self, state: State, rng: np.random.Generator) -> None:
        """Draw alpha, and set eta; then the weights of covariates."""
        on = state.active.sample[: state.A]
        state.alpha = rng.normal(0.0, self.hypers.xi**-0.5, self.B)
        noise = rng.normal(size=state.A)
        state.alpha[on] = draw_coefficients(state.active.K[: state.A], state.working, noise)
        self._decide(state)
        if self.covariates:
            w, r, _ = state.working
            score = r - w * (state.eta - state.added)  # of what K'alpha leaves of eta
            state.covariate, change = self.covariates.draw(rng, w, score, state.covariate)
            state.eta = state.eta + change
            state.added = self.covariates.C @ state.covariate

    def probabilities(self, state: State, rng: np.random.Generator) -> None:
        """Draw the probabilities of the masks."""
        h, bits = self.hypers, {"z": state.z, "zeta": state.zeta}
        for variable, what, a in h.masks():
            mask = bits[variable]
            n, S = len(mask), mask.sum()
            if h.mask_prior == "shared":
                q = rng.beta(S + a / n, n - S + 1)
            else:
                q = rng.beta(a / n + mask, 2 - mask)
            state.probabilities[f"{what}_mask_probability"] = np.asarray(q)
