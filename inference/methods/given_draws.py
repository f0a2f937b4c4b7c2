"""Draws that ardvark did not make: read, put in order, and refused where they contradict a model.

`adoption.py` and `adopted_model.py` turn them into a fit, of a problem or of a `pm.Model`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from ardvark.common.validate import InputError, unknown

from ..fits.datatree import SAMPLE_STATS, group
from ..samplers.gradient.nuts import STATISTICS
from ..target.backend import Kind

if TYPE_CHECKING:
    import pymc as pm

Draws = xr.DataTree | xr.Dataset | Mapping[str, ArrayLike]
Arrays = dict[str, np.ndarray]
LEAD = ("chain", "draw")
SPREAD = 0.01
"""How much the difference of two log densities of one posterior may vary. If its sd is below this,
no posterior mean differs by more posterior sd: reweighting by exp(difference) moves a mean by their
covariance. Draws and densities in float64 stay far below."""
COARSE = 1e-5
"""How much more, per size of a log density that was stored in float32 or with a few digits."""
DENSITIES = ("lp", "logp", "lp__")
"""The log density in the names of PyMC and ArviZ, of nutpie, of Stan."""


@dataclass(frozen=True)
class Expected:
    """What draws must be of.

    Attributes
    ----------
    owner : {"problem", "model"}
        What has these variables.
    name : str
        What it is called.
    shapes : dict of tuple
        Of each variable, without chain and draw.
    coords : dict of sequence
        Labels by dimension.
    masks : dict of str
        Variables that are 0 or 1, and their type.
    """

    owner: str
    name: str
    shapes: Mapping[str, tuple[int, ...]]
    coords: Mapping[str, Sequence[Any]]
    masks: Mapping[str, str] = field(default_factory=dict)

    def read(self, draws: Draws) -> tuple[Arrays, Arrays, float]:
        """Return variables and statistics, each (chain, draw, ...), and the seconds of sampling."""
        if isinstance(draws, xr.DataTree):
            given_alone = "posterior" not in draws.children and set(LEAD) <= set(draws.dims)
            if draws.children and not given_alone and "posterior" not in draws.children:
                raise InputError(
                    f"these draws have no group 'posterior', but {', '.join(draws.children)}."
                )
            posterior = draws.to_dataset() if given_alone else group(draws, "posterior")
            seconds = float(posterior.attrs.get("sampling_time", np.nan))
            return self._in_order(posterior), _statistics(draws), seconds
        if isinstance(draws, xr.Dataset):
            return self._in_order(draws), {}, np.nan
        if not isinstance(draws, Mapping):
            raise InputError(
                "adopt needs a DataTree, a Dataset, or a dict that maps names of variables to "
                f"arrays (chain, draw, ...), got {type(draws).__name__}."
            )
        return {str(name): np.asarray(values) for name, values in draws.items()}, {}, np.nan

    def _in_order(self, posterior: xr.Dataset) -> Arrays:
        """Return the variables of a posterior group, in the order of our own coordinates."""
        missing = [dim for dim in LEAD if dim not in posterior.dims]
        if missing:
            raise InputError(f"the draws have no dimension {' and no '.join(map(repr, missing))}.")
        for dim, labels in self.coords.items():
            if dim not in posterior.coords or _by_default(posterior[dim].values, labels):
                continue
            names = [str(label) for label in labels]
            found = [str(label) for label in posterior[dim].values]
            if set(found) != set(names) or len(found) != len(names):
                raise InputError(
                    f"the names along {dim!r} differ: those of the draws begin with {found[0]!r}, "
                    f"those of the {self.owner} with {names[0]!r}."
                )
            posterior = posterior.isel({dim: [found.index(name) for name in names]})
        return {str(k): v.transpose(*LEAD, ...).values for k, v in posterior.data_vars.items()}

    def checked(self, given: Arrays) -> Arrays:
        """Return the variables in the model's form; refuse wrong names, shapes and values."""
        if not given:
            raise InputError(f"there are no draws: expected some of {', '.join(self.shapes)}.")
        first_name = next(iter(given))
        lead = given[first_name].shape[:2]
        point = Arrays()
        for name, values in given.items():
            if name not in self.shapes:
                raise unknown(
                    f"variable of {self.name}", name, self.shapes, "Rename it, or leave it out."
                )
            self._check_shape(name, values)
            if values.shape[:2] != lead or 0 in lead:
                raise InputError(
                    "every variable must have the same number of chains and draws, at least one: "
                    f"{name} has {values.shape[:2]}, {first_name} has {lead}."
                )
            self._check_values(name, values)
            point[name] = values.astype(self.masks.get(name, "float64"))
        return point

    def _check_shape(self, name: str, values: np.ndarray) -> None:
        shape = self.shapes[name]
        if values.shape[2:] != shape or values.ndim < 2:
            want = ", ".join(("chain", "draw", *map(str, shape)))
            chain = " For one chain, pass array[None]." if values.shape[1:] == shape else ""
            raise InputError(f"{name} must have the shape ({want}), got {values.shape}.{chain}")

    def _check_values(self, name: str, values: np.ndarray) -> None:
        if values.dtype.kind not in "biuf":
            raise InputError(f"{name} must contain numbers, got values of type {values.dtype}.")
        bad = ~np.isfinite(values)
        if bad.any():
            raise InputError(
                f"{name} contains {int(bad.sum())} NaN or infinite value(s), {first(bad)}."
            )
        if name in self.masks and not np.isin(values, (0, 1)).all():
            wrong = ~np.isin(values, (0, 1))
            raise InputError(
                f"{name} is a mask and must be 0 or 1; another value is {first(wrong)}."
            )


