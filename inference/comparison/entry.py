"""What a comparison takes: its fits, made comparable and checked, and which is the reference."""

from collections.abc import Mapping, Sequence

import xarray as xr

from ardvark.common.validate import InputError, unknown
from ardvark.data import Dataset
from ardvark.models import SHARED, Problem

from ..fits.convergence import convergence
from ..fits.datatree import check_order, group
from ..fits.own_groups import DATA, WRITTEN, other_data
from ..scoring.quantities import has_draws
from ..target.reasons import joined
from .verdicts.findings import is_exact

REFERENCE = "reference"
"""The name of the row of a reference that is given as a fit, and not as one of the fits."""


def entered(fits: Mapping[str, xr.DataTree], problem: Problem | None) -> dict[str, xr.DataTree]:
    """Return the fits; of trees that `fit` did not make, return what can be compared."""
    named = isinstance(fits, Mapping) and not isinstance(fits, xr.DataTree)
    if not named or not all(isinstance(tree, xr.DataTree) for tree in fits.values()):
        raise InputError(
            "compare needs a dict that maps row names to DataTrees, {'nuts': fit, ...}, got "
            f"{type(fits).__name__}{' with other values' if named else ''}."
        )
    if not fits:
        raise InputError("nothing to compare: fits is empty.")
    foreign = [name for name, tree in fits.items() if "kind" not in tree.attrs]
    if foreign and (problem is not None or len(foreign) < len(fits)):
        raise InputError(
            f"{foreign[0]!r} was not created by ardvark: wrap it with ardvark.adopt(problem, "
            "draws). To compare shared quantities only, pass such trees alone and no problem."
        )
    return {n: _bare(n, tree) if n in foreign else tree for n, tree in fits.items()}


def _bare(name: str, tree: xr.DataTree) -> xr.DataTree:
    """Return the shared quantities of a tree that ardvark did not make, as Markov chains."""
    posterior = group(tree, "posterior")
    shared = [n for n in SHARED if n in posterior]
    if not shared or not {"chain", "draw"} <= set(posterior.dims):
        raise InputError(
            f"{name!r} was not created by ardvark, and its group posterior contains none of "
            f"{', '.join(SHARED)} with the dimensions chain and draw. Wrap it with "
            "ardvark.adopt(problem, draws)."
        )
    data = {f"/{name}": group(tree, name) for name in DATA}
    bare = xr.DataTree.from_dict({"/posterior": posterior[shared]} | data)
    bare.attrs = {"kind": "mcmc", "model": ""}  # of some model of the zoo, by its names
    missing = convergence(bare)
    bare.attrs |= {"status": "not_converged" if missing else "finished", "reason": joined(missing)}
    return bare


def beside_the_reference(
    fits: Mapping[str, xr.DataTree], reference: str | xr.DataTree | None, problem: Problem | None
) -> tuple[dict[str, xr.DataTree], str | None]:
    """Return the fits, and the name of the reference; one that is a fit has a row, the first."""
    entries = entered(fits, problem)
    if not isinstance(reference, xr.DataTree):
        return entries, reference
    if REFERENCE in entries:
        raise InputError(f"a fit is called {REFERENCE!r}, which is the row of the reference.")
    return entered({REFERENCE: reference}, problem) | entries, REFERENCE


def check(
    fits: Mapping[str, xr.DataTree],
    reference: str | None,
    problem: Problem | None,
    test: Dataset | None,
) -> None:
    """Refuse fits of different problems, an unknown reference, and a test split by itself."""
    prints = {name: tree.attrs.get("fingerprint") for name, tree in fits.items()}
    if len(set(prints.values())) > 1:
        listed = ", ".join(f"{k}: {v}" for k, v in prints.items())
        raise InputError(f"these fits are of different problems (fingerprints {listed}).")
    (one, tree_of_one), *others = fits.items()
    for name, tree in others if prints[one] is None else ():  # models of one's own
        data = {g: {str(k): v.values for k, v in group(tree_of_one, g).items()} for g in DATA}
        if other := other_data(data, tree):
            raise InputError(
                f"{other} of {name!r} differs from that of {one!r}: these fits are of a model with "
                "other data."
            )
    first = group(tree_of_one, "posterior")
    names = {str(d): x.values for d, x in first.coords.items() if d not in ("chain", "draw")}
    for tree in fits.values():
        check_order(names if problem is None else problem.coords, tree)
    sizes = {n: group(t, "selection").attrs.get("threshold") for n, t in fits.items()}
    if len(known := {s for s in sizes.values() if s is not None}) > 1:
        raise InputError(
            f"these fits count effects above different sizes ({', '.join(map(str, sorted(known)))}"
            '): give each fit["selection"] = ardvark.select(problem, fit, threshold=...).'
        )
    if test is not None and problem is None:
        raise InputError("a test split needs the problem as well: pass problem=.")
    if reference is not None and reference not in fits:
        raise unknown("reference", reference, fits)


def other_models(fits: Mapping[str, xr.DataTree]) -> list[str]:
    """Return a remark on fits of models of one's own that are written in different ways.

    Two forms of one model are compared on purpose, so this is no error.
    """
    written = {
        name: {line.strip() for line in tree.attrs[WRITTEN].splitlines()}
        for name, tree in fits.items()
        if WRITTEN in tree.attrs
    }
    one, *others = written or [""]
    for name in others:
        if other := sorted(written[name] ^ written[one]):
            return [
                f"{one} and {name} are of models that are written differently: a distance may be "
                f"that of two posteriors, and no error of a method ({'; '.join(other[:2])})."
            ]
    return []


def only(fits: Mapping[str, xr.DataTree], names: Sequence[str]) -> dict[str, xr.DataTree]:
    """Return the fits with these variables alone, and without what is a function of others."""
    if isinstance(names, str):
        names = [names]
    known = {str(name) for tree in fits.values() for name in group(tree, "posterior").data_vars}
    for name in names:
        if name not in known:
            raise unknown("variable of these fits", name, sorted(known))
    found = {}
    for fit, tree in fits.items():
        posterior = group(tree, "posterior")
        kept = posterior[[name for name in names if name in posterior]]
        stats = group(tree, "sample_stats").drop_vars("lp", errors="ignore")
        found[fit] = xr.DataTree.from_dict({"/posterior": kept, "/sample_stats": stats})
        found[fit].attrs = dict(tree.attrs)
    return found


def reference_of(fits: Mapping[str, xr.DataTree]) -> str | None:
    """Return the fit that errors are measured from: the first converged Markov chain, or any.

    Chains of an exact sampler come before those that were adopted.
    """
    good = [n for n, t in fits.items() if t.attrs["kind"] == "mcmc" and has_draws(t)]
    converged = [n for n in good if fits[n].attrs["status"] == "finished"]
    exact = [n for n in converged if is_exact(fits[n])]
    # where none converged, a run of `exact` went on for longest
    longest = sorted(good, key=lambda n: fits[n].attrs.get("method") != "exact")
    return next(iter(exact or converged or longest), None)
