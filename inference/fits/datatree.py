"""What a fit contains: it turns plain arrays into the DataTree of every method, and stores it.

The groups are posterior, sample_stats, log_likelihood (pointwise), log_prior (as parts that add up
to it, if the variables were kept; `Problem.log_prior`, or PyMC's of a `pm.Model`), fit,
observed_data, constant_data, and selection and mixing, which `methods/run.py` adds. The attrs of
the root say what was fitted, how, and whether to trust it.

ArviZ's `loo` and `compare` take every group log_likelihood for terms that predict: draws of the
posterior, of a model in which leaving a term out leaves the observation out. Where that does not
hold, the same numbers are in the group `POINTWISE`, which ArviZ does not read. Draws from an
approximation must first be weighted by p / q (`arviz_stats.loo_approximate_posterior`). In a model
with labels in its basis (PFCVM, PCVM), no weighting helps: a label stays in the basis when its term
is left out. With coin flips as labels and a dense prior, the mean log probability would be -0.46,
whereas refitting gives -0.76 and guessing -0.69. Only refits predict, for example scikit-learn's
`cross_val_predict` of the estimator.
"""

import functools
import importlib.metadata
import itertools
import json
import os
import platform
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from ardvark.common.interrupt import unfinished
from ardvark.common.validate import InputError
from ardvark.models import Problem

from ..target.backend import Result
from .own_groups import data_of, log_densities

if TYPE_CHECKING:
    import pymc as pm

SAMPLE_STATS = (
    "diverging", "energy", "tree_depth", "n_steps", "step_size", "acceptance_rate", "lp", "log_q",
    "feature_flips", "sample_flips",
)  # fmt: skip
"""One set of names, whatever the sampler. `lp` is the log posterior of the unconstrained vector,
Jacobian included; `log_q` is the density of the same vector under the approximation; the flips are
the bits of a mask that a sweep changed."""

POINTWISE = "pointwise_log_likelihood"
"""The pointwise log likelihood whose terms do not estimate prediction by themselves."""
COVARIATES = "covariate_weight"
"""The weights of the covariates, dim "covariate"."""
DERIVED = ("log_likelihood", POINTWISE, "log_prior", "observed_data", "constant_data")
"""The groups that follow from the posterior draws and the problem."""
NOT_ADOPTED = (
    "these draws were not made by ardvark, and lack what is needed here. Wrap them with "
    "ardvark.adopt(problem, draws)."
)

_CHUNK = 1e6  # numbers looked at together: they fit a cache

Dims = Mapping[str, tuple[str, ...]]
Coords = Mapping[str, Sequence]


@functools.cache
def versions() -> Mapping[str, str]:
    """Return the versions that a stored fit depends on."""
    packages = ("ardvark", "pymc", "pytensor", "nutpie", "arviz", "numpy", "scipy", "numba")
    found = {"python": platform.python_version()}
    for name in packages:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def model_dims(model: "pm.Model") -> dict[str, tuple[str, ...]]:
    """Return the dims of a `pm.Model`'s variables, without chain and draw."""
    named = model.named_vars_to_dims.items()
    return {k: tuple(map(str, v)) for k, v in named if v is not None and None not in v}


def dataset(
    arrays: Mapping[str, np.ndarray], dims: Dims, coords: Coords, *, draws: bool
) -> xr.Dataset:
    """Return the arrays as a Dataset; `draws` puts (chain, draw) in front of each one's dims."""
    lead = ("chain", "draw") if draws else ()
    variables: dict[str, tuple[tuple[str, ...], np.ndarray]] = {}
    sizes: dict[str, int] = {}
    for name, values in arrays.items():
        array = np.asarray(values)
        extra = array.ndim - len(lead)
        own = dims.get(name, ())
        if len(own) != extra:
            own = tuple(f"{name}_dim_{i}" for i in range(extra))
        variables[name] = ((*lead, *own), array)
        sizes |= dict(zip((*lead, *own), array.shape, strict=True))
    index = {d: np.arange(sizes[d]) for d in lead if d in sizes}
    for d, labels in coords.items():
        if d in sizes and sizes[d] == len(labels):
            index[d] = np.asarray(labels)
    return xr.Dataset(variables, coords=index)


