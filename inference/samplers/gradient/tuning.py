"""What `mams` adapts while it tunes: step size, and the scale of each coordinate."""

import math

import numpy as np

EARLY, LATE = 0.3, 0.85
"""Shares of the tuning: until the first the scales follow the chain closely, after the second they
are held, and only the step size is adapted."""
_SHORT, _LONG = 10, 0.08  # draws of a window in the early part, and share of the tuning later
_FEWEST = 10  # draws from which scales are estimated
_SMALLEST, _LARGEST = 1e-8, 1e8


class StepSize:
    """Dual averaging (Nesterov 2009; Hoffman & Gelman 2014, section 3.2) of the log step size."""

    def __init__(self, start: float, target: float) -> None:
        self.target = target
        self.restart(start)

    def restart(self, start: float) -> None:
        """Forget what was found, and go on from a step size."""
        self._count, self._shortfall = 0, 0.0
        self._centre, self._log, self._mean = math.log(10.0 * start), math.log(start), 0.0

    def update(self, probability: float) -> None:
        """Take in the acceptance probability of one trajectory."""
        self._count += 1
        weight = 1.0 / (self._count + 10.0)
        self._shortfall += weight * (self.target - probability - self._shortfall)
        self._log = self._centre - math.sqrt(self._count) / 0.05 * self._shortfall
        self._mean += self._count**-0.75 * (self._log - self._mean)

    @property
    def current(self) -> float:
        """The step size to try next."""
        return math.exp(self._log)

    @property
    def final(self) -> float:
        """The average on the log scale, for when adaptation ends."""
        return math.exp(self._mean)


class Variances:
    """Running variances of positions and gradients (2, P), by Welford's recursion."""

    def __init__(self, size: int) -> None:
        self.count = 0
        self._mean, self._sum = np.zeros((2, size)), np.zeros((2, size))

    def add(self, x: np.ndarray, gradient: np.ndarray) -> None:
        """Take in one draw (P,) and its gradient (P,)."""
        self.count += 1
        new = np.stack([x, gradient])
        before = new - self._mean
        self._mean += before / self.count
        self._sum += before * (new - self._mean)

    def scale(self) -> np.ndarray:
        """Return (var x / var g)^(1/4) (P,): the standard deviation of a Gaussian.

        Of all diagonal scales, this one brings draws and gradients closest together (Seyboldt,
        Carlson, Carpenter 2026, arXiv 2603.18845).
        """
        x, gradient = self._sum + 1e-20
        return np.clip((x / gradient) ** 0.25, _SMALLEST, _LARGEST)


class Tuning:
    """Step size and scales, adapted over a fixed number of draws and then held.

    The scales come from a window of recent draws. A second window fills behind it and takes its
    place, so that draws from before the chain arrived are forgotten.

    Parameters
    ----------
    gradient : array (P,)
        At the start, which gives the first scales.
    draws : int
        How long to adapt.
    target : float
        Mean acceptance probability that the step size is adapted to.

    Attributes
    ----------
    scale : array (P,)
    step_size : float
        In coordinates divided by `scale`.
    done : int
        Draws taken in.
    """

    def __init__(self, gradient: np.ndarray, draws: int, target: float) -> None:
        self.draws, self.done = draws, 0
        self.scale = np.clip(np.abs(gradient) + 1e-10, 1e-6, 1e6) ** -0.5
        self.step_size = 0.1 * math.sqrt(len(gradient))
        self._steps = StepSize(self.step_size, target)
        self._front, self._back = Variances(len(gradient)), Variances(len(gradient))

    @classmethod
    def held(cls, scale: np.ndarray, step_size: float) -> "Tuning":
        """Return a tuning that is finished, with these scales (P,) and this step size."""
        made = cls(np.ones(len(scale)), 0, 0.5)
        made.scale, made.step_size = scale, step_size
        return made

    @property
    def finished(self) -> bool:
        """Whether everything is held."""
        return self.done >= self.draws

    def update(self, x: np.ndarray, gradient: np.ndarray, probability: float) -> None:
        """Take in a draw (P,), its gradient (P,), and the probability of accepting its proposal."""
        self._steps.update(probability)
        late = int(LATE * self.draws)
        if self.done < late:
            self._watch(x, gradient)
        self.done += 1
        if self.done == late:
            self._rescale()
            self._steps.restart(self._steps.current)
        self.step_size = self._steps.final if self.finished else self._steps.current

    def _watch(self, x: np.ndarray, gradient: np.ndarray) -> None:
        early = self.done < EARLY * self.draws
        self._front.add(x, gradient)
        self._back.add(x, gradient)
        if early or self._front.count % _FEWEST == 0:
            self._rescale()
        if self._back.count >= (_SHORT if early else max(_SHORT, int(_LONG * self.draws))):
            self._front, self._back = self._back, Variances(len(x))

    def _rescale(self) -> None:
        if self._front.count >= _FEWEST:
            self.scale = self._front.scale()