def _by_default(found: np.ndarray, labels: Sequence[Any]) -> bool:
    """Whether labels are the numbers that a library gives to what has no names."""
    numbered = found.dtype.kind in "iu"
    ours = any(isinstance(label, int | np.integer) for label in labels)
    return numbered and (not ours or np.array_equal(found, np.arange(len(found))))


def first(bad: np.ndarray) -> str:
    """Return where the first bad value is, in words."""
    chain, draw, *rest = np.argwhere(bad)[0].tolist()
    return f"the first in chain {chain}, draw {draw}" + (f", component {rest[0]}" if rest else "")


def _statistics(tree: xr.DataTree) -> Arrays:
    """Return the statistics of a tree, by our names; `lp` is computed anew."""
    stats, found = group(tree, "sample_stats"), Arrays()
    for name in SAMPLE_STATS:
        for theirs in (name, *STATISTICS.get(name, ())):
            if name != "lp" and theirs in stats and set(stats[theirs].dims) == set(LEAD):
                found[name] = stats[theirs].transpose(*LEAD).values
                break
    return found


def check_support(
    model: "pm.Model", point: Arrays, kind: Kind, positive: Collection[str] = ()
) -> None:
    """Refuse draws of a Markov chain outside the support; an approximation may leave it."""
    from pymc.logprob.transforms import LogOddsTransform, LogTransform

    upper = dict.fromkeys(positive, np.inf)
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
                    f"{name} must be {what}: {int(bad.sum())} value(s) are not, {first(bad)}."
                )


def inside(lp: np.ndarray, kind: Kind) -> np.ndarray:
    """Return a log density (chain, draw) with NaN outside the support, where no chain may be."""
    outside = ~np.isfinite(lp)
    if kind == "mcmc" and outside.any():
        raise InputError(
            f"{int(outside.sum())} of {lp.size} draws are outside the support, "
            f"{first(outside)}: their posterior density is 0. If a precision underflowed to 0, "
            "leave that variable out."
        )
    return np.where(outside, np.nan, lp)


def prior_unchecked(
    draws: Draws, free: Sequence[str], point: Arrays, lp: np.ndarray | None, owner: str
) -> str:
    """Return why nothing shows that the draws are of this prior, "" if their own density does.

    Refuse draws whose own log density differs from `lp` (chain, draw) by more than a constant.

    Parameters
    ----------
    draws : DataTree, Dataset or dict
        As they were given.
    free : sequence of str
        The free variables of the model.
    point : dict of array
        The variables of the draws.
    lp : array (chain, draw) or None
        The model's log density of them.
    owner : {"problem", "model"}
        What they should be draws of.
    """
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
            f"the log density that came with the draws differs from this {owner}'s by more than a "
            f"constant: the difference varies by {spread:.3g} among the draws, and by less than "
            f"{limit:.2g} if they are of this {owner}. They are draws of another prior or model: "
            f"make the {owner} with their hyperparameters and data. If only the parametrization "
            "differs, adopt them without sample_stats."
        )
    return ""
