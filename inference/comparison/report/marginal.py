"""The marginal: the posterior of one quantity by each method, with the prior beside it."""

import numpy as np
import xarray as xr

from ardvark.common.validate import InputError

from ...fits.datatree import group
from . import look
from .forest import Fits, holders
from .look import Picture, Spot

BINS = 60
_EDGES = (0.002, 0.998)  # quantiles of all draws between which the axis extends


def marginal(
    fits: Fits,
    reference: str | None,
    quantity: str,
    at: str | None = None,
    prior: np.ndarray | None = None,
    subject: str = "",
) -> Picture:
    """Draw the posterior of one quantity as a histogram a method.

    Parameters
    ----------
    fits : dict of DataTree
    reference : str or None
        The fit that is drawn in black.
    quantity : str
        A variable of the posterior, such as "feature_weight", "eta" or "bias".
    at : str, optional
        Which component, by its name (a feature, a sample). A scalar has none.
    prior : array (S,), optional
        Draws of the prior of the same quantity, drawn in grey.
    subject : str
        What was fitted, for the title.

    Returns
    -------
    Picture

    Raises
    ------
    InputError
        No fit has this quantity, or it has no such component.

    Examples
    --------
    >>> import ardvark as av
    >>> from ardvark.inference.comparison.report.marginal import marginal
    >>> problem = av.problem("pfcvm", av.load("digits38").take(range(40)))
    >>> fits = {"paper": av.fit(problem, "paper", random_seed=0, progressbar=False)}
    >>> marginal(fits, None, "feature_weight", "pixel_0_2")
    Posterior of feature_weight of pixel_0_2. paper: mean 0..., sd 0..., 90 % interval 0... to ...
    """
    methods = holders(fits, reference, quantity)
    draws = {m: component(fits[m], quantity, at) for m in methods}
    name = quantity if at is None else f"{quantity} of {at}"
    everything = np.concatenate([*draws.values(), *([] if prior is None else [prior])])
    low, high = np.quantile(everything, _EDGES)
    edges = np.linspace(low, high if high > low else low + 1.0, BINS + 1).tolist()
    palette = look.colours(methods, reference)
    said, found, spots = [], [], []
    with look.style():
        figure, (axis,) = look.blank(1, height=3.0)
        if prior is not None:
            axis.hist(prior, edges, density=True, color="#bbbbbb", alpha=0.6, label="prior")
        for line, m in zip(("-", "--", "-.", ":") * len(methods), methods, strict=False):
            x = draws[m]
            heights, *_ = axis.hist(
                x, edges, density=True, histtype="step", color=palette[m], ls=line, lw=1.5,
                label=look.label(m, reference),
            )  # fmt: skip
            left, right = np.quantile(x, (0.05, 0.95))
            found.append(f"{x.mean():.2f} +- {x.std():.2f} under {m}")
            text = f"{m}: mean {x.mean():.2f}, sd {x.std():.2f}, "
            said.append(text + f"90 % interval {left:.2f} to {right:.2f}")
            spots.append(Spot(axis, float(x.mean()), float(np.max(heights)) / 2, said[-1]))
        axis.set_xlabel(name)
        axis.set_ylabel("density")
        axis.legend()
        look.entitle(figure, f"the posterior of {name} is {', '.join(found)}", subject)
    return Picture(figure, f"Posterior of {name}. {'; '.join(said)}.", spots)


def component(tree: xr.DataTree, quantity: str, at: str | None) -> np.ndarray:
    """Return the draws (S,) of a component, or of a scalar.

    Raises
    ------
    InputError
        There is no such component.
    """
    values = group(tree, "posterior")[quantity].transpose("chain", "draw", ...)
    if values.ndim == 2:
        return values.values.ravel().astype(float)
    names = [str(n) for n in values[values.dims[-1]].values]
    if at not in names:
        raise InputError(
            f"{quantity} has no component {at!r}; it has {names[0]!r} to {names[-1]!r}."
        )
    return values.values[..., names.index(at)].ravel().astype(float)
