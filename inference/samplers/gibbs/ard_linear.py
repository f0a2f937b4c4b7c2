"""Exact Gibbs sampler for PFCVM and RFVM with the linear kernel.

It covers every prior of their weights, sparse or dense, and each treatment of RFVM's noise. The
posterior is the same in all forms, so `point` returns the variables of the problem's own form. It
uses no gradient and no step size, and adapts nothing. So it is a check of NUTS that shares no code
with it. Under sparse priors it is also faster, because their posterior has many modes: of two
correlated features one or the other is visible, and any path between these modes has almost no
probability. A gradient follows paths; the proposals here jump between their ends (`ard_steps.py`).

Notation: N samples, B basis centres, D features; theta (D,) feature weights >= 0, a = s x (B,)
sample weights, with x >= 0 and s the basis labels, -1 or 1 (`basis_sign`), in PFCVM, x real and
s = 1 in RFVM; y is 0 or 1, and 2 y - 1 is `label_sign`;

    eta = b + X diag(theta) Z'a = b + X diag(Z'a) theta = b + M a,    M = X diag(theta) Z'.

Covariates add C f to eta. Wherever b is drawn, (b, f) are, as one normal block (`covariates.py`).

Precisions are integrated out of every step. Otherwise, a weight near zero and its large precision
would keep each other there. A form that keeps them draws them at the end, from
Gamma(shape + 1/2, rate + x^2 / 2).

One sweep
---------
A few rounds of 1 to 3, then 4 to 6. Variables in brackets are integrated out of the step, and
drawn anew before anything uses them; that is why the order matters (van Dyk, Park 2008, doi
10.1198/016214508000000409). With noise a round ends with 1 and the draws of u and tau alone.

1. omega_n ~ PG(1, eta_n), or PG(1, u_n) with noise (Polson, Scott, Windle 2013, doi
   10.1080/01621459.2013.829001). Given omega the likelihood of u_n is exp(k_n u_n - omega_n u_n^2
   / 2), k = y - 1/2, and with u integrated out, that of eta is normal too:

       exp(r_n eta_n - W_n eta_n^2 / 2),   W = omega c, r = k c,   c = tau / (tau + omega)

   (c = 1 without noise). W and r belong to this omega and tau, and are
   renewed before each 2 and 3.
2. theta | b, a, W, r [u]: a scan. In it every theta_d moves by an independence Metropolis step
   that proposes from the prior or from the likelihood, so that it jumps between the spike and a
   visible weight. Only the first scan of a sweep makes moves inside the spike (`ard_scans.py`):
   nearly all proposals are such moves, and each changes little. Each scan is followed by moves of
   pairs of features, above all correlated ones, so that one may replace the other. On genes these
   exchanges mix slowest, so they get as much time as the scan. Then b, normal.
   Then u | eta, omega, tau ~ Normal((k + tau eta) / (tau + omega), (tau + omega)^-1/2), with
   the omega that u was integrated out with, and tau | u, eta ~ Gamma(noise_shape + N/2,
   noise_rate + |u - eta|^2 / 2).
3. x | b, theta likewise, its columns those of M. Each scan moves all of x.
4. (theta, x) -> (e^v theta, e^-v x), which leaves eta: a generalised Gibbs step (Liu, Sabatti
   2000, doi 10.1093/biomet/87.2.353), a slice step in v whose density is that of the moved point
   times the Jacobian, p(e^v theta, e^-v x) e^((D - B) v).
5. The precisions, given theta and x.

Cost
----
A sweep takes O(N B D) time for M, once. A round takes O(N D) for the scans of the features, and
O(N B d) to keep M up to date, where d features have moved. The decision values follow from the
score. Correlated features are found once, in O(N D^2). Memory O(N D + B N), never D x D.

Where rows outnumber columns, and columns are few, steps 2 and 3 read the normal likelihood from one
pseudo-sample for each of its K = D + 1 columns and those of covariates (`working.py`). M is then
(K, B), and never N x B: a round takes O(N D^2 + B D) time, and a sweep O(N D + B D) memory.

Difficulties
------------
Which features are visible is what mixes slowest: read R-hat of `eta` over dispersed chains, and
the spread of P(active) between them.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ardvark.models import Problem, pfcvm, rfvm

from .ard_scans import Tail, full_scans, scans
from .ard_steps import Group, Pairs, Prior, beyond, draw_noisy, scale_move
from .covariates import Covariates
from .products import by_features, weighted_products
from .sampler import GibbsSampler, draw_omega
from .working import MOST_COLUMNS, in_columns

PARTNERS = 16  # most correlated features a feature is paired with; of samples, too
SEVERAL = 25.0  # feature weights beyond the cut of `Tail`, expected under the prior


@dataclass
class Working:
    """The normal likelihood that replaces that of the labels, given omega.

    Attributes
    ----------
    omega, W : array (N,)
        Polya-Gamma variables, and the precision of eta.
    score, before : array (N,)
        r - W eta, the slope of the log likelihood, at the present weights and at the state's eta,
        which follows them when the bias is drawn.
    """

    omega: np.ndarray
    W: np.ndarray
    score: np.ndarray
    before: np.ndarray


@dataclass
class State:
    """The state of one chain.

    Attributes
    ----------
    theta : array (D,)
        Feature weights.
    x : array (B,)
        Sample weights without the basis labels.
    bias, tau : float
        tau is 0 without noise.
    eta, u : array (N,)
        Decision values, without and with noise; u is NaN if the point had none, until the next
        sweep draws it.
    feature_precision, sample_precision : array (D,), array (B,)
        NaN until the first sweep ends, and if the form has none.
    covariate : array (K,)
        Weights of the covariates.
    working : Working
        Of the last omega.
    M, theta_of_M : array (B, N), array (D,)
        The transpose of M, and the feature weights that it was made with. Empty if it is to be made
        anew, and in columns.
    """

    theta: np.ndarray
    x: np.ndarray
    bias: float
    tau: float
    eta: np.ndarray
    u: np.ndarray
    feature_precision: np.ndarray
    sample_precision: np.ndarray
    covariate: np.ndarray
    working: Working = field(init=False)
    M: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    theta_of_M: np.ndarray = field(init=False)


class Sampler(GibbsSampler):
    """The sampler of one problem. Chains share it, and each has its own State and Generator.

    Parameters
    ----------
    problem : Problem
        A problem of pfcvm or rfvm, with the linear kernel, in any form.

    Attributes
    ----------
    rounds, feature_scans, sample_scans : int
        Rounds per sweep, and scans of the features and of the samples in each.
    feature_tries, sample_tries : int
        Pairs tried after each scan. 0 features: one for 12 features, which take about as long as
        the scan, and at least 50.
    most_columns : int
        Columns, with the bias and the covariates, up to which there are pseudo-samples.
    """

    STEPS = (
        "complete", "omega", "features", "crossings", "bias", "decide", "latent", "products",
        "samples", "again", "balance", "precisions",
    )  # fmt: skip
    rounds = 4
    feature_scans = 1
    sample_scans = 3
    feature_tries = 0
    sample_tries = 60
    most_columns = MOST_COLUMNS

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        h = problem.hypers
        assert isinstance(h, pfcvm.Hypers | rfvm.Hypers)  # as `supports` says
        self.bias_sd = h.bias_sd
        self.covariates = Covariates(problem, h.bias_sd)
        self.signed = not problem.spec.labels_in_basis
        # tau's prior, and the form of the noise
        self.noise = h if isinstance(h, rfvm.Hypers) and h.latent_noise != "none" else None
        self.precise = h.parametrization == "hierarchical"
        self.Xt, self.Zt = by_features(problem)
        self.feature = Prior.of(h.feature_prior, positive=True)
        self.sample = Prior.of(h.sample_prior, positive=not self.signed)
        self.tail = Tail(*beyond(SEVERAL, len(self.Xt), h.feature_prior))
        self.feature_pairs = Pairs.of(problem.X, h.feature_prior, PARTNERS)
        self.tries = self.feature_tries or max(50, len(self.Xt) // 12)
        self.sample_pairs = Pairs.of(self.Zt, h.sample_prior, PARTNERS)
        if self.signed:
            self.basis_sign = np.ones(self.Zt.shape[1])
        always = np.vstack([np.ones(len(problem.y)), self.covariates.C.T])
        self.tall = len(always) + len(self.Xt) <= min(self.most_columns, len(problem.y))
        self.columns = np.concatenate([always, self.Xt]) if self.tall else np.empty((0, 0))
        self.left_out |= set() if self.noise else {"complete", "latent", "again"}
        self.left_out |= {"products"} if self.tall else set()
        self.left_out |= set() if self.precise else {"precisions"}

    # --- states -----------------------------------------------------------------------------------

    def state(self, point: Mapping[str, np.ndarray]) -> State:
        """Return the state at a point of the paper's variables, in any form."""
        (D, N), B = self.Xt.shape, self.Zt.shape[1]
        state = State(
            theta=np.array(point["feature_weight"], dtype=np.float64),
            x=self.basis_sign * point["sample_weight"],
            bias=float(point["bias"]),
            tau=float(point["tau"]) if self.noise else 0.0,
            eta=np.empty(N),
            u=np.array(point.get("u", np.full(N, np.nan)), dtype=np.float64),
            feature_precision=np.full(D, np.nan),
            sample_precision=np.full(B, np.nan),
            covariate=self.covariates.at(point),
        )
        self._decide(state)
        return state

    def point(self, state: State) -> dict[str, np.ndarray]:
        """Return the variables of the problem's form and the shared quantities, as copies."""
        names = ("psi", "delta") if self.signed else ("alpha", "beta")
        point = {
            "feature_weight": state.theta.copy(),
            "sample_weight": self.basis_sign * state.x,
            "bias": np.asarray(state.bias),
            "eta": state.eta.copy(),
            **self.covariates.named(state.covariate),
        }
        if not self.signed:
            point["w"] = state.x.copy()
        if self.precise:
            precisions = (state.sample_precision.copy(), state.feature_precision.copy())
            point |= dict(zip(names, precisions, strict=True))
        if self.noise:
            point["tau"] = np.asarray(state.tau)
            if self.noise.latent_noise == "explicit":
                point["u"] = state.u.copy()
        return point | self.problem.to_free(point)

    def _decide(self, state: State) -> None:
        """Set eta = b + X diag(theta) Z'a + C f."""
        eta = state.bias + (state.theta * (self.Zt @ (self.basis_sign * state.x))) @ self.Xt
        state.eta = self.covariates.added(eta, state.covariate)

    # --- one sweep --------------------------------------------------------------------------------

    def order(self, state: State) -> list[str]:
        """Return the steps of `rounds` rounds, then those that are made once."""
        first = "omega", "features", "bias", "decide", "latent", "products"
        other = "omega", "crossings", "bias", "latent", "products"
        samples = "omega", "samples", "bias", "latent", "again"
        rounds = first + samples + (other + samples) * (self.rounds - 1)
        steps = "complete", *rounds, "balance", "precisions"
        return [step for step in steps if step not in self.left_out]

    def complete(self, state: State, rng: np.random.Generator) -> None:
        """Draw u if the point had none."""
        if np.isnan(state.u).any():
            draw_noisy(rng, self.label_sign, state.eta, state.tau, state.u)

    def omega(self, state: State, rng: np.random.Generator) -> None:
        """Step 1: draw omega, and with it the normal likelihood of eta."""
        at = state.u if self.noise else state.eta
        omega = draw_omega(rng, at)
        c = state.tau / (state.tau + omega) if self.noise else np.ones_like(omega)
        W = omega * c
        score = 0.5 * self.label_sign * c - W * state.eta
        state.working = Working(omega, W, score, score.copy())

    def features(self, state: State, rng: np.random.Generator) -> None:
        """The scan of step 2 in which every theta moves; M is then made anew."""
        state.M = np.empty((0, 0))
        self._scan(state, rng, full=1)

    def crossings(self, state: State, rng: np.random.Generator) -> None:
        """The scan of step 2 that leaves out most moves of faint features."""
        self._scan(state, rng, full=0)

    def _scan(self, state: State, rng: np.random.Generator, *, full: int) -> None:
        working, slope = state.working, self.Zt @ (self.basis_sign * state.x)  # slope (D,)
        rows, W, score = self.Xt, working.W, working.score
        if self.tall:
            rows, W, score = self.in_columns(state)
        group = Group(rows, slope, W, self.feature, score, state.theta)
        scans(rng, full, self.feature_scans, self.tries, group, self.tail, self.feature_pairs)
        if self.tall:
            self._moved(state)

    def samples(self, state: State, rng: np.random.Generator) -> None:
        """Step 3; in columns M is not used."""
        Mt, W, score = state.M, state.working.W, state.working.score
        if self.tall:
            rows, W, score = self.in_columns(state)
            Mt = (self.Zt * state.theta[:, None]).T @ rows
        group = Group(Mt, self.basis_sign, W, self.sample, score, state.x)
        full_scans(rng, self.sample_scans, self.sample_tries, group, self.sample_pairs)
        if self.tall:
            self._moved(state)

    def in_columns(self, state: State) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return rows (D, K), W (K,) and score (K,) with a pseudo-sample for each column."""
        working = state.working
        slope = self.Zt @ (self.basis_sign * state.x)
        weights = np.concatenate([[state.bias], state.covariate, state.theta * slope])
        r = working.score + working.W * state.eta
        found = in_columns(self.columns, 1 + len(state.covariate), working.W, r, weights)
        return found.rows, found.W, found.score

    def _moved(self, state: State) -> None:
        """Take the score, and eta, on to weights that moved in columns."""
        before, working = state.eta, state.working
        self._decide(state)
        working.score -= working.W * (state.eta - before)

    def products(self, state: State, rng: np.random.Generator) -> None:
        """Make M' (B, N), or take it on to the present feature weights if few have moved."""
        few = state.M.size > 0
        if few:
            moved = np.flatnonzero(state.theta != state.theta_of_M)
            few = 3 * len(moved) <= len(state.theta)
        if few:
            change = state.theta[moved] - state.theta_of_M[moved]
            state.M = state.M + (self.Zt[moved] * change[:, None]).T @ self.Xt[moved]
        else:
            state.M = weighted_products(self.Zt, state.theta, self.Xt)
        state.theta_of_M = state.theta.copy()

    def bias(self, state: State, rng: np.random.Generator) -> None:
        """Draw b given the weights, and with it those of covariates; then eta is that of all."""
        working = state.working
        if self.covariates:
            beta = np.append(state.bias, state.covariate)
            beta, change = self.covariates.draw(rng, working.W, working.score, beta)
            working.score -= working.W * change
            state.bias, state.covariate = float(beta[0]), beta[1:]
        else:
            held = working.W.sum()
            precision = held + self.bias_sd**-2.0
            mean = (working.score.sum() + held * state.bias) / precision
            new = float(mean + precision**-0.5 * rng.standard_normal())
            working.score -= working.W * (new - state.bias)
            state.bias = new
        if self.tall:
            self._decide(state)
        else:
            state.eta = state.eta + (working.before - working.score) / working.W
        working.before = working.score.copy()

    def decide(self, state: State, rng: np.random.Generator) -> None:
        """Compute eta anew: rounding errors of a sweep end here."""
        self._decide(state)

    def latent(self, state: State, rng: np.random.Generator) -> None:
        """Draw u, which was integrated out given this omega and tau, and then tau."""
        assert self.noise
        precision = state.tau + state.working.omega
        mean = (0.5 * self.label_sign + state.tau * state.eta) / precision
        state.u = mean + precision**-0.5 * rng.standard_normal(len(mean))
        rate = self.noise.noise_rate + 0.5 * np.sum((state.u - state.eta) ** 2)
        state.tau = float(rng.gamma(self.noise.noise_shape + 0.5 * len(state.u), 1.0 / rate))

    def again(self, state: State, rng: np.random.Generator) -> None:
        """Draw omega, u and tau once more: tau mixes slowest, and costs least."""
        self.omega(state, rng)
        self.latent(state, rng)

    def balance(self, state: State, rng: np.random.Generator) -> None:
        """Step 4."""
        width = 3.0 * (len(state.theta) + len(state.x)) ** -0.5  # close to the sd of v
        v = scale_move(rng, width, state.theta, self.feature, state.x, self.sample)
        state.theta *= math.exp(v)
        state.x *= math.exp(-v)

    def precisions(self, state: State, rng: np.random.Generator) -> None:
        """Step 5."""
        groups = (
            (state.theta, self.feature, state.feature_precision),
            (state.x, self.sample, state.sample_precision),
        )
        for x, prior, out in groups:
            out[:] = rng.standard_gamma(prior.shape + 0.5, len(x)) / (prior.rate + 0.5 * x**2)
