"""What every Gibbs sampler has: one sweep for one problem, with a chain's start and its output."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from polyagamma import random_polyagamma

from ardvark.models import Problem


def draw_omega(rng: np.random.Generator, eta: np.ndarray) -> np.ndarray:
    """Draw omega_n ~ PG(1, eta_n) (N,): Polson, Scott, Windle 2013."""
    # the library's other methods are wrong where |eta| > 150 (test_mask_moves.py)
    return random_polyagamma(1.0, eta, method="alternate", random_state=rng)


class GibbsSampler(ABC):
    """One sweep of a chain for one problem. Chains share it: each has its own state and Generator.

    Parameters
    ----------
    problem : Problem
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    @abstractmethod
    def set_labels(self, y: np.ndarray) -> None:
        """Bind other labels y (N,), 0 or 1."""

    def start(self, rng: np.random.Generator, chain: int) -> Any:
        """Return a dispersed start, a draw from the prior. Chains differ only by their rng."""
        return self.state(self.problem.simulate(rng))

    @abstractmethod
    def state(self, point: Mapping[str, np.ndarray]) -> Any:
        """Return the state at a point of the model's variables."""

    @abstractmethod
    def sweep(self, state: Any, rng: np.random.Generator) -> None:
        """Move the state once through every block."""

    @abstractmethod
    def point(self, state: Any) -> dict[str, np.ndarray]:
        """Return the variables and shared quantities of a state, as copies."""

    def stats(self, state: Any) -> dict[str, float]:
        """Return statistics of the last sweep, under names of `datatree.SAMPLE_STATS`."""
        return {}
