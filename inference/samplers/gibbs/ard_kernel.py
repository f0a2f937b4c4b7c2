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
2. x, b and the covariates | theta, a few times. Polya-Gamma variables are drawn from the eta that
   step 1 left, before anything uses them: omega_n ~ PG(1, eta_n) (Polson, Scott, Windle 2013, doi
   10.1080/01621459.2013.829001). Given omega the likelihood of eta is normal,
   exp(r'eta - eta'diag(omega)eta / 2), r = y - 1/2.
   a. x | c, omega: every x_j by an independence Metropolis step, then pairs (`ard_steps.py`),
      where, with k_j the columns of K,

          c = b + sum_j m_j a_j,    m_j = omega'k_j / sum(omega),
          eta = c + sum_j a_j (k_j - m_j),    b = c - sum_j m_j a_j.

      So a change of a_j moves b too, and eta keeps its weighted mean. Without this the bias and the
      weights, whose columns of an rbf kernel are all positive, would hold each other. (x, b) ->
      (x, c) has the Jacobian 1. The prior of b is one more normal term, of a row N + 1 whose entry
      in column j is -m_j and whose precision is bias_sd^-2. m depends on omega, which this step
      holds fixed.
   b. b | x, omega, which is normal; with covariates (b, their weights) | x, omega, as one block
      (`covariates.py`). Step a holds these weights fixed.
3. The precisions.

Cost
----
Each proposal of b to e is a pass over K with an exponential an entry, O(N B), and there are D / 2
of b. If the basis is the samples, half of K is enough. Those of a cost O(N B D) altogether, and so
does K itself. A scan of 2 takes O(N B), and its pairs O(N) each. Memory O(N B + N D) a chain.

Difficulties
------------
Which features are visible is what mixes slowest: read R-hat of `eta` over dispersed chains, and
the spread of P(active) between them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ardvark.models import Problem, pfcvm

from . import ard_kernel_steps as steps
from .ard_scans import EVERY, weight_scan
from .ard_steps import LARGE, Group, Pairs, Prior, beyond, pair_scan
from .covariates import Covariates
from .products import by_features, distances, weighted_products
from .sampler import GibbsSampler, draw_omega

