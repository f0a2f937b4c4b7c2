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

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from ardvark.common.validate import InputError, logger, one_of, unknown
from ardvark.models import SHARED, Problem

from ..fits.datatree import (
    SAMPLE_STATS,
    by_pieces,
    check_same,
    dataset,
    group,
    pointwise,
    problem_dims,
)
from ..samplers.gradient.nuts import STATISTICS
from ..target.backend import KINDS, Kind, Result
from ..target.target import Target
from .run import facts, finish

if TYPE_CHECKING:
    import pymc as pm

Draws = xr.DataTree | xr.Dataset | Mapping[str, ArrayLike]
Arrays = dict[str, np.ndarray]
LEAD = ("chain", "draw")
CALIBRATED, REPLICATES = 0.01, 100
"""A calibration speaks for a sampler if its corrected p-value is at least the first, and against it
otherwise; and with at least so many replicates, which see an error of half an sd."""
TOLERANCE = 1e-3
"""Of a given eta beside that of its own weights: they may have been computed in float32."""
SPREAD = 0.01
"""How much the difference of two log densities of one posterior may vary. If its sd is below this,
no posterior mean differs by more posterior sd: reweighting by exp(difference) moves a mean by their
covariance. Draws and densities in float64 stay far below."""
COARSE = 1e-5
"""How much more, per size of a log density that was stored in float32 or with a few digits."""
DENSITIES = ("lp", "logp", "lp__")
"""The log density in the names of PyMC and ArviZ, of nutpie, of Stan."""


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
    problem: Problem,
    draws: Draws,
    kind: Kind = "mcmc",
    calibration: Calibrated | None = None,
) -> xr.DataTree:
    """Return a fit with draws that ardvark did not make, for `compare`, `predict`, `save`.

    Parameters
    ----------
    problem : Problem
        The problem they are draws of. ``problem.shapes`` has the names and shapes of its
        variables, which are on the scale of its standardised inputs, ``problem.X`` and ``.Z``.
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
    given, stats, seconds = _read(problem, draws)
    point = _checked(problem, given)
    _check_support(problem.fitted_model, point, kind)
    point = _with_eta(problem, _completed(problem, point))
    if not any(name in point for name in SHARED):
        raise InputError(
            f"none of {', '.join(SHARED)} can be computed from these draws. They lack "
            f"{', '.join(name for name in problem.shapes if name not in point)}."
        )
    lp = _log_density(problem, point, kind)
    unchecked = _prior_unchecked(problem, draws, point, lp)
    stats = {k: v for k, v in stats.items() if k != "log_q" or lp is not None}
    if lp is not None:
        stats["lp"] = lp
    chains, count = next(iter(point.values())).shape[:2]
    attrs = facts(problem, method="adopted", kind=kind, draws=count, chains=chains)
    attrs["prior_unchecked"] = unchecked
    if calibration is not None:
        attrs["calibration"] = calibration.text()
        if calibration.p_value < CALIBRATED or len(calibration.ranks) >= REPLICATES:
            attrs["calibrated"] = int(calibration.p_value >= CALIBRATED)
    result = Result(point, stats, seconds_compile=np.nan, seconds_run=seconds)
    with np.errstate(invalid="ignore"):  # a likelihood of NaN is an error below
        tree = finish(Target(problem), result, attrs)
    likelihood = pointwise(tree)
    if "y" in likelihood and np.isnan(likelihood["y"]).any():
        raise InputError("the likelihood of some draws is NaN, so they are outside the support.")
    missing = [name for name in problem.shapes if name not in point]
    if missing:
        there = {"eta": "eta" in point, "the likelihood": "y" in likelihood}
        there |= {"log_prior": "log_prior" in tree.children, "lp": lp is not None}
        lost = [name for name, found in there.items() if not found]
        without = f", so without {', '.join(lost)}" if lost else ""
        logger.warning("adopted without %s%s", ", ".join(missing), without)
    if unchecked:
        logger.warning("adopted with the prior unchecked: %s", unchecked)
    return tree


# --- what is given --------------------------------------------------------------------------------


def _read(problem: Problem, draws: Draws) -> tuple[Arrays, Arrays, float]:
    """Return variables and statistics, each (chain, draw, ...), and the seconds of sampling."""
    if isinstance(draws, xr.DataTree):
        if "fingerprint" in draws.attrs:
            check_same(problem, draws, ordered=False)
        observed = group(draws, "observed_data")
        if "y" in observed and not np.array_equal(observed["y"].values, problem.y):
            raise InputError("the labels in observed_data differ from those of the problem.")
        given_alone = "posterior" not in draws.children and set(LEAD) <= set(draws.dims)
        posterior = draws.to_dataset() if given_alone else group(draws, "posterior")
        seconds = float(posterior.attrs.get("sampling_time", np.nan))
        given = _of_dataset(problem, posterior)
        _check_constants(problem, group(draws, "constant_data"), given)
        return given, _statistics(draws), seconds
    if isinstance(draws, xr.Dataset):
        return _of_dataset(problem, draws), {}, np.nan
    if not isinstance(draws, Mapping):
        raise InputError(
            "adopt needs a DataTree, a Dataset, or a dict that maps names of variables to arrays "
            f"(chain, draw, ...), got {type(draws).__name__}."
        )
    return {str(name): np.asarray(values) for name, values in draws.items()}, {}, np.nan


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


def _of_dataset(problem: Problem, posterior: xr.Dataset) -> Arrays:
    """Return the variables of a posterior group, in the order of the problem's coordinates."""
    missing = [dim for dim in LEAD if dim not in posterior.dims]
    if missing:
        raise InputError(f"the draws have no dimension {' and no '.join(map(repr, missing))}.")
    for dim, names in problem.coords.items():
        if dim not in posterior.coords or posterior[dim].dtype.kind in "iu":  # numbered by default
            continue
        found = [str(label) for label in posterior[dim].values]
        if set(found) != set(names) or len(found) != len(names):
            raise InputError(
                f"the names along {dim!r} differ: those of the draws begin with {found[0]!r}, "
                f"those of the problem with {names[0]!r}."
            )
        posterior = posterior.isel({dim: [found.index(name) for name in names]})
    return {str(k): v.transpose(*LEAD, ...).values for k, v in posterior.data_vars.items()}


