"""`adopt` turns draws that ardvark did not make into a fit.

They may come from `pm.sample(model=problem.model)`, from NumPyro or Stan, or from your own
algorithm. They contain the model's variables under the model's names (`problem.shapes` lists them),
or only the shared quantities. Whatever they lack is computed as far as possible: free variables
from the paper's variables and vice versa, eta from the weights, the pointwise likelihood, the
densities of prior and posterior, and the selection. Nothing here is random.

Draws cannot prove that they come from this posterior. Detectable contradictions raise an error:
names of coordinates, labels or hyperparameters that differ from the problem's, values outside the
support, and an eta that contradicts its own weights, as happens if the inputs were on another
scale. So does a log density that came with the draws and differs from the problem's by more than a
constant: they are draws of another prior or model. Without such a log density the prior is
unchecked, and the fit says so.
"""

from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

import numpy as np
import xarray as xr

from ardvark.common.validate import InputError, logger, one_of
from ardvark.models import SHARED, Problem

from ..fits.datatree import by_pieces, check_same, dataset, group, pointwise, problem_dims
from ..target.backend import KINDS, Kind, Result
from ..target.target import Target
from .adopted_model import given_model
from .given_draws import LEAD, Arrays, Draws, Expected, check_support, inside, prior_unchecked
from .run import facts, finish

if TYPE_CHECKING:
    import pymc as pm

CALIBRATED, REPLICATES = 0.01, 100
"""A calibration speaks for a sampler if its corrected p-value is at least the first, and against it
otherwise; and with at least so many replicates, which see an error of half an sd."""
TOLERANCE = 1e-3
"""Of a given eta beside that of its own weights: they may have been computed in float32."""


class Calibrated(Protocol):
    """What `ardvark.calibrate` returns, as far as it is read here."""

    @property
    def ranks(self) -> np.ndarray:
        """The ranks (R, F) of every replicate."""
        ...

    @property
    def p_value(self) -> float:
        """The smallest p-value, corrected for the number of quantities."""
        ...

    def text(self) -> str:
        """Return what was found, in words."""
        ...


