"""How much a method draws: the settings of a fit that are not its problem, method or options.

The functions that a user calls take `draws`, `chains`, `random_seed`, `keep` and `progressbar`, and
combine them into one `Sampling`. Lower layers pass on that one object.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from ardvark.common.validate import one_of, whole

Keep = Literal["all", "shared"]
LARGEST_SEED = 2**63 - 1
"""A fit's attributes store its seed as a signed 64-bit integer."""


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Sizes and seed of one fit, which variables are kept, and whether progress is shown.

    Attributes
    ----------
    draws, chains : int
        Draws per chain, and number of chains. A point or search method returns one draw.
    seed : int
        Equal seeds give equal results.
    keep : {"all", "shared"}
        Keep every variable, or only what predictions and effects need: `feature_weight`,
        `sample_weight`, `eta`, weights of covariates, and the scalars.
    progressbar : bool
        Show each stage.

    Raises
    ------
    InputError
        A size is not an integer of at least 1, the seed is not an integer from 0 to
        `LARGEST_SEED`, or `keep` is neither word.
    """

    draws: int = 1000
    chains: int = 4
    seed: int
    keep: Keep = "all"
    progressbar: bool = False

    def __post_init__(self) -> None:
        checked = {
            "draws": whole("draws", self.draws, 1),
            "chains": whole("chains", self.chains, 1),
            "seed": whole("random_seed", self.seed, 0, LARGEST_SEED),
        }
        for name, value in checked.items():  # a NumPy integer is a plain one from here on
            object.__setattr__(self, name, value)
        one_of("keep", self.keep, get_args(Keep))

    def generators(self) -> list[np.random.Generator]:
        """Return one generator per chain, each with its own random stream."""
        streams = np.random.SeedSequence(self.seed).spawn(self.chains)
        return [np.random.default_rng(stream) for stream in streams]
