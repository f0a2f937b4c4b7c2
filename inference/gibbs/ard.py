"""Exact Gibbs sampler of PFCVM and RFVM with the linear kernel."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from polyagamma import random_polyagamma
from scipy import stats

from ardvark.models import Problem
from ardvark.models.parts.ard import WeightPrior

from ..options import BaseOptions, option
from .ard_steps import scale_move, swap_scan, weight_scan
from .jcfo_steps import weighted_products
from .masks import _partners

MODELS = ("pfcvm", "rfvm")


@dataclass(frozen=True, kw_only=True)
class Options(BaseOptions):
    """Options of the sampler."""

    rounds: int = option(1, "passes over the features for one over the samples", above=0)
    inner: int = option(3, "passes over the samples", above=0)
    swaps: int = option(300, "exchanges tried after a pass", at_least=0)
    scale_moves: bool = option(True, "make the scale move")


@dataclass
class State:
    theta: np.ndarray
    x: np.ndarray
    bias: float
    eta: np.ndarray
    u: np.ndarray
    tau: float
    precisions: dict[str, np.ndarray]


class Sampler:
    def __init__(self, problem: Problem, options: Options | None = None) -> None:
        self.problem = problem
        self.options = Options() if options is None else options
        h = problem.hypers
        self.rfvm = problem.spec.name == "rfvm"
        self.noise = getattr(h, "latent_noise", "none") != "none"
        self.Xt = np.ascontiguousarray(problem.X.T)
        self.Zt = self.Xt if problem.Z is problem.X else np.ascontiguousarray(problem.Z.T)
        (self.D, self.N), self.B = self.Xt.shape, self.Zt.shape[1]
        self.feature = tuple(map(float, h.feature_prior))
        self.sample = tuple(map(float, h.sample_prior))
        self.visible_feature = quantile(h.feature_prior, 20 / self.D)
        self.visible_sample = quantile(h.sample_prior, 0.5)
        self.partners = _partners(problem.X, 16)
        self.partners_z = _partners(problem.Z.T, 4)
        self.set_labels(problem.y, problem.basis_labels)

    def set_labels(self, y, basis_labels=None):
        self.s = 2.0 * np.asarray(y, dtype=float) - 1.0
        if not self.rfvm:
            if basis_labels is not None:
                self.sign = np.asarray(basis_labels, dtype=float)
        else:
            self.sign = np.ones(self.B)

    def start(self, rng, chain):
        return self.state(self.problem.simulate(rng))

    def state(self, point):
        a = np.array(point["sample_weight"], dtype=float)
        s = State(np.array(point["feature_weight"], dtype=float), self.sign * a, float(point["bias"]),
                  np.zeros(self.N), np.zeros(self.N), 0.0, {})
        s.eta = s.bias + (s.theta * (self.Zt @ a)) @ self.Xt
        if self.noise:
            s.tau = float(point["tau"])
            s.u = np.array(point["u"], dtype=float)
        return s

    def point(self, state):
        a = self.sign * state.x
        return {"feature_weight": state.theta.copy(), "sample_weight": a, "bias": np.asarray(state.bias),
                "eta": state.eta.copy(), "tau": np.asarray(state.tau)}

    def stats(self, state):
        return {}

    def augment(self, state, rng):
        at = state.u if self.noise else state.eta
        w = random_polyagamma(1.0, at, method="alternate", random_state=rng)
        r = 0.5 * self.s
        if self.noise:
            r = r * (state.tau / (state.tau + w))
            self_w = w * (state.tau / (state.tau + w))
            return w, self_w, r
        return w, w, r

    def draw_noise(self, state, w, rng):
        if not self.noise:
            return
        h = self.problem.hypers
        P = w + state.tau
        state.u = rng.normal((0.5 * self.s + state.tau * state.eta) / P, P**-0.5)
        rate = h.noise_rate + 0.5 * np.sum((state.u - state.eta) ** 2)
        state.tau = float(rng.gamma(h.noise_shape + 0.5 * self.N, 1.0 / rate))

    def draw_bias(self, state, W, score, rng):
        P = W.sum() + self.problem.hypers.bias_sd**-2.0
        new = rng.normal((score.sum() + state.bias * W.sum()) / P, P**-0.5)
        score -= W * (new - state.bias)
        state.bias = float(new)

    def sweep(self, state, rng):
        o = self.options
        for _ in range(o.rounds):
            c = self.Zt @ (self.sign * state.x)
            w, W, r = self.augment(state, rng)
            score = r - W * state.eta
            weight_scan(rng, self.Xt, c, W, *self.feature, True, score, state.theta)
            self.acc = swap_scan(rng, o.swaps, self.Xt, c, W, self.visible_feature, *self.partners, score, state.theta)
            self.draw_bias(state, W, score, rng)
            state.eta = state.bias + (state.theta * c) @ self.Xt
            self.draw_noise(state, w, rng)
        M = np.ascontiguousarray(weighted_products(self.Xt, state.theta, self.Zt).T)
        for _ in range(o.inner):
            w, W, r = self.augment(state, rng)
            score = r - W * state.eta
            weight_scan(rng, M, self.sign, W, *self.sample, not self.rfvm, score, state.x)
            swap_scan(rng, self.B, M, self.sign, W, self.visible_sample, *self.partners_z, score, state.x)
            self.draw_bias(state, W, score, rng)
            state.eta = state.bias + (self.sign * state.x) @ M
            self.draw_noise(state, w, rng)
        if o.scale_moves:
            u = scale_move(rng, 0.5, state.theta, self.feature, state.x, self.sample)
            state.theta *= math.exp(u)
            state.x *= math.exp(-u)


def quantile(prior: WeightPrior, share: float) -> float:
    return float(stats.t.isf(0.5 * min(share, 1.0), 2.0 * prior.shape, scale=prior.scale))