def adopt(
    problem: "Problem | pm.Model",
    draws: Draws,
    kind: Kind = "mcmc",
    calibration: Calibrated | None = None,
) -> xr.DataTree:
    """Return a fit with draws that ardvark did not make, for `compare`, `predict`, `save`.

    Parameters
    ----------
    problem : Problem or pm.Model
        What they are draws of. ``problem.shapes`` has the names and shapes of a problem's
        variables, which are on the scale of its standardised inputs, ``problem.X`` and ``.Z``. Of a
        model of your own all free variables are needed; the others are computed.
    draws : DataTree, Dataset, or dict of array (chain, draw, ...)
        The model's variables. The shared quantities alone (`feature_weight`, `sample_weight`,
        `eta`) are enough for a comparison. For a single chain pass ``array[None]``; the chain axis
        is required. Of a tree, the groups posterior and sample_stats are read; the latter may use
        the names of PyMC, nutpie or ArviZ.
    kind : {"mcmc", "approximation", "search", "point"}
        Draws of the posterior itself, draws of something else, or one state (1, 1, ...).
    calibration : Calibration, optional
        Of the sampler that made the draws (`ardvark.calibrate`, or its parts). Draws do not prove
        what they are of: without a calibration, adopted chains are compared with an exact fit, and
        not judged alone. It must be of at least 100 replicates to be believed.

    Returns
    -------
    xarray.DataTree
        A fit like that of `fit`, with the method "adopted". It has `lp` if the draws contain every
        variable of the problem's form. It has `log_q`, given in sample_stats, only together with
        `lp`. ``attrs["seconds_run"]`` is the sampling time recorded in PyMC's trees, or NaN.
        ``attrs["prior_unchecked"]`` is empty if the log density in sample_stats (`lp`, `logp`,
        `lp__`) shows that the draws are of this prior. Otherwise it says what is missing, and so
        do the ``ardvark`` logger and the verdict.

    Raises
    ------
    InputError
        An unknown name, no shared quantity, a wrong shape, a value that is not finite or outside
        the support, coordinates, labels or hyperparameters of another problem, an eta that
        contradicts the weights, or a log density of another prior or model.

    Examples
    --------
    >>> import arviz as az
    >>> import numpy as np
    >>> import ardvark as av
    >>> problem = av.problem("rvm", [[0.0], [1.0], [3.0]], [0, 0, 1])
    >>> rng = np.random.default_rng(0)
    >>> simulated = [problem.simulate(rng) for _ in range(6000)]
    >>> exact = [s for s in simulated if (s["y"] == problem.y).all()]  # rejection sampling
    >>> chains = exact[:300], exact[300:600]
    >>> names = ("alpha", "bias", "sample_weight", "feature_weight")
    >>> draws = {name: np.array([[s[name] for s in chain] for chain in chains]) for name in names}
    >>> stats = {"lp": problem.log_density(draws)}  # PyMC, nutpie and Stan store theirs
    >>> fit = av.adopt(problem, az.from_dict({"posterior": draws, "sample_stats": stats}))
    >>> fit.attrs["method"], fit.attrs["kind"], fit.attrs["status"]
    ('adopted', 'mcmc', 'finished')
    >>> dict(fit["posterior"]["eta"].sizes)  # it was computed
    {'chain': 2, 'draw': 300, 'obs': 3}
    >>> sorted(fit["sample_stats"])  # and so was the posterior density of each draw
    ['lp']
    >>> fit.attrs["prior_unchecked"]  # nothing: that density is the problem's
    ''
    """
    one_of("kind", kind, KINDS)
    target = Target(problem)
    if target.problem is None:
        point, stats, seconds, unchecked = given_model(target.model, draws, kind)
    else:
        point, stats, seconds, unchecked = _given(target.problem, draws, kind)
    chains, count = next(iter(point.values())).shape[:2]
    attrs = facts(target.problem, method="adopted", kind=kind, draws=count, chains=chains)
    attrs["prior_unchecked"] = unchecked
    if calibration is not None:
        attrs["calibration"] = calibration.text()
        if calibration.p_value < CALIBRATED or len(calibration.ranks) >= REPLICATES:
            attrs["calibrated"] = int(calibration.p_value >= CALIBRATED)
    result = Result(point, stats, seconds_compile=np.nan, seconds_run=seconds)
    with np.errstate(invalid="ignore"):  # a likelihood of NaN is an error below
        tree = finish(target, result, attrs)
    likelihood = pointwise(tree)
    if any(np.isnan(values).any() for values in likelihood.values()):
        raise InputError("the likelihood of some draws is NaN, so they are outside the support.")
    if target.problem is not None:
        _tell_missing(target.problem, tree, point, "lp" in stats)
    if unchecked:
        logger.warning("adopted with the prior unchecked: %s", unchecked)
    return tree


def _given(problem: Problem, draws: Draws, kind: Kind) -> tuple[Arrays, Arrays, float, str]:
    """Return variables and statistics of draws of a problem, seconds, and what is unchecked."""
    model = problem.fitted_model
    free = [rv.name for rv in model.free_RVs]
    masks = {rv.name: rv.dtype for rv in model.free_RVs if rv.dtype.startswith("int")}
    expected = Expected("problem", problem.spec.name, problem.shapes, problem.coords, masks)
    if isinstance(draws, xr.DataTree):
        _check_labels(problem, draws)
    given, stats, seconds = expected.read(draws)
    if isinstance(draws, xr.DataTree):
        _check_constants(problem, group(draws, "constant_data"), given)
    point = expected.checked(given)
    check_support(model, point, kind, positive=("feature_weight",))  # in every model
    point = _with_eta(problem, _completed(problem, point))
    if not any(name in point for name in SHARED):
        raise InputError(
            f"none of {', '.join(SHARED)} can be computed from these draws. They lack "
            f"{', '.join(name for name in problem.shapes if name not in point)}."
        )
    lp = _log_density(problem, point, kind)
    stats = {k: v for k, v in stats.items() if k != "log_q" or lp is not None}
    if isinstance(draws, xr.DataTree) and "fingerprint" in draws.attrs:  # a fit of this problem
        unchecked = str(draws.attrs.get("prior_unchecked", ""))
    else:
        unchecked = prior_unchecked(draws, free, point, lp, "problem")
    return point, stats if lp is None else stats | {"lp": lp}, seconds, unchecked