def assemble(
    result: Result,
    *,
    model: "pm.Model | None",
    problem: Problem | None,
    attrs: Mapping[str, Any],
    derived: bool = True,
) -> xr.DataTree:
    """Return the DataTree of a result, with attrs, and likelihood and data if `derived`."""
    if problem is None:
        dims, coords = model_dims(model), model_coords(model)
    else:
        dims, coords = problem_dims(problem), problem.coords
    dims = {**dims, **result.dims}
    posterior = dataset(result.posterior, dims, coords, draws=True)
    groups: dict[str, xr.Dataset] = {"posterior": posterior}
    groups["sample_stats"] = dataset(result.sample_stats, result.dims, coords, draws=True)
    if derived and problem is not None:
        groups |= _derived(problem, posterior, attrs["kind"])
    elif derived and model is not None:
        groups |= _of_own_model(model, posterior, attrs["kind"])
    if result.details:
        groups["fit"] = dataset(result.details, dims, coords, draws=False)
    tree = xr.DataTree.from_dict({f"/{name}": group for name, group in groups.items()})
    tree.attrs = dict(attrs)
    return tree


def _derived(problem: Problem, posterior: xr.Dataset, kind: str) -> dict[str, xr.Dataset]:
    """Return the groups `DERIVED` of a problem's fit, as far as the kept variables give them."""
    coords, groups = problem.coords, {}
    if "eta" in posterior:
        point = {str(k): v.values for k, v in posterior.items()}
        with suppress(InputError):  # a variable was not kept, or not inferred
            likelihood = {"y": problem.log_likelihood(point, point["eta"])}
            name = POINTWISE if kind != "mcmc" or problem.spec.labels_in_basis else "log_likelihood"
            groups[name] = dataset(likelihood, {"y": ("obs",)}, coords, draws=True)
        with suppress(InputError):  # for ArviZ's psense, to which one draw says nothing
            if posterior.sizes["chain"] * posterior.sizes["draw"] > 1:
                groups["log_prior"] = dataset(log_prior(problem, point), {}, {}, draws=True)
    groups["observed_data"] = dataset({"y": problem.y}, {"y": ("obs",)}, coords, draws=False)
    groups["constant_data"] = _constant_data(problem)
    return groups


def _of_own_model(model: "pm.Model", posterior: xr.Dataset, kind: str) -> dict[str, xr.Dataset]:
    """Return the groups `DERIVED` of a fit of a `pm.Model` of one's own."""
    groups = log_densities(model, posterior)
    if kind != "mcmc" and "log_likelihood" in groups:
        groups[POINTWISE] = groups.pop("log_likelihood")
    dims, coords = model_dims(model), model_coords(model)
    for name, arrays in data_of(model).items():
        groups[name] = dataset(arrays, dims, coords, draws=False)
    return groups


def own_draws(model: "pm.Model", arrays: Mapping[str, np.ndarray]) -> xr.DataTree:
    """Return draws (chain, draw, ...) of a `pm.Model` of one's own, with its dims and coords."""
    posterior = dataset(arrays, model_dims(model), model_coords(model), draws=True)
    return xr.DataTree.from_dict({"/posterior": posterior})


def component_names(name: str, values: xr.DataArray) -> list[str]:
    """Return the components of a variable by their coordinates, or numbers where it has none.

    Parameters
    ----------
    name : str
        What the variable is called.
    values : DataArray (chain, draw, ...)

    Examples
    --------
    >>> import numpy as np
    >>> import xarray as xr
    >>> from ardvark.inference.fits.datatree import component_names
    >>> dims, coords = ("chain", "draw", "drug"), {"drug": ["placebo", "lactate"]}
    >>> component_names("phi", xr.DataArray(np.zeros((4, 10, 2)), coords, dims))
    ['phi[placebo]', 'phi[lactate]']
    """
    axes = [dim for dim in values.dims if dim not in ("chain", "draw")]
    labels = [
        values[dim].values.tolist() if dim in values.coords else range(values.sizes[dim])
        for dim in axes
    ]
    places = itertools.product(*labels)
    return [f"{name}[{','.join(map(str, place))}]" if place else name for place in places]


def without_derived(tree: xr.DataTree) -> xr.DataTree:
    """Return a problem's fit without the groups that `with_derived` computes from the others."""
    kept = {f"/{name}": node for name, node in tree.children.items() if name not in DERIVED}
    out = xr.DataTree.from_dict(kept)
    out.attrs = dict(tree.attrs)
    return out


