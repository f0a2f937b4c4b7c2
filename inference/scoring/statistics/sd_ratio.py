"""The posterior sd divided by the reference's; a method with a ratio below 1 is overconfident."""

import numpy as np

from ardvark.models import SHARED

from ..draws import Draws, Exact
from ..floors import OfAverage
from ..statistic import Limit, Shown, Statistic, factor, middle
from .error import silent


def sd_ratio(found: Draws, exact: Draws) -> np.ndarray:
    """Return sd / sd of the reference (K,)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        value = found.sd / exact.sd
    return np.where(silent(found, exact), np.nan, value)


def squares(exact: Exact) -> np.ndarray:
    """Return the terms whose average is, to first order, a log sd: d log sd = d var / (2 var)."""
    z = exact.standardised()
    return 0.5 * z * z


SD_RATIO = Statistic(
    name="sd_ratio",
    of="continuous",
    compute=sd_ratio,
    reduce=middle,
    perfect=1.0,
    distance=factor,
    noise=OfAverage(squares),
    phrase="{quantity}: the sd is {value:.2g} times that of the reference",
    floor_text=lambda floor: f"factor {np.exp(floor):.2f}",
    limits={
        "uncertainty": Limit(
            float(np.log(1.25)),
            float(np.log(1.0 / 0.6)),
            "A 90 % interval covers 81 % if its sd is 0.8 times the right one; 68 % at 0.6 times.",
        )
    },
    columns={q: Shown(f"sd ratio of {q}", 2) for q in SHARED},
    meaning=(
        "The posterior standard deviation divided by the reference's; the median over components. "
        "A method with a ratio below 1 is overconfident. It is not given for a binary feature mask."
    ),
)