def _statistics(tree: xr.DataTree) -> Arrays:
    """Return the statistics of a tree, by our names; `lp` is computed anew."""
    stats, found = group(tree, "sample_stats"), Arrays()
    for name in SAMPLE_STATS:
        for theirs in (name, *STATISTICS.get(name, ())):
            if name != "lp" and theirs in stats and set(stats[theirs].dims) == set(LEAD):
                found[name] = stats[theirs].transpose(*LEAD).values
                break
    return found


def _checked(problem: Problem, given: Arrays) -> Arrays:
    """Return the variables in the model's form; refuse wrong names, shapes and values."""
    shapes, lead = problem.shapes, None
    if not given:
        raise InputError(f"there are no draws: expected some of {', '.join(shapes)}.")
    discrete = {
        rv.name: rv.dtype for rv in problem.fitted_model.free_RVs if rv.dtype.startswith("int")
    }
    point = Arrays()
    for name, values in given.items():
        if name not in shapes:
            raise unknown(
                f"variable of {problem.spec.name}", name, shapes, "Rename it, or leave it out."
            )
        lead = values.shape[:2] if lead is None else lead
        want = ", ".join(("chain", "draw", *map(str, shapes[name])))
        if values.shape[2:] != shapes[name] or values.ndim < 2:
            chain = " For one chain, pass array[None]." if values.shape[1:] == shapes[name] else ""
            raise InputError(f"{name} must have the shape ({want}), got {values.shape}.{chain}")
        if values.shape[:2] != lead or 0 in lead:
            first = next(iter(given))
            raise InputError(
                f"every variable must have the same number of chains and draws, at least one: "
                f"{name} has {values.shape[:2]}, {first} has {lead}."
            )
        if values.dtype.kind not in "biuf":
            raise InputError(f"{name} must contain numbers, got values of type {values.dtype}.")
        bad = ~np.isfinite(values)
        if bad.any():
            raise InputError(
                f"{name} contains {int(bad.sum())} NaN or infinite value(s), {_first(bad)}."
            )
        if name in discrete and not np.isin(values, (0, 1)).all():
            wrong = ~np.isin(values, (0, 1))
            raise InputError(
                f"{name} is a mask and must be 0 or 1; another value is {_first(wrong)}."
            )
        point[name] = values.astype(discrete.get(name, "float64"))
    return point