SAMPLE_PARTNERS = 16  # most correlated columns that a sample weight is paired with
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
    given : Given
        What the moves of theta read and update; from `begin` to `kernel`.
    Kt : array (B, N)
        K transposed, from `kernel` on.
    """

    theta: np.ndarray
    x: np.ndarray
    bias: float
    eta: np.ndarray
    feature_precision: np.ndarray
    sample_precision: np.ndarray
    covariate: np.ndarray
    given: steps.Given = field(init=False)
    Kt: np.ndarray = field(init=False)


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
    exchange_tries, walk_rounds, scaling_tries : int
        Proposals of step 1c, rounds of step 1d, proposals of step 1e.
    sample_scans, sample_tries : int
        Rounds of step 2, and pairs of sample weights tried in each.
    """

    STEPS = (
        "begin", "spike", "crossings", "exchanges", "walks", "scalings", "kernel", "samples",
        "precisions",
    )  # fmt: skip
    crossing_share = 0.5
    exchange_tries = 40
    walk_rounds = 2
    scaling_tries = 4
    sample_scans = 3
    sample_tries = 60

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        h = problem.hypers
        assert isinstance(h, pfcvm.Hypers)  # as `supports` says
        self.kernel_function = h.kernel_of()
        self.bias_sd = h.bias_sd
        self.covariates = Covariates(problem, h.bias_sd)
        self.precise = h.parametrization == "hierarchical"
        self.left_out |= set() if self.precise else {"precisions"}
        self.Xt, self.Zt = by_features(problem)
        self.feature = Prior.of(h.feature_prior, positive=True)
        self.sample = Prior.of(h.sample_prior, positive=True)
        D = len(self.Xt)
        self.pairs = Pairs.of(problem.X, h.feature_prior, PARTNERS)
        self.sample_pairs = Pairs.of(self.Zt, h.sample_prior, SAMPLE_PARTNERS)
        _, self.share = beyond(LARGE, D, h.feature_prior)
        self.crossing_tries = max(1, round(self.crossing_share * D))

    # --- states -----------------------------------------------------------------------------------

    def state(self, point: Mapping[str, np.ndarray]) -> State:
        """Return the state at a point of the paper's variables, in any form."""
        theta = np.array(point["feature_weight"], dtype=np.float64)
        a = np.asarray(point["sample_weight"], dtype=np.float64)
        bias, covariate = float(point["bias"]), self.covariates.at(point)
        eta = bias + a @ self.gram(self.inner(theta))
        return State(
            theta=theta,
            x=self.basis_sign * a,
            bias=bias,
            eta=self.covariates.added(eta, covariate),
            feature_precision=np.full(len(theta), np.nan),
            sample_precision=np.full(len(a), np.nan),
            covariate=covariate,
        )

    def point(self, state: State) -> dict[str, np.ndarray]:
        """Return the variables of the problem's form and the shared quantities, as copies."""
        point = {
            "feature_weight": state.theta.copy(),
            "sample_weight": self.basis_sign * state.x,
            "w": state.x.copy(),
            "bias": np.asarray(state.bias),
            "eta": state.eta.copy(),
            **self.covariates.named(state.covariate),
        }
        if self.precise:
            point["alpha"] = state.sample_precision.copy()
            point["beta"] = state.feature_precision.copy()
        return point | self.problem.to_free(point)

    @property
    def columns(self) -> steps.Columns:
        """What the moves of theta read and leave."""
        symmetric = self.Zt is self.Xt
        return steps.Columns(
            self.kernel_function.code,
            self.kernel_function.degree,
            self.Xt,
            self.Zt,
            self.label_sign,
            symmetric,
        )

    def inner(self, theta: np.ndarray) -> np.ndarray:
        """Return what K is a function of (B, N): weighted square distances, or inner products."""
        function = distances if self.kernel_function.by_distance else weighted_products
        return function(self.Zt, theta, self.Xt)

    def gram(self, inner: np.ndarray) -> np.ndarray:
        """Return the transpose (B, N) of K."""
        K = np.empty_like(inner)
        self.kernel_function.of_inner(inner, out=K)
        return K

    # --- one sweep --------------------------------------------------------------------------------

    def order(self, state: State) -> list[str]:
        """Return the steps of a sweep, with `sample_scans` of step 2."""
        steps = super().order(state)
        at = steps.index("samples")
        return steps[:at] + ["samples"] * self.sample_scans + steps[at + 1 :]

    def begin(self, state: State, rng: np.random.Generator) -> None:
        """Compute what the moves of theta read; they update it, and leave eta stale."""
        present = steps.Present(state.theta, self.inner(state.theta), state.eta - state.bias)
        added = self.covariates.C @ state.covariate if self.covariates else np.empty(0)
        held = steps.Held(self.basis_sign * state.x, state.bias, added)
        state.given = steps.Given(self.columns, present, held, self.feature)

    def spike(self, state: State, rng: np.random.Generator) -> None:
        """Step 1a."""
        for share in SHARES:
            steps.spike_block(rng, share, state.given, self.pairs.visible)

    def crossings(self, state: State, rng: np.random.Generator) -> None:
        """Step 1b."""
        visible = self.pairs.visible
        steps.crossings(rng, self.crossing_tries, state.given, visible, self.share)

    def exchanges(self, state: State, rng: np.random.Generator) -> None:
        """Step 1c."""
        steps.exchanges(rng, self.exchange_tries, EXCHANGE, state.given, self.pairs)

    def walks(self, state: State, rng: np.random.Generator) -> None:
        """Step 1d."""
        steps.walks(rng, self.walk_rounds, WALK, state.given, self.pairs.visible)

    def scalings(self, state: State, rng: np.random.Generator) -> None:
        """Step 1e."""
        steps.scalings(rng, self.scaling_tries, SCALE, state.given)

    def kernel(self, state: State, rng: np.random.Generator) -> None:
        """Compute K and eta anew: step 1 adds up rounding errors."""
        state.Kt = self.gram(self.inner(state.theta))
        self._decide(state)

    def samples(self, state: State, rng: np.random.Generator) -> None:
        """A scan of step 2, for K as `kernel` left it."""
        omega = draw_omega(rng, state.eta)
        rows, W = centred(state.Kt, omega, self.bias_sd)
        score = np.append(0.5 * self.label_sign - omega * state.eta, -W[-1] * state.bias)
        group = Group(rows, self.basis_sign, W, self.sample, score, state.x)
        weight_scan(rng, group, EVERY)
        pair_scan(rng, self.sample_tries, group, self.sample_pairs)
        bias = -score[-1] / W[-1]
        if self.covariates:
            beta = np.append(bias, state.covariate)
            beta, _ = self.covariates.draw(rng, omega, score[:-1], beta)
            state.bias, state.covariate = float(beta[0]), beta[1:]
        else:
            total = W.sum()
            # the slope of the log density of the bias: of the likelihood, and of its prior
            state.bias = float(rng.normal(bias + score.sum() / total, total**-0.5))
        self._decide(state)

    def precisions(self, state: State, rng: np.random.Generator) -> None:
        """Step 3."""
        state.sample_precision = draw_precisions(rng, self.sample, state.x)
        state.feature_precision = draw_precisions(rng, self.feature, state.theta)

    def _decide(self, state: State) -> None:
        """Set eta = b + K a + C f."""
        eta = state.bias + (self.basis_sign * state.x) @ state.Kt
        state.eta = self.covariates.added(eta, state.covariate)


def draw_precisions(rng: np.random.Generator, prior: Prior, x: np.ndarray) -> np.ndarray:
    """Draw the precision of each weight (K,) given the weights."""
    return rng.gamma(prior.shape + 0.5, 1.0 / (prior.rate + 0.5 * x**2))


def centred(Kt: np.ndarray, omega: np.ndarray, bias_sd: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows (B, N + 1) of step 2a, and the precisions (N + 1,) of their normal terms."""
    m = (Kt @ omega) / omega.sum()
    rows = np.empty((Kt.shape[0], Kt.shape[1] + 1))
    np.subtract(Kt, m[:, None], out=rows[:, :-1])
    np.negative(m, out=rows[:, -1])
    return rows, np.append(omega, bias_sd**-2.0)
