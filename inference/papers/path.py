"""The path of a paper's algorithm: its weights at some iterations, stored on request.

With them, held-out scores along the path can be computed afterwards; no algorithm may use these
scores. `problem.decision({"feature_weight": ..., "sample_weight": ..., "bias": ...}, X)`, with the
arrays stored as `path_feature_weight`, ..., gives eta (state, rows) at standardised rows X.
"""

from dataclasses import dataclass, field

import numpy as np

from ..target.backend import Dims

PATH = "keep the weights along the path: path_feature_weight, path_sample_weight, path_bias"
_FALL = 0.95  # a thinned path keeps a state whose weights number at most this share of the last


@dataclass
class Path:
    """Weights at full size, 0 where pruned; sample weights are signed."""

    iteration: list[int] = field(default_factory=list)
    feature_weight: list[np.ndarray] = field(default_factory=list)
    sample_weight: list[np.ndarray] = field(default_factory=list)
    bias: list[float] = field(default_factory=list)
    sizes: tuple[float, float] = (np.inf, np.inf)

    def due(self, features: int, samples: int) -> bool:
        """Return whether either number has fallen by 5 % since the last state, and record both.

        This thins the path of algorithms with thousands of iterations.
        """
        fell = features < _FALL * self.sizes[0] or samples < _FALL * self.sizes[1]
        self.sizes = (features, samples) if fell else self.sizes
        return fell

    def keep(self, iteration: int, feature: np.ndarray, sample: np.ndarray, bias: float) -> None:
        """Add one state: feature weights (D,), sample weights (B,) and the bias."""
        self.iteration.append(iteration)
        self.feature_weight.append(feature)
        self.sample_weight.append(sample)
        self.bias.append(float(bias))

    def details(self) -> tuple[dict[str, np.ndarray], Dims]:
        """Return what a fit stores, with its dims; nothing if no state was kept."""
        if not self.iteration:
            return {}, {}
        names = "iteration", "feature_weight", "sample_weight", "bias"
        found = {f"path_{name}": np.asarray(getattr(self, name)) for name in names}
        dims: Dims = dict.fromkeys(found, ("state",))
        dims |= {"path_feature_weight": ("state", "feature")}
        return found, dims | {"path_sample_weight": ("state", "basis")}
