"""The registry of statistics, which measure how far a fit is from the reference.

To add one, write a file in this folder that declares a `Statistic`, and add a line here. All of
them are in units of the reference:

    error         |mean - mean of the reference| / sd of the reference               0
    inclusion     |P - P of the reference| of a bit of a mask                        0
    sd_ratio      sd / sd of the reference, the median component                     1
    sd_ratio_worst    of the component that is farthest from 1                       1
    coverage_50,  share of the reference inside the fit's own central intervals       0.5, 0.9
    coverage_90
    two_sample    accuracy of a classifier that tells the two sets of draws apart     0.5
    difference    mean distance of P(y = 1)                                           0
    row           largest difference of P(y = 1) of a row                            0
    agreement     share of the rows in the same class                                 1
    spearman      rank correlation of the features' mean sizes                        1
    captured      what the leading features carry of the reference's leading ones    1
    p_active      largest difference of P(active)                                     0

The last column is the score of a perfect method, apart from Monte Carlo error, which `floors.py`
computes.
"""

from ..statistic import Statistic
from .coverage import COVERAGE_50, COVERAGE_90
from .error import ERROR, INCLUSION
from .p_active import P_ACTIVE
from .prediction import AGREEMENT, DIFFERENCE, ROW
from .ranking import CAPTURED, SPEARMAN
from .sd_ratio import SD_RATIO, SD_RATIO_WORST
from .two_sample import TWO_SAMPLE

STATISTICS: dict[str, Statistic] = {
    s.name: s
    for s in (
        ERROR,
        INCLUSION,
        SD_RATIO,
        SD_RATIO_WORST,
        COVERAGE_50,
        COVERAGE_90,
        TWO_SAMPLE,
        DIFFERENCE,
        AGREEMENT,
        ROW,
        SPEARMAN,
        CAPTURED,
        P_ACTIVE,
    )
}
"""Every statistic by name, in the order of `Comparison.distances` and of the table."""