def _tell_missing(problem: Problem, tree: xr.DataTree, point: Arrays, has_lp: bool) -> None:
    """Log which variables the draws lack, and what the fit is without for that."""
    missing = [name for name in problem.shapes if name not in point]
    if not missing:
        return
    there = {"eta": "eta" in point, "the likelihood": "y" in pointwise(tree)}
    there |= {"log_prior": "log_prior" in tree.children, "lp": has_lp}
    lost = [name for name, found in there.items() if not found]
    without = f", so without {', '.join(lost)}" if lost else ""
    logger.warning("adopted without %s%s", ", ".join(missing), without)


# --- what is given --------------------------------------------------------------------------------


def _check_labels(problem: Problem, draws: xr.DataTree) -> None:
    """Refuse a fit of another problem, and draws of other labels."""
    if "fingerprint" in draws.attrs:
        check_same(problem, draws, ordered=False)
    observed = group(draws, "observed_data")
    if "y" in observed and not np.array_equal(observed["y"].values, problem.y):
        raise InputError("the labels in observed_data differ from those of the problem.")


def _check_constants(problem: Problem, constants: xr.Dataset, given: Arrays) -> None:
    """Refuse draws of a model that was built with other numbers, or in which a variable is fixed.

    PyMC stores each `pm.Data` of a model with its draws: hyperparameters, and what `pm.do` fixed.
    """
    free = {rv.name for rv in problem.fitted_model.free_RVs} - {*given}
    for name, theirs in constants.items():
        ours = vars(problem.hypers).get(str(name))
        if name in free:
            raise InputError(
                f"{name} is a variable of this problem, and a constant of the model that these "
                "draws are of: they are draws of another model."
            )
        if isinstance(ours, float) and not np.allclose(theirs, ours, rtol=1e-6, atol=0.0):
            raise InputError(
                f"{name} is {theirs.item():.6g} in the model that these draws are of, and "
                f"{ours:.6g} in this problem: they are draws of another prior. Adopt them for a "
                f"problem with that {name} (problem.with_hypers)."
            )


# --- what is computed -----------------------------------------------------------------------------


def _completed(problem: Problem, point: Arrays) -> Arrays:
    """Return the point with the free variables and deterministics that follow, except eta."""
    import pymc as pm

    model = problem.fitted_model
    free = [rv.name for rv in model.free_RVs]
    if not all(name in point for name in free):
        # a KeyError: the paper's variables are not all there
        with suppress(KeyError), np.errstate(all="ignore"):
            point = problem.to_free(point) | point
    others = [v.name for v in model.deterministics if v.name not in (*point, "eta")]
    if others and all(name in point for name in free):
        given = {name: point[name] for name in free}
        posterior = dataset(given, problem_dims(problem), problem.coords, draws=True)
        found = pm.compute_deterministics(
            posterior,
            var_names=others,
            model=model,
            progressbar=False,
            compile_kwargs={"mode": "FAST_COMPILE"},
        )
        point = point | {k: found[k].transpose(*LEAD, ...).values for k in others}
    return point


def _with_eta(problem: Problem, point: Arrays) -> Arrays:
    """Return the point with the eta of its weights; refuse a given eta that differs."""
    try:
        eta = by_pieces(lambda some: {"eta": problem.decision(some)}, point)["eta"]
    except InputError:  # weights are missing
        return point
    if "eta" in point:
        off = np.abs(point["eta"] - eta)
        if (off > TOLERANCE * (1.0 + np.abs(eta))).any():
            raise InputError(
                f"eta differs by up to {off.max():.3g} from the eta that the weights give. Weights "
                "must refer to the standardised problem.X and problem.Z, and eta includes the bias."
            )
    return point | {"eta": eta}


def _log_density(problem: Problem, point: Arrays, kind: Kind) -> np.ndarray | None:
    """Return the log posterior (chain, draw), NaN outside the support; None if it lacks a part."""
    try:
        with np.errstate(all="ignore"):
            lp = by_pieces(lambda some: {"lp": problem.log_density(some)}, point)["lp"]
    except KeyError:
        return None
    return inside(lp, kind)
