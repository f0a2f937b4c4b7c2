"""Covariates: columns that are always in the model, beside what it selects from.

In every model of the zoo, with C (N, K) the covariates::

    g_c    ~ Normal(0, covariate_sd)          weight of a covariate, `covariate_weight`     (K,)
    eta_n  = (what the model says without them) + sum_c C_nc g_c

The columns of C are standardised as the features are, so a weight is a change of eta per standard
deviation of its column. Covariates stand outside of the kernel, the ARD priors and the masks. So
they are never selected and never counted as active; a feature is judged by what it adds to them. A
column of text has one column of C for each of its levels, or for the second of two
(`ardvark.data.encoding`).

The default of `covariate_sd` is wide: 2.5 logits for one standard deviation of the column, a factor
of 12 in the odds, as in rstanarm; under a probit link 1.5, which is about the same on that scale
(2.5 / 1.6). A narrow prior would leave a part of a confounder's effect to the features that follow
it.

Each function below does nothing where there are no covariates. `declare` is the prior in PyMC;
`logp` and `draw` are the same prior in NumPy, written independently of it.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import pymc as pm
from scipy import stats

from ardvark.common.declared import hyper

NAME = "covariate_weight"
"""The name of the weights, dim "covariate"."""
PROBIT_SD = 1.5
LOGIT_SD = 2.5


class Rows(Protocol):
    """What is read of a model's `Inputs`."""

    @property
    def C(self) -> np.ndarray | None:
        """Covariates (N, K), standardised; None without any."""


def sd_hyper(default: float = LOGIT_SD) -> Any:
    """Declare the prior standard deviation of the weight of a covariate."""
    return hyper(
        default,
        "prior standard deviation of the weight of a covariate, per standard deviation of it",
        above=0.0,
        paper="no covariates",
        why="of the columns that are always in the model; unused without any",
        outside="It is a standard deviation, in units of eta.",
    )


def declare(inputs: Rows, h: Any, eta: Any) -> Any:
    """Declare the weights in the current PyMC model; return eta (N,) with what they add."""
    if inputs.C is None:
        return eta
    C = pm.Data("C", inputs.C, dims=("obs", "covariate"))
    sd = pm.Data("covariate_sd", h.covariate_sd)
    return eta + C @ pm.Normal(NAME, 0.0, sd, dims="covariate")


def added(eta: np.ndarray, point: Mapping[str, np.ndarray], inputs: Rows) -> np.ndarray:
    """Return eta (..., N) with what the covariates add: eta + C g."""
    return eta if inputs.C is None else eta + np.asarray(point[NAME]) @ inputs.C.T


def logp(point: Mapping[str, np.ndarray], inputs: Rows, h: Any) -> np.ndarray | float:
    """Return the log prior density of the weights (...)."""
    if inputs.C is None:
        return 0.0
    return stats.norm.logpdf(point[NAME], 0.0, h.covariate_sd).sum(-1)


def free(point: Mapping[str, np.ndarray], inputs: Rows) -> dict[str, np.ndarray]:
    """Return the free variables that `declare` declares: the weights themselves."""
    return {} if inputs.C is None else {NAME: point[NAME]}


def draw(rng: np.random.Generator, inputs: Rows, h: Any) -> dict[str, np.ndarray]:
    """Return one draw of the weights (K,), by name."""
    if inputs.C is None:
        return {}
    return {NAME: rng.normal(0.0, h.covariate_sd, inputs.C.shape[1])}
