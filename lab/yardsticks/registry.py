"""The yardsticks by name."""

from lab.yardsticks import filters, knockoffs, machines, penalised, stability, xolon
from lab.yardsticks.contract import Yardstick

YARDSTICKS: dict[str, Yardstick] = {
    yardstick.name: yardstick
    for yardstick in (
        penalised.L1, penalised.MCP, penalised.ELASTIC_NET, penalised.KERNEL_L1,
        penalised.L2_LOGISTIC, stability.STABILITY, knockoffs.KNOCKOFFS, machines.QUADRATIC_SVM,
        machines.RANDOM_FOREST, machines.ADABOOST, machines.PERCEPTRON, machines.GP_ARD,
        filters.MRMR, filters.TRACE_RATIO, filters.ROBUST, xolon.XOLON,
    )
}  # fmt: skip
