"""One check for the algorithms of the four papers: each step rises, and the end is a maximum.

An `Ascent` states what an algorithm claims on one problem, beside the paper's formula written
naively: dense matrices, loops, SciPy's laws. `check_ascent` walks it from random states. Each file
of cases also replaces every kind of step by a wrong one, which must fail (`check_control`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

Values = dict[str, np.ndarray]
Formula = Callable[[Values], float]

_STEP = 1e-4  # how far a parameter moves for a difference
_SEEN = 1e-6  # a slope that is left at a maximum over a factor, by rounding of the differences


@dataclass(frozen=True, kw_only=True)
class Ascent:
    """What an algorithm claims of its steps on one problem.

    Attributes
    ----------
    start : from a number to a state away from any maximum.
    steps : in the algorithm's order, what moves a state in place.
    values : the parameters of a state, all that the formula is about.
    dense : the objective by the paper's formula.
    objective : the objective as the code computes it; None where it does not.
    charts : how a parameter may move: "real", "positive", "nonnegative", "covariance"; "kept" is
        one that does not leave 0.
    maximises : the parameters over which a step leaves a function at its maximum; and from the
        values before the step to that function. None: it is `dense`.
    formula : from the values before a step to what it sets.
    slopes : d objective / d parameter as the code computes it, at a start.
    rises : whether no step lowers the objective.
    end : moves a state to where the algorithm ends, a maximum over every parameter in `charts`.
    slack : the largest slope there, per unit of a parameter.
    """

    start: Callable[[int], Any]
    steps: Mapping[str, Callable[[Any], object]]
    values: Callable[[Any], Values]
    dense: Formula
    objective: Callable[[Any], float | None]
    charts: Mapping[str, str] = field(default_factory=dict)
    maximises: Mapping[str, tuple[tuple[str, ...], Callable[[Values], Formula] | None]] = field(
        default_factory=dict
    )
    formula: Mapping[str, Callable[[Values], Values]] = field(default_factory=dict)
    slopes: Callable[[Any], Values] | None = None
    rises: bool = True
    end: Callable[[Any], object] | None = None
    slack: float = 1e-4


def moved(x: np.ndarray, chart: str, index: tuple[int, ...], by: float) -> np.ndarray:
    """Return x with one entry moved, in the units of its chart."""
    unit = np.zeros(np.shape(x))
    unit[index] = by
    if chart == "positive":
        return x * np.exp(unit)
    if chart == "kept" and x[index] == 0.0:
        return x
    if chart == "covariance":
        C = np.eye(len(x)) + unit
        return C @ x @ C.T
    return np.maximum(x + unit, 0.0) if chart == "nonnegative" else x + unit


def steepest(of: Formula, values: Values, name: str, chart: str) -> float:
    """Return the largest gain of a function per unit that one entry of a parameter moves.

    At a maximum it is negative or 0, at a bound and at a kink of the function too.
    """
    top = of(values)
    gains = [
        of(values | {name: moved(values[name], chart, index, by)}) - top
        for index in np.ndindex(np.shape(values[name]))
        for by in (_STEP, -_STEP)
    ]
    return max(gains, default=-np.inf) / _STEP


def differences(of: Formula, values: Values, name: str) -> np.ndarray:
    """Return the slope of a function in each entry of a parameter, by central differences."""
    out = np.empty(np.shape(values[name]))
    for index in np.ndindex(out.shape):
        ends = [of(values | {name: moved(values[name], "real", index, h)}) for h in (1e-6, -1e-6)]
        out[index] = (ends[0] - ends[1]) / 2e-6
    return out


def check_ascent(case: Ascent, sweeps: int = 2) -> None:
    """Fail unless the steps do what the case claims, from two starts."""
    for number in (0, 1):
        state = case.start(number)
        _agrees(case, state)
        if case.slopes is not None:
            at = case.values(state)
            for name, slope in case.slopes(state).items():
                want = differences(case.dense, at, name)
                np.testing.assert_allclose(slope, want, rtol=1e-5, atol=1e-5, err_msg=name)
        for sweep in range(sweeps):
            for name, step in case.steps.items():
                before = {k: np.copy(x) for k, x in case.values(state).items()}
                step(state)
                after = case.values(state)
                _follows(case, name, before, after, last=sweep == sweeps - 1)
            _agrees(case, state)
    if case.end is not None:
        case.end(state)
        _agrees(case, state)
        for name, chart in case.charts.items():
            left = steepest(case.dense, case.values(state), name, chart)
            assert left < case.slack, f"at the end {name} still rises, by {left:.2g} a unit"


def _agrees(case: Ascent, state: Any) -> None:
    found = case.objective(state)
    if found is not None:
        assert found == pytest.approx(case.dense(case.values(state)), rel=1e-8, abs=1e-8)


def _follows(case: Ascent, step: str, before: Values, after: Values, last: bool) -> None:
    """Compare one step with its formula, the objective with that before, and look at a maximum."""
    if step in case.formula:
        for name, want in case.formula[step](before).items():
            message = f"{step}: {name}"
            np.testing.assert_allclose(after[name], want, rtol=1e-6, atol=1e-9, err_msg=message)
    if case.rises:
        low, high = case.dense(before), case.dense(after)
        assert high >= low - 1e-10 * (1.0 + abs(low)), (
            f"{step} lowers the objective, by {low - high}"
        )
    if last and step in case.maximises:
        names, of = case.maximises[step]
        function = case.dense if of is None else of(before)
        scale = 1.0 + abs(function(after))
        for name in names:
            left = steepest(function, after, name, case.charts[name])
            assert left < _SEEN * scale, f"{step} leaves {name} a slope of {left:.2g}"


def check_control(case: Ascent, step: str, wrong: Callable[[Any], object]) -> None:
    """Fail unless the case does not pass with a wrong step in the place of one of its own."""
    assert step in case.steps
    with pytest.raises(AssertionError):
        check_ascent(replace(case, steps={**case.steps, step: wrong}))
