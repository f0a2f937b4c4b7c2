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

    Attributes
    ----------
    STEPS : tuple of str
        The steps of a sweep, each once: methods that take a state, which they change in place, and
        a Generator. A step leaves the posterior as it is once what it integrates out is drawn anew,
        so the order matters; the docstring of the file gives it.
    left_out : set of str
        Those that this problem does not need.
    label_sign, basis_sign : array (N,), array (B,)
        Labels, -1 or 1; those in the basis, if the model has them.
    """

    STEPS: tuple[str, ...]

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.left_out: set[str] = set()
        self.set_labels(problem.y, problem.basis_labels)

    def set_labels(self, y: np.ndarray, basis_labels: np.ndarray | None = None) -> None:
        """Bind other labels y (N,), 0 or 1, and other basis labels (B,); None leaves those.

        A model with a squared error takes real labels. States of a probit model that have latent
        values are not valid for other labels.
        """
        self.label_sign = 2.0 * np.asarray(y, dtype=np.float64) - 1.0
        if basis_labels is not None:
            self.basis_sign = np.asarray(basis_labels, dtype=np.float64)

    def start(self, rng: np.random.Generator, chain: int) -> Any:
        """Return a dispersed start, a draw from the prior. Chains differ only by their rng."""
        return self.state(self.problem.simulate(rng))

    @abstractmethod
    def state(self, point: Mapping[str, np.ndarray]) -> Any:
        """Return the state at a point of the model's variables."""

    def order(self, state: Any) -> list[str]:
        """Return the steps of the next sweep: `STEPS` in this order, some of them repeated."""
        return [step for step in self.STEPS if step not in self.left_out]

    def sweep(self, state: Any, rng: np.random.Generator) -> None:
        """Move the state once through every block; nothing is adapted."""
        for step in self.order(state):
            getattr(self, step)(state, rng)

    @abstractmethod
    def point(self, state: Any) -> dict[str, np.ndarray]:
        """Return the variables and shared quantities of a state, as copies."""

    def stats(self, state: Any) -> dict[str, float]:
        """Return statistics of the last sweep, under names of `datatree.SAMPLE_STATS`."""
        return {}
