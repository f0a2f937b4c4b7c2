"""Exact sampler of PFCVM with the rbf and the polynomial kernel, in which eta is not linear.

It covers every prior of the weights, sparse or dense, and both parametrisations. The posterior is
the same in both, so `point` returns the variables of the problem's own form. It uses no gradient,
and adapts nothing. So it is a check of NUTS that shares no code with it. Under sparse priors it is
also much faster, because their posterior has many modes: one feature is visible, or a correlated
one, or neither, and any path between these modes has almost no probability. A gradient follows
paths; the proposals here jump between their ends.

Notation: N samples, B basis centres, D features; theta (D,) feature weights >= 0, a = s x (B,)
sample weights, with x >= 0 and s the basis labels (`basis_sign`); eta = b + K_theta a, and C f of
the covariates.
The prior of theta is t times the slab; theta_d is visible if it exceeds `visible`, beyond which t
expects `LARGE` weights.

Precisions are integrated out of every step. A form that keeps them draws them at the end.

One sweep
---------
1. theta | x, b: Metropolis steps under the likelihood of the labels itself, without Polya-Gamma
   variables, which would hold eta near its present value. All proposals are in
   `ard_kernel_steps.py`.
   a. The weights that are not visible, as one block: from t given that they stay so. All of them,
      and random quarters and sixteenths of them. Acceptance is near 1 where what they add is small.
   b. One weight becomes visible, or ceases to be.
   c. Two features exchange their weights, above all correlated ones.
   d. A visible weight, by a random walk of its logarithm.
   e. The scale of all of theta, a random walk of its logarithm.
2. x, b and the covariates | theta, a few times (`sample_weights.py`). Polya-Gamma
   variables are drawn from the eta that step 1 left, before anything uses them.
3. The precisions.

Cost
----
Each proposal of b to e is a pass over K with an exponential an entry, O(N B), and there are D / 2
of b. If the basis is the samples, half of K is enough. Those of a cost O(N B D) altogether, and so
does K itself. Memory O(N B + N D) a chain.

Difficulties
------------
Which features are visible is what mixes slowest: read R-hat of `eta` over dispersed chains, and
the spread of P(active) between them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ardvark.models import Problem, pfcvm

from . import ard_kernel_steps as steps
from .ard_steps import LARGE, Pairs, Prior, beyond
from .products import distances, weighted_products
from .sample_weights import PARTNERS as SAMPLE_PARTNERS
from .sample_weights import SampleWeights
from .sampler import GibbsSampler

PARTNERS = 6  # most correlated features a feature is exchanged with; a few, so each is often tried
SHARES = (1.0, 0.25, 0.0625)  # of the weights that are not visible, in the blocks of step 1a
WALK, EXCHANGE, SCALE = 1.0, 0.5, 0.3  # standard deviations of the steps of logarithms


@dataclass
class State:
    """The state of one chain.

    Attributes
    ----------
    theta : array (D,)
        Feature weights.
    x : array (B,)
        Sample weights without the basis labels.
    bias : float
    eta : array (N,)
        Decision values.
    feature_precision, sample_precision : array (D,), array (B,)
        NaN until the first sweep ends, and if the form has none.
    covariate : array (K,)
        Weights of the covariates.
    """

    theta: np.ndarray
    x: np.ndarray
    bias: float
    eta: np.ndarray
    feature_precision: np.ndarray
    sample_precision: np.ndarray
    covariate: np.ndarray


class Sampler(GibbsSampler):
    """The sampler of one problem. Chains share it, and each has its own State and Generator.

    Parameters
    ----------
    problem : Problem
        A problem of pfcvm, with any kernel, in any form.

    Attributes
    ----------
    crossing_share : float
        Proposals of step 1b, as a share of D.
    exchanges, walks, scalings : int
        Proposals of step 1c, rounds of step 1d, proposals of step 1e.
    sample_scans, sample_tries : int
        Rounds of step 2, and pairs of sample weights tried in each.
    """

    crossing_share = 0.5
    exchanges = 40
    walks = 2
    scalings = 4
    sample_scans = 3
    sample_tries = 60

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        h = problem.hypers
        assert isinstance(h, pfcvm.Hypers)  # as `supports` says
        self.kernel = h.kernel_of()
        # feature-major copies: a proposal reads one feature
        self.Xt = np.array(problem.X.T, order="C")  # (D, N)
        self.Zt = self.Xt if problem.Z is problem.X else np.array(problem.Z.T, order="C")  # (D, B)
        self.prior = Prior.of(h.feature_prior, positive=True)
        D = len(self.Xt)
        self.pairs = Pairs.of(problem.X, h.feature_prior, PARTNERS)
        _, self.share = beyond(LARGE, D, h.feature_prior)
        self.crossings = max(1, round(self.crossing_share * D))
        pairs = Pairs.of(self.Zt, h.sample_prior, SAMPLE_PARTNERS)
        self.weights = SampleWeights(problem, pairs, self.sample_tries)

    def set_labels(self, y: np.ndarray, basis_labels: np.ndarray | None = None) -> None:
        """Bind other labels y (N,), 0 or 1, and other basis labels (B,); None leaves those."""
        self.weights.set_labels(y, basis_labels)

    # --- states -----------------------------------------------------------------------------------

    def state(self, point: Mapping[str, np.ndarray]) -> State:
        """Return the state at a point of the paper's variables, in any form."""
        theta = np.array(point["feature_weight"], dtype=np.float64)
        a = np.asarray(point["sample_weight"], dtype=np.float64)
        bias, covariate = float(point["bias"]), self.weights.covariates.at(point)
        eta = bias + a @ self.gram(self.inner(theta))
        return State(
            theta=theta,
            x=self.weights.basis_sign * a,
            bias=bias,
            eta=self.weights.covariates.added(eta, covariate),
            feature_precision=np.full(len(theta), np.nan),
            sample_precision=np.full(len(a), np.nan),
            covariate=covariate,
        )

    def point(self, state: State) -> dict[str, np.ndarray]:
        """Return the variables of the problem's form and the shared quantities, as copies."""
        point = self.weights.point(state) | {"feature_weight": state.theta.copy()}
        if self.weights.precise:
            point["beta"] = state.feature_precision.copy()
        return point | self.problem.to_free(point)

    @property
    def columns(self) -> steps.Columns:
        """What the moves of theta read and leave."""
        symmetric = self.Zt is self.Xt
        return steps.Columns(
            self.kernel.code,
            self.kernel.degree,
            self.Xt,
            self.Zt,
            self.weights.label_sign,
            symmetric,
        )

    def inner(self, theta: np.ndarray) -> np.ndarray:
        """Return what K is a function of (B, N): weighted square distances, or inner products."""
        function = distances if self.kernel.by_distance else weighted_products
        return function(self.Zt, theta, self.Xt)

    def gram(self, inner: np.ndarray) -> np.ndarray:
        """Return the transpose (B, N) of K."""
        K = np.empty_like(inner)
        self.kernel.of_inner(inner, out=K)
        return K

    # --- one sweep --------------------------------------------------------------------------------

    def sweep(self, state: State, rng: np.random.Generator) -> None:
        """Move the state once through every block; nothing is adapted."""
        self.features(state, rng)
        Kt = self.gram(self.inner(state.theta))  # anew: step 1 adds up rounding errors
        self.weights.decide(state, Kt)
        for _ in range(self.sample_scans):
            self.weights.scan(state, Kt, rng)
        if self.weights.precise:
            self.precisions(state, rng)

    def features(self, state: State, rng: np.random.Generator) -> None:
        """Step 1."""
        visible = self.pairs.visible
        present = steps.Present(state.theta, self.inner(state.theta), state.eta - state.bias)
        columns, a = self.columns, self.weights.basis_sign * state.x
        covariates = self.weights.covariates
        added = covariates.C @ state.covariate if covariates else np.empty(0)
        held = steps.Held(a, state.bias, added)
        given = steps.Given(columns, present, held, self.prior)
        for share in SHARES:
            steps.spike_block(rng, share, given, visible)
        steps.crossings(rng, self.crossings, given, visible, self.share)
        steps.exchanges(rng, self.exchanges, EXCHANGE, given, self.pairs)
        steps.walks(rng, self.walks, WALK, given, visible)
        steps.scalings(rng, self.scalings, SCALE, given)

    def precisions(self, state: State, rng: np.random.Generator) -> None:
        """Step 3."""
        self.weights.precisions(state, rng)
        rate = self.prior.rate + 0.5 * state.theta**2
        state.feature_precision = rng.gamma(self.prior.shape + 0.5, 1.0 / rate)
