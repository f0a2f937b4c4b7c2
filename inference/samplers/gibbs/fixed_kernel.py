"""Exact Gibbs sampler of PCVM and RVM, whose feature weights and kernel matrix are constants.

It covers every kernel, every prior of the sample weights and both parametrisations. The posterior
is the same in both forms, so `point` returns the variables of the problem's own form. It uses no
gradient and no step size, and adapts nothing, so it is a check of NUTS that shares no code with it.

Notation: a = s x (B,) sample weights, with x >= 0 and s the basis labels (`basis_sign`) in PCVM, x
real and s = 1 in RVM; K (N, B) the kernel matrix, k_j its columns; eta = b + K a, and C f of the
covariates.

Precisions are integrated out of every step. A form that keeps them draws them at the end, from
Gamma(shape + 1/2, rate + x^2 / 2).

One sweep
---------
A few rounds of 1 to 3, then 4.

1. omega_n ~ PG(1, eta_n) (Polson, Scott, Windle 2013, doi 10.1080/01621459.2013.829001). Given
   omega the likelihood of eta is normal, exp(r'eta - eta'diag(omega)eta / 2), r = y - 1/2.
2. x | c, omega: every x_j by an independence Metropolis step, then pairs (`ard_steps.py`), where

       c = b + sum_j m_j a_j,    m_j = omega'k_j / sum(omega),
       eta = c + sum_j a_j (k_j - m_j),    b = c - sum_j m_j a_j.

   So a change of a_j moves b too, and eta keeps its weighted mean. Without this the bias and the
   weights, whose columns of an rbf kernel are all positive, would hold each other. (x, b) -> (x, c)
   has the Jacobian 1. The prior of b is one more normal term, of a row N + 1 whose entry in column
   j is -m_j and whose precision is bias_sd^-2. m depends on omega, which this step holds fixed.
   With a learned scale g of the samples: then g and the spike of x (`learned_scale.py`).
3. b | x, omega, which is normal; with covariates (b, their weights) | x, omega, as one block
   (`covariates.py`). Steps 1 and 2 hold these weights fixed.
4. A learned scale by itself, and the precisions.

Cost
----
A sweep takes O(N B) time for each scan, and the pairs O(N) each. K is computed once. Memory O(N B).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ardvark.models import Problem, pcvm
from ardvark.models.sparse import KernelHypers

from .ard_steps import Group, Pairs, Prior, pair_scan, weight_scan
from .covariates import Covariates
from .learned_scale import LearnedScale
from .sampler import GibbsSampler, draw_omega

PARTNERS = 16  # most correlated columns that a weight is paired with


@dataclass
class State:
    """The state of one chain.

    Attributes
    ----------
    x : array (B,)
        Sample weights without the basis labels.
    bias : float
    eta : array (N,)
        Decision values.
    sample_precision : array (B,)
        NaN until the first sweep ends, and if the form has none.
    covariate : array (K,)
        Weights of the covariates.
    scale : float
        Learned scale of x; 1 if it is fixed.
    """

    x: np.ndarray
    bias: float
    eta: np.ndarray
    sample_precision: np.ndarray
    covariate: np.ndarray
    scale: float = 1.0


class SampleWeights:
    """Steps 1 to 4 for a given kernel matrix, and what they need of a problem.

    Parameters
    ----------
    problem : Problem
        A problem whose decision value is b + K a, with a logistic link.
    pairs : Pairs
        Which sample weights move in pairs.
    tries : int
        Pairs tried in each pass.
    """

    def __init__(self, problem: Problem, pairs: Pairs, tries: int) -> None:
        h = problem.hypers
        assert isinstance(h, KernelHypers)  # as `supports` says
        self.bias_sd = h.bias_sd
        self.covariates = Covariates(problem, h.bias_sd)
        self.signed = not problem.spec.labels_in_basis
        self.precise = h.parametrization == "hierarchical"
        self.prior = Prior.of(h.sample_prior, positive=not self.signed)
        self.pairs, self.tries = pairs, tries
        self.learned = None
        if h.learned_scale == "sample_scale":
            self.learned = LearnedScale(self.prior, len(problem.Z))
        self.basis_sign = np.ones(len(problem.Z))
        self.set_labels(problem.y, problem.basis_labels)

    def set_labels(self, y: np.ndarray, basis_labels: np.ndarray | None = None) -> None:
        """Bind other labels y (N,), 0 or 1, and other basis labels (B,); None leaves those."""
        self.label_sign = 2.0 * np.asarray(y, dtype=np.float64) - 1.0
        if basis_labels is not None:
            self.basis_sign = np.asarray(basis_labels, dtype=np.float64)

    def point(self, state: Any) -> dict[str, np.ndarray]:
        """Return sample weights, bias, weights of covariates and eta of a state, as copies."""
        point = {
            "sample_weight": self.basis_sign * state.x,
            "bias": np.asarray(state.bias),
            "eta": state.eta.copy(),
            **self.covariates.named(state.covariate),
        }
        if not self.signed:
            point["w"] = state.x.copy()
        if self.learned:
            point["sample_scale"] = np.asarray(state.scale)
        if self.precise:
            point["alpha"] = state.sample_precision.copy()
        return point

    def augment(self, eta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Step 1: draw omega (N,)."""
        return draw_omega(rng, eta)

    def scan(self, state: Any, Kt: np.ndarray, rng: np.random.Generator) -> None:
        """Steps 1 to 3, for a state with x, bias and eta; Kt (B, N) is K transposed."""
        omega = self.augment(state.eta, rng)
        rows, W = centred(Kt, omega, self.bias_sd)
        prior, pairs = self.law(state)
        score = np.append(0.5 * self.label_sign - omega * state.eta, -W[-1] * state.bias)
        group = Group(rows, self.basis_sign, W, prior, score, state.x)
        weight_scan(rng, group)
        pair_scan(rng, self.tries, group, pairs)
        if self.learned:
            state.scale = self.learned.spike(
                rng, state.x, state.scale, lambda x: (self.basis_sign * x) @ rows, W, score
            )
        bias = -score[-1] / W[-1]
        if self.covariates:
            beta = np.append(bias, state.covariate)
            beta, _ = self.covariates.draw(rng, omega, score[:-1], beta)
            state.bias, state.covariate = float(beta[0]), beta[1:]
            self.decide(state, Kt)
            return
        total = W.sum()
        # the slope of the log density of the bias: of the likelihood, and of its prior
        state.bias = float(rng.normal(bias + score.sum() / total, total**-0.5))
        self.decide(state, Kt)

    def decide(self, state: Any, Kt: np.ndarray) -> None:
        """Set eta = b + K a + C f."""
        eta = state.bias + (self.basis_sign * state.x) @ Kt
        state.eta = self.covariates.added(eta, state.covariate)

    def law(self, state: Any) -> tuple[Prior, Pairs]:
        """Return the prior of x given its scale, and the pairs, whose threshold follows it."""
        if not self.learned:
            return self.prior, self.pairs
        visible = state.scale * self.pairs.visible
        return self.learned.at(state.scale), self.pairs._replace(visible=visible)

    def learn(self, state: Any, rng: np.random.Generator) -> None:
        """Step 4 of a learned scale."""
        if self.learned:
            state.scale = self.learned.alone(rng, state.x, state.scale)

    def precisions(self, state: Any, rng: np.random.Generator) -> None:
        """Step 4 of the precisions."""
        rate = self.law(state)[0].rate + 0.5 * state.x**2
        state.sample_precision = rng.gamma(self.prior.shape + 0.5, 1.0 / rate)