def with_derived(problem: Problem, tree: xr.DataTree) -> xr.DataTree:
    """Return a fit with the groups that `without_derived` left out."""
    out = tree.copy()
    found = _derived(problem, group(tree, "posterior"), tree.attrs["kind"])
    for name, values in found.items():
        out[name] = xr.DataTree(values)
    return out


def log_prior(problem: Problem, point: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the parts of the log prior density (chain, draw), some draws at a time."""
    return by_pieces(problem.log_prior, point)


def by_pieces(
    function: Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]],
    point: Mapping[str, np.ndarray],
) -> dict[str, np.ndarray]:
    """Return the arrays (chain, draw, ...) of a function, computed for some draws at a time."""
    chains, draws = next(iter(point.values())).shape[:2]
    size = sum(v[0, 0].size for v in point.values())
    step = max(1, int(_CHUNK / size))
    out: dict[str, np.ndarray] = {}
    for c in range(chains):
        for at in range(0, draws, step):
            some = {name: v[c, at : at + step] for name, v in point.items()}
            for name, values in function(some).items():
                whole = out.setdefault(name, np.empty((chains, draws, *values.shape[1:])))
                whole[c, at : at + step] = values
    return out


def problem_dims(problem: Problem) -> dict[str, tuple[str, ...]]:
    """Dims of a problem's variables, by the names that every model uses; builds no model."""
    return problem.spec.dims | {
        "feature_weight": ("feature",),
        "sample_weight": ("basis",),
        "eta": ("obs",),
        COVARIATES: ("covariate",),
        "selected_feature": ("feature",),
        "selected_sample": ("basis",),
    }


def _constant_data(problem: Problem) -> xr.Dataset:
    arrays = {"X": problem.X, "Z": problem.Z, "center": problem.center, "scale": problem.scale}
    dims: dict[str, tuple[str, ...]] = {
        "X": ("obs", "feature"),
        "Z": ("basis", "feature"),
        "center": ("feature",),
        "scale": ("feature",),
        "basis_labels": ("basis",),
    }
    if problem.basis_labels is not None:
        arrays["basis_labels"] = problem.basis_labels
    if problem.covariates is not None and problem.C is not None:
        _, center, scale = problem.covariates
        arrays |= {"C": problem.C, "covariate_center": center, "covariate_scale": scale}
        dims |= {"C": ("obs", "covariate")}
        dims |= {f"covariate_{name}": ("covariate",) for name in ("center", "scale")}
    arrays |= problem.constants  # by them PyMC sees that the model has not changed since
    return dataset(arrays, dims, problem.coords, draws=False)


def model_coords(model: "pm.Model") -> Coords:
    """Return the labels of a `pm.Model`'s dims."""
    return {str(k): v for k, v in model.coords.items() if v is not None}


def group(tree: xr.DataTree, name: str) -> xr.Dataset:
    """Return one group of a fit as a Dataset; an absent one is empty."""
    if not isinstance(tree, xr.DataTree):
        raise InputError(
            f"a fit is a DataTree, as av.fit returns it, got {type(tree).__name__}. If a function "
            "takes a problem and a fit, the problem comes first."
        )
    return tree.children[name].to_dataset() if name in tree.children else xr.Dataset()


def is_bare(tree: xr.DataTree) -> bool:
    """Whether a fit is of a `pm.Model` of one's own, and not of a problem."""
    return "model" not in tree.attrs


def pointwise(tree: xr.DataTree) -> xr.Dataset:
    """Return the pointwise log likelihood of a fit of any kind; empty if it has none."""
    found = group(tree, POINTWISE)
    return found if found.data_vars else group(tree, "log_likelihood")


def check_order(names: Coords, tree: xr.DataTree) -> None:
    """Refuse a fit whose draws have these names in another order: arrays are read by position."""
    posterior = group(tree, "posterior")
    for dim, own in names.items():
        found = [str(x) for x in posterior[dim].values] if dim in posterior.coords else []
        if found != [*map(str, own)] and sorted(found) == sorted(map(str, own)):
            raise InputError(
                f"the names along {dim!r} of this fit are in another order than they were fitted "
                f"in: the first is {found[0]!r}, and was {str(own[0])!r}. Pass the fit as it was, "
                "or let ardvark.adopt(problem, fit) put them in order."
            )


def check_same(
    problem: Problem, tree: xr.DataTree, empty: bool = False, ordered: bool = True
) -> None:
    """Refuse a fit of another posterior, foreign draws, and draws that cannot be read as they are.

    Unless `empty`, also a fit without draws; if `ordered`, one whose names are in another order.
    """
    if isinstance(problem, xr.DataTree):
        raise InputError("the problem comes first and then its fit; here they are swapped.")
    if not hasattr(problem, "fingerprint"):
        raise InputError(
            f"this needs a problem of ardvark.problem, got a {type(problem).__name__}. Of a "
            "pm.Model, new rows are predicted by pm.set_data and pm.sample_posterior_predictive."
        )
    found = tree.attrs.get("fingerprint")
    if found is None:
        raise InputError(NOT_ADOPTED)
    if found != problem.fingerprint:
        raise InputError(
            f"this is a fit of another problem: its fingerprint is {found}, and this problem's is "
            f"{problem.fingerprint}. Fit this problem, or pass the one that was fitted."
        )
    if not empty and not tree["posterior"].data_vars:
        raise InputError(f"this fit has no draws: {tree.attrs.get('reason')}")
    if ordered:
        check_order(problem.coords, tree)


# --- disk ---------------------------------------------------------------------------------------


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a path to write to, which becomes `path` at the end: complete, or not there at all."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")  # no other writer's
    unfinished.add(part)
    try:
        yield part
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
        unfinished.discard(part)


