"""Exact Gibbs sampler of logistic regression with the regularised horseshoe prior.

It covers both parametrisations. The posterior is the same, so `point` returns the variables of the
problem's own form. It uses no gradient and no step size, and adapts nothing. So it is a check of
NUTS that shares no code with it. With many more features than samples it is also faster. There the
posterior has many modes, for of two correlated genes one or the other has a large weight, and the
moves here jump from one mode to the next.

Notation: N samples, D features; eta = b + X beta; beta_d ~ Normal(0, v_d^1/2) with
1 / v_d = 1 / (tau lambda_d)^2 + 1 / c2 (Piironen, Vehtari 2017, sec. 2.3).

One sweep
---------
A few rounds of 1 to 5, then 6. Variables in brackets are integrated out of the step, and drawn anew
before anything uses them; that is why the order matters (van Dyk, Park 2008, doi
10.1198/016214508000000409).

1. omega_n ~ PG(1, eta_n) (Polson, Scott, Windle 2013, doi 10.1080/01621459.2013.829001). Given
   omega the likelihood of eta is normal, exp(r'eta - eta'diag(omega)eta / 2), r = y - 1/2.
2. lambda_d [beta_d], then beta_d, one d after the other. With beta_d integrated out, lambda_d has
   the density C+(lambda_d | 0, 1) m(v_d) with m in closed form (`horseshoe_steps`). It has up to
   two modes, the spike and the slab. An independence Metropolis step proposes from both, so that a
   weight jumps between them. Drawn given beta_d, lambda_d would hold it where it is.
3. Exchanges, a few passes, each with a new omega: lambda_i <-> lambda_j [beta_i, beta_j], then
   both weights. The prior of the lambdas is unchanged, and so only m of the pair decides. i has a
   large prior variance, j is correlated with it or any other feature.
4. tau, then c2 [b, beta_A], where A are the features whose lambda is above a threshold. Slice steps
   in ln tau and ln c2 (Neal 2003, doi 10.1214/aos/1056562461). In the first the weights outside A
   are scaled with tau, so that their large number does not hold it (with all of lambda and beta
   fixed, tau would move by about D^-1/2). Then b and beta_A as one block. Wherever b is drawn or
   integrated out, the weights of covariates are too (`covariates.py`).
5. (b, beta, tau, c2^1/2) -> e^u (b, beta, tau, c2^1/2) [omega], which multiplies eta by e^u: a
   slice step in u (`horseshoe_growth.py`). Where labels can be told apart, the size of eta mixes
   slowest without it, because omega holds it.
6. The variances behind tau and lambda, if the form has them: inverse gamma.

Steps 2 to 4 read the likelihood given omega only. Where rows outnumber columns, and columns are
few, they read it from one pseudo-sample for each column instead of all N (`working.py`). Then a
step 1 costs more than steps 2 to 4, and is done once for several repetitions of them.

The blocked update of Johndrow, Orenstein, Bhattacharya (2020, JMLR 21(73), sec. 3.2) integrates
all of beta out of the step of tau. That needs X diag(v) X' for each tau that is tried, in O(N^2 D)
time. Step 4 integrates out only the weights that hold tau, the large ones, and needs no such
matrix. Their local scales are drawn given beta; those of step 2 are not.

Cost
----
A round takes O(N D) time for step 2, and O(N) for each exchange. Step 4 takes O(K^3 + D) for each
evaluation, with K the size of A. Correlated features are found once, in O(N D^2). Memory O(N D),
never D x D, nor N x N. With pseudo-samples step 1 takes O(N D^2), step 2 O(D^2) and an exchange
O(D), and memory is O(N D + D^2).

Difficulties
------------
Which features have large weights is what mixes slowest: read R-hat of `eta` over dispersed chains,
and the spread of P(active) between them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy import stats

from ardvark.models import Problem, horseshoe

from .ard_steps import Pairs
from .covariates import Covariates
from .horseshoe_growth import Growth, draw_growth
from .horseshoe_steps import (
    Block,
    Scales,
    draw_along,
    draw_block,
    exchange_scan,
    scaled,
    weight_scan,
)
from .partners import correlated
from .sampler import GibbsSampler, draw_omega
from .working import MOST_COLUMNS, Working, in_columns

PARTNERS = 16  # most correlated features a feature exchanges with
FIRST = 10.0  # features that can be the first of an exchange, expected under the prior


@dataclass
class State:
    """The state of one chain.

    Attributes
    ----------
    beta, local : array (D,)
        Weights, and their local scales lambda.
    covariate : array (K,)
        Weights of the covariates.
    bias, tau, c2 : float
    eta : array (N,)
        Decision values.
    tau_variance : float
    local_variance : array (D,)
        The variances behind tau and lambda. NaN until the first sweep ends, and if the form has
        none.
    working : Working
        Of the last omega.
    """

    beta: np.ndarray
    local: np.ndarray
    covariate: np.ndarray
    bias: float
    tau: float
    c2: float
    eta: np.ndarray
    tau_variance: float
    local_variance: np.ndarray
    working: Working = field(init=False)


class Sampler(GibbsSampler):
    """The sampler of one problem. Chains share it, and each has its own State and Generator.

    Parameters
    ----------
    problem : Problem
        A problem of the model "horseshoe", in any parametrization.

    Attributes
    ----------
    rounds : int
        Rounds of steps 1 to 5 per sweep, in samples.
    exchange_passes, exchange_tries : int
        Passes of step 3 in each round, and exchanges tried in each. 0 tries: one for 28 features,
        and at least 10.
    scale_steps : int
        Slice steps of tau and of c2 in step 4.
    block : float
        Features in A of step 4 that are expected under the prior, at most.
    most_columns : int
        Columns, with the bias and the covariates, up to which there are pseudo-samples.
    repeats : int
        Repetitions of steps 2 to 4 for one omega with pseudo-samples, of which a sweep has one.
    """

    STEPS = ("omega", "weights", "exchanges", "scales", "decide", "growth", "finish")
    rounds = 2
    exchange_passes = 4
    exchange_tries = 0
    scale_steps = 1
    block = 40.0
    most_columns = MOST_COLUMNS
    repeats = 4

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        h = problem.hypers
        assert isinstance(h, horseshoe.Hypers)  # as `supports` says
        self.explicit = h.parametrization == "hierarchical"
        self.tau_0 = float(h.global_scale)
        self.covariates = Covariates(problem, h.bias_sd)
        self.fixed = np.append(float(h.bias_sd), self.covariates.sd)
        self.slab = float(h.slab[0]), float(h.slab[1])
        # feature-major: a scan reads one feature after the other
        self.Xt = np.array(problem.X.T, order="C")  # (D, N)
        D = len(self.Xt)
        self.level = float(stats.halfcauchy.isf(min(1.0, self.block / D)))
        first = float(stats.halfcauchy.isf(min(0.5, FIRST / D)))
        self.pairs = Pairs(first, *correlated(problem.X, PARTNERS))
        self.tries = self.exchange_tries or max(10, D // 28)
        self.always = np.vstack([np.ones(len(problem.y)), self.covariates.C.T])
        self.tall = self.always.shape[0] + D <= min(self.most_columns, len(problem.y))
        self.columns = np.concatenate([self.always, self.Xt]) if self.tall else np.empty((0, 0))
        self.width = min(0.5, 3.0 * len(problem.y) ** -0.5)  # above the sd of ln s in step 5

    # --- states -----------------------------------------------------------------------------------

    def state(self, point: Mapping[str, np.ndarray]) -> State:
        """Return the state at a point of the paper's variables, in either form."""
        beta, bias = np.array(point["beta"], dtype=np.float64), float(point["bias"])
        covariate = self.covariates.at(point)
        state = State(
            beta=beta,
            local=np.array(point["lambda"], dtype=np.float64),
            covariate=covariate,
            bias=bias,
            tau=float(point["tau"]),
            c2=float(point["c2"]),
            eta=self.covariates.added(bias + beta @ self.Xt, covariate),
            tau_variance=np.nan,
            local_variance=np.full(len(beta), np.nan),
        )
        if "tau_variance" in point:
            state.tau_variance = float(point["tau_variance"])
            state.local_variance[:] = point["lambda_variance"]
        return state

    def point(self, state: State) -> dict[str, np.ndarray]:
        """Return the variables of the problem's form and the shared quantities, as copies."""
        point = {
            "bias": np.asarray(state.bias),
            "c2": np.asarray(state.c2),
            "tau": np.asarray(state.tau),
            "lambda": state.local.copy(),
            "beta": state.beta.copy(),
            "feature_weight": np.abs(state.beta),
            "eta": state.eta.copy(),
            **self.covariates.named(state.covariate),
        }
        if self.explicit:
            point["tau_variance"] = np.asarray(state.tau_variance)
            point["lambda_variance"] = state.local_variance.copy()
        free = self.problem.to_free(point)
        return point | {name: np.asarray(free[name]) for name in free if name not in point}

    # --- one sweep --------------------------------------------------------------------------------

    def order(self, state: State) -> list[str]:
        """Return the steps of a sweep: in samples each of 2 to 4 has an omega of its own."""
        if self.tall:
            steps = ("weights", "exchanges", "scales") * self.repeats
            rounds = ["omega", *steps, "decide", "growth"]
        else:
            steps = "weights", *("exchanges",) * self.exchange_passes, "scales"
            rounds = [name for step in steps for name in ("omega", step, "decide")] + ["growth"]
            rounds *= self.rounds
        return [*rounds, "finish"]

    def decision(self, state: State) -> np.ndarray:
        """Return eta = b + X beta + C f."""
        return self.covariates.added(state.bias + state.beta @ self.Xt, state.covariate)

    def omega(self, state: State, rng: np.random.Generator) -> None:
        """Step 1: draw omega, and with it the normal likelihood of eta (`working.py`)."""
        omega, r = draw_omega(rng, state.eta), 0.5 * self.label_sign
        if self.tall:
            weights = np.concatenate([[state.bias], state.covariate, state.beta])
            state.working = in_columns(self.columns, len(self.fixed), omega, r, weights)
        else:
            state.working = Working(self.always, self.Xt, omega, r, state.eta)

    def decide(self, state: State, rng: np.random.Generator) -> None:
        """Set eta to where steps 2 to 4 have brought it."""
        state.eta = self.decision(state) if self.tall else state.working.eta

    def finish(self, state: State, rng: np.random.Generator) -> None:
        """Compute eta anew: rounding errors end here. Then step 6, if the form has it."""
        state.eta = self.decision(state)
        if self.explicit:
            self.variances(state, rng)

    def weights(self, state: State, rng: np.random.Generator) -> None:
        """Step 2."""
        working, scales = state.working, Scales(state.tau, state.c2)
        score = working.score
        weight_scan(rng, working.rows, working.W, scales, score, state.beta, state.local)
        working.moved(score)

    def exchanges(self, state: State, rng: np.random.Generator) -> None:
        """A pass of step 3."""
        working, scales = state.working, Scales(state.tau, state.c2)
        score = working.score
        exchange_scan(
            rng, self.tries, working.rows, working.W, scales, self.pairs, score, state.beta,
            state.local,
        )  # fmt: skip
        working.moved(score)

    def scales(self, state: State, rng: np.random.Generator) -> None:
        """Step 4."""
        working = state.working
        inside = state.local > self.level
        H, e, block = self.integrated(state, inside)
        grown = 1.0
        for _ in range(self.scale_steps):
            s = float(np.exp(draw_along(rng, 0, block, Scales(state.tau, state.c2))))
            state.tau, grown, block = s * state.tau, s * grown, scaled(block, s)
            state.c2 *= float(np.exp(draw_along(rng, 1, block, Scales(state.tau, state.c2))))
        own = draw_block(rng, block, Scales(state.tau, state.c2))
        state.beta *= grown
        F = len(self.fixed)
        state.bias, state.covariate, state.beta[inside] = float(own[0]), own[1:F], own[F:]
        working.eta = own @ H + grown * e

    def integrated(self, state: State, inside: np.ndarray) -> tuple[np.ndarray, np.ndarray, Block]:
        """Return H (K, n), e (n,), what is not of its rows, and the Block, which describes both."""
        working = state.working
        A, others = np.flatnonzero(inside), state.beta[~inside]
        H = np.concatenate([working.always, working.rows[A]])
        always = np.append(state.bias, state.covariate)
        e = working.eta - np.concatenate([always, state.beta[A]]) @ H
        W, r = working.W, working.r
        block = Block(
            gram=(H * W) @ H.T,
            linear=H @ r,
            pull=H @ (W * e),
            fixed=self.fixed,
            local=state.local[A],
            t=(state.tau * state.local[~inside]) ** 2,
            square=float(others @ others),
            along=float(r @ e),
            against=float(e @ (W * e)),
            tau_0=self.tau_0,
            shape=self.slab[0],
            scale=self.slab[1],
        )
        return H, e, block

    def growth(self, state: State, rng: np.random.Generator) -> None:
        """Step 5."""
        always = np.append(state.bias, state.covariate) / self.fixed
        given = Growth(
            state.tau, state.c2, float(always @ always), len(always), self.tau_0, *self.slab
        )
        s = draw_growth(rng, self.width, self.label_sign, state.eta, given)
        state.tau, state.c2 = s * state.tau, s * s * state.c2
        state.bias, state.covariate = s * state.bias, s * state.covariate
        state.beta *= s
        state.eta = s * state.eta

    def variances(self, state: State, rng: np.random.Generator) -> None:
        """Step 6: each is InvGamma(1, (1 + x^2) / 2), with x the scale over that of its prior."""
        relative = state.tau / self.tau_0
        state.tau_variance = 0.5 * (1.0 + relative**2) / rng.standard_exponential()
        D = len(state.local)
        state.local_variance = 0.5 * (1.0 + state.local**2) / rng.standard_exponential(D)
