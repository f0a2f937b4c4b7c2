"""The yardsticks by name."""

from lab.yardsticks import knockoffs, penalised, stability, xolon
from lab.yardsticks.contract import Yardstick

YARDSTICKS: dict[str, Yardstick] = {
    yardstick.name: yardstick
    for yardstick in (
        penalised.L1, penalised.MCP, penalised.ELASTIC_NET, stability.STABILITY,
        knockoffs.KNOCKOFFS, xolon.XOLON,
    )
}  # fmt: skip