def centred(Kt: np.ndarray, omega: np.ndarray, bias_sd: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows (B, N + 1) of step 2, and the precisions (N + 1,) of their normal terms."""
    m = (Kt @ omega) / omega.sum()
    rows = np.empty((Kt.shape[0], Kt.shape[1] + 1))
    np.subtract(Kt, m[:, None], out=rows[:, :-1])
    np.negative(m, out=rows[:, -1])
    return rows, np.append(omega, bias_sd**-2.0)


class Sampler(GibbsSampler):
    """The sampler of one problem. Chains share it, and each has its own State and Generator.

    Parameters
    ----------
    problem : Problem
        A problem of pcvm or rvm, with any kernel, in any form.

    Attributes
    ----------
    rounds, tries : int
        Rounds of steps 1 to 3 per sweep, and pairs tried in each.
    """

    rounds = 4
    tries = 60

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        h = problem.hypers
        assert isinstance(h, pcvm.Hypers)  # as `supports` says
        self.theta = pcvm.fixed_theta(h, problem.X.shape[1])
        K = pcvm.fixed_kernel(problem.inputs, h)
        self.Kt = np.ascontiguousarray(K.T)
        self.weights = SampleWeights(problem, Pairs.of(K, h.sample_prior, PARTNERS), self.tries)

    def set_labels(self, y: np.ndarray, basis_labels: np.ndarray | None = None) -> None:
        """Bind other labels y (N,), 0 or 1, and other basis labels (B,); None leaves those."""
        self.weights.set_labels(y, basis_labels)

    def state(self, point: Mapping[str, np.ndarray]) -> State:
        """Return the state at a point of the paper's variables, in any form."""
        a, bias = np.asarray(point["sample_weight"], dtype=np.float64), float(point["bias"])
        x = self.weights.basis_sign * a
        scale = float(point["sample_scale"]) if self.weights.learned else 1.0
        covariate = self.weights.covariates.at(point)
        eta = self.weights.covariates.added(bias + a @ self.Kt, covariate)
        return State(x, bias, eta, np.full(len(a), np.nan), covariate, scale)

    def point(self, state: State) -> dict[str, np.ndarray]:
        """Return the variables of the problem's form and the shared quantities, as copies."""
        point = self.weights.point(state) | {"feature_weight": self.theta.copy()}
        return point | self.problem.to_free(point)

    def sweep(self, state: State, rng: np.random.Generator) -> None:
        """Move the state once through every block; nothing is adapted."""
        for _ in range(self.rounds):
            self.weights.scan(state, self.Kt, rng)
        self.weights.learn(state, rng)
        if self.weights.precise:
            self.weights.precisions(state, rng)