def _first(bad: np.ndarray) -> str:
    """Return where the first bad value is, in words."""
    chain, draw, *rest = np.argwhere(bad)[0].tolist()
    return f"the first in chain {chain}, draw {draw}" + (f", component {rest[0]}" if rest else "")


def _check_support(model: "pm.Model", point: Arrays, kind: Kind) -> None:
    """Refuse draws of a Markov chain outside the support; an approximation may leave it."""
    from pymc.logprob.transforms import LogOddsTransform, LogTransform

    upper = {"feature_weight": np.inf}  # no model has a negative one
    for rv in model.free_RVs:
        transform = model.rvs_to_transforms[rv]
        if isinstance(transform, LogTransform | LogOddsTransform):
            upper[rv.name] = np.inf if isinstance(transform, LogTransform) else 1.0
    for name, high in upper.items():
        if kind == "mcmc" and name in point:
            bad = (point[name] < 0.0) | (point[name] > high)
            if bad.any():
                what = "above 0" if np.isinf(high) else "between 0 and 1"
                raise InputError(
                    f"{name} must be {what}: {int(bad.sum())} value(s) are not, {_first(bad)}."
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
    outside = ~np.isfinite(lp)
    if kind == "mcmc" and outside.any():
        raise InputError(
            f"{int(outside.sum())} of {lp.size} draws are outside the support, "
            f"{_first(outside)}: their posterior density is 0. If a precision underflowed to 0, "
            "leave that variable out."
        )
    return np.where(outside, np.nan, lp)


def _prior_unchecked(problem: Problem, draws: Draws, point: Arrays, lp: np.ndarray | None) -> str:
    """Return why nothing shows that the draws are of this prior, "" if their own density does.

    Refuse draws whose own log density differs from `lp` (chain, draw) by more than a constant.
    """
    if isinstance(draws, xr.DataTree) and "fingerprint" in draws.attrs:  # a fit of this problem
        return str(draws.attrs.get("prior_unchecked", ""))
    free = [rv.name for rv in problem.fitted_model.free_RVs]
    if lp is None:
        return f"the draws lack {', '.join(name for name in free if name not in point)}"
    stats = group(draws, "sample_stats") if isinstance(draws, xr.DataTree) else xr.Dataset()
    given = [stats[name] for name in DENSITIES if name in stats and {*stats[name].dims} == {*LEAD}]
    theirs = given[0].transpose(*LEAD).values.astype(float) if given else np.full(lp.shape, np.nan)
    used = np.isfinite(theirs) & np.isfinite(lp) if theirs.shape == lp.shape else np.zeros(0, bool)
    if len(np.unique(theirs[used])) < 2:  # a point, or the zeros that PyMC and Stan put for none
        return "the draws came without a log density of their own"
    still = [n for n in free if point[n].dtype.kind == "f" and (point[n] == point[n][:1, :1]).all()]
    if still:  # as if by `pm.do`: their density is the joint one, where this variable is constant
        return f"{', '.join(still)} has the same value in every draw"
    ours, theirs = lp[used], theirs[used]
    # PyMC stores the potential energy of NumPyro, which is minus the log density
    spread = min(np.ptp(np.quantile(theirs - s * ours, (0.05, 0.95))) for s in (1.0, -1.0))
    short = theirs.astype("float32"), [float(f"{x:.9g}") for x in theirs]
    coarse = any(np.array_equal(theirs, values) for values in short)
    limit = SPREAD + COARSE * float(np.median(np.abs(theirs))) * coarse
    if spread > limit:
        raise InputError(
            "the log density that came with the draws differs from this problem's by more than a "
            f"constant: the difference varies by {spread:.3g} among the draws, and by less than "
            f"{limit:.2g} if they are of this problem. They are draws of another prior or model: "
            "make the problem with their hyperparameters and data. If only the parametrization "
            "differs, adopt them without sample_stats."
        )
    return ""
