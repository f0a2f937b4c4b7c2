"""A model of one's own is compared with itself before its first fit.

The file of a model says the same thing twice: `build` in PyMC, the other functions in NumPy. The
package's tests compare the two for its own models. For a model that a user has added, they are
compared here, at three random points. This takes about a second, once a process for each form.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ardvark.common.validate import InputError, logger
from ardvark.models import Problem

from ..target.target import Target

if TYPE_CHECKING:
    import pymc as pm

FUNCTIONS = (
    "build",
    "log_joint",
    "log_jacobian",
    "to_free",
    "simulate",
    "decision",
    "log_predictive",
)
"""A model is the package's own, and not compared, if all of these are."""
POINTS, TRIES = 3, 30
ABSOLUTE, RELATIVE = 1e-3, 1e-6
"""How much what should be equal may differ: a thousandth of a log density moves no posterior mean
by more than a thousandth of its sd, and functions in float32 round by the other part."""

_COMPARED: set[tuple[Any, ...]] = set()


def check_own(target: Target) -> None:
    """Refuse a model of the user's own whose functions contradict its PyMC model, or raise.

    Raises
    ------
    InputError
        `log_joint` + `log_jacobian` is not PyMC's log density, constants apart; `to_free` or
        `decision` differs from the PyMC model; or a function raises an error, which is chained.
    """
    problem = target.problem
    if problem is None:
        return
    functions = [getattr(problem.spec, name) for name in FUNCTIONS]
    if all(map(_packaged, functions)):
        return
    words = [v if isinstance(v, str) else v is None for v in vars(problem.hypers).values()]
    key = (*functions, *words, bool(problem.always))
    if key not in _COMPARED:
        compare_functions(problem, target.model)
        _COMPARED.add(key)


def compare_functions(problem: Problem, model: "pm.Model") -> None:
    """Compare the functions of a problem's model with a PyMC model: `check_own`, every time."""
    spec, name = problem.spec, problem.spec.name
    points = _points(model)
    if points is None:
        logger.warning(
            "%s was not compared with its PyMC model: near the initial point of that, its log "
            "density is not finite",
            name,
        )
        return
    theirs, without, point = points

    def called(function: str, *given: Any) -> Any:
        try:
            with np.errstate(all="ignore"):
                return getattr(problem, function, spec.log_jacobian)(*given)
        except Exception as error:
            if function == "simulate" and isinstance(error, InputError):
                return None  # hyperparameters that nothing can be drawn from
            raise InputError(
                f"{function} of the model {name!r} raised {type(error).__name__}: {error}. It must "
                "work at any point, with axes of draws in front of each variable's own."
            ) from error

    joint = called("log_joint", point)
    jacobian = called("log_jacobian", point, problem.hypers)
    free, eta = called("to_free", point), called("decision", point)
    called("log_predictive", problem.y, eta, point)
    called("simulate", np.random.default_rng(0))
    if np.shape(joint) != theirs.shape:
        raise InputError(
            f"log_joint of the model {name!r} must return one number for each draw, an array of "
            f"shape {theirs.shape} here, got {np.shape(joint)}. Sum over the last axis alone."
        )
    if not _constant(joint + jacobian - theirs, theirs):
        wrong = "log_joint, or log_jacobian,"
        if _constant(joint - without, theirs):
            wrong = "log_jacobian"
        elif _constant(jacobian - (theirs - without), theirs):
            wrong = "log_joint"
        raise InputError(
            f"{wrong} of the model {name!r} contradicts its PyMC model. log_joint + log_jacobian "
            f"must be model.logp() up to a constant; at {len(theirs)} random points they are "
            f"{_shown(joint)} + {_shown(jacobian)} and {_shown(theirs)}. Without Jacobian, "
            f"model.logp(jacobian=False) is {_shown(without)}. Correct the model's file."
        )
    given = {"eta": ("decision", eta)} if "eta" in point else {}
    given |= {rv.name: ("to_free", free.get(rv.name)) for rv in model.free_RVs}
    for variable, (function, got) in given.items():
        if got is None or not np.allclose(got, point[variable], rtol=ABSOLUTE, atol=RELATIVE):
            raise InputError(
                f"{function} of the model {name!r} contradicts its PyMC model: {variable} is "
                f"{_shown(point[variable])} there, and {function} gives {_shown(got)}. Correct the "
                "model's file."
            )


def _packaged(function: Callable[..., Any]) -> bool:
    return getattr(function, "__module__", "").startswith("ardvark.models.")


def _points(model: "pm.Model") -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]] | None:
    """Return PyMC's log density with and without Jacobian, and all variables, at random points.

    They lie around the initial point, up to 1 from it in each unconstrained component, and nearer
    where the density is not finite. A mask has random bits. None if the density is never finite.
    """
    rng, start = np.random.default_rng(0), model.initial_point()
    densities = [model.logp(), model.logp(jacobian=False)]
    compute = model.compile_fn(
        densities + model.replace_rvs_by_values(model.unobserved_RVs),
        inputs=model.value_vars,
        mode="FAST_COMPILE",
        on_unused_input="ignore",
    )
    found: list[list[np.ndarray]] = []
    for i in range(TRIES):
        at = {
            name: rng.integers(0, 2, x.shape, dtype=x.dtype)
            if x.dtype.kind in "iu"
            else x + rng.uniform(-1.0, 1.0, x.shape) * 0.8**i
            for name, x in start.items()
        }
        values = compute(at)
        if np.isfinite(values[:2]).all():
            found.append(values)
        if len(found) == POINTS:
            theirs, without, *variables = map(np.array, zip(*found, strict=True))
            names = [v.name for v in model.unobserved_RVs]
            return theirs, without, dict(zip(names, variables, strict=True))
    return None


def _constant(difference: np.ndarray, size: np.ndarray) -> bool:
    return bool(np.ptp(difference) <= ABSOLUTE + RELATIVE * np.abs(size).max())


def _shown(values: Any) -> str:
    return np.array2string(np.asarray(values), precision=6, threshold=6, separator=", ")