def write_files(folder: Path, files: Mapping[str, Any]) -> None:
    """Write texts, figures (PNG, PDF, SVG) and tables (CSV) to files of a folder by their names."""
    for name, content in files.items():
        with replacing(folder / name) as part:
            if isinstance(content, str):
                part.write_text(content, encoding="utf-8")
            elif hasattr(content, "savefig"):
                content.savefig(part, format=name.rpartition(".")[2], dpi=150)
            else:
                content.to_csv(part)


def save(tree: xr.DataTree, path: str | os.PathLike[str]) -> None:
    """Write a fit to one NetCDF file, atomically, with checksums of its numbers.

    Examples
    --------
    >>> import ardvark as av
    >>> from ardvark.inference import read, save
    >>> problem = av.problem("pfcvm", av.load("digits38").take(range(40)))
    >>> fit = av.fit(problem, "pfcvm_em", random_seed=0, progressbar=False)
    >>> save(fit, "fit.nc")
    >>> read("fit.nc").identical(fit)
    True
    """
    encoding = {
        node.path: {
            str(name): {"fletcher32": True}
            for name, values in node.to_dataset(inherit=False).variables.items()
            if values.size and values.ndim and values.dtype.kind in "biuf"
        }
        for node in tree.subtree
    }
    with replacing(path) as part:
        tree.to_netcdf(part, engine="h5netcdf", encoding=encoding)


def read(path: str | os.PathLike[str]) -> xr.DataTree:
    """Read a fit from disk into memory.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    InputError
        It is truncated or damaged, is not a NetCDF file, or contains something other than a fit.

    Examples
    --------
    >>> from pathlib import Path
    >>> from ardvark.inference import read
    >>> _ = Path("notes.nc").write_text("no fit")
    >>> read("notes.nc")
    Traceback (most recent call last):
        ...
    ardvark.common.validate.InputError: notes.nc cannot be read: ...
    """
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file}.")
    try:
        with xr.open_datatree(file, engine="h5netcdf") as stored:
            tree = stored.load()
    except Exception as error:  # whatever the libraries make of damaged bytes
        raise InputError(
            f"{file} cannot be read: it is truncated, damaged or not a NetCDF file "
            f"({type(error).__name__}: {error})."
        ) from error
    if "kind" not in tree.attrs or "posterior" not in tree.children:
        raise InputError(
            f"{file} contains no fit: it was not written by ardvark. To turn other draws into a "
            "fit, use ardvark.adopt(problem, draws)."
        )
    return tree


def as_json(value: Any) -> str:
    """Return a stable JSON text of plain values, for attrs."""
    return json.dumps(value, sort_keys=True, default=str)
