"""What `pfcvm_lp` and `pfcvm_em` note in each iteration."""

from dataclasses import dataclass, field

import numpy as np

from ardvark.common.progress import Update

from ...target.backend import Dims
from ...target.reasons import Reason
from ..path import Path
from .engine import Engine, EngineOptions


@dataclass
class Traces:
    """A fit: the engine, traces with one entry per iteration, and why it is not a maximum."""

    engine: Engine
    objective: list[float] = field(default_factory=list)
    features: list[int] = field(default_factory=list)
    samples: list[int] = field(default_factory=list)
    path: Path = field(default_factory=Path)
    reason: str | Reason = ""

    def note(
        self, t: int, value: float, name: str, options: EngineOptions, update: Update | None
    ) -> None:
        """Note iteration t with its objective, whose name the progress bar tells."""
        self.objective.append(value)
        self.features.append(len(self.engine.feature.u))
        self.samples.append(len(self.engine.sample.u) - 1)
        if options.path:
            self.path.keep(t, *self.engine.weights())
        if update is not None and t % 10 == 0:
            update(t, f"{name} {value:.2f}, {self.features[-1]} features")

    def details(self) -> tuple[dict[str, np.ndarray], Dims]:
        """Return the engine's state and the traces, with their dims."""
        details, dims = self.engine.details()
        by_iteration = {
            "objective": np.asarray(self.objective),
            "features_kept": np.asarray(self.features),
            "samples_kept": np.asarray(self.samples),
        }
        path, path_dims = self.path.details()
        dims |= dict.fromkeys(by_iteration, ("iteration",)) | path_dims
        return details | by_iteration | path, dims
