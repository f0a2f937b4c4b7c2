"""Tables, problems and fits made by hand, in which no two axes have the same length.

`from_prior` has draws of the prior, for what must hold of any fit (`inference/test_laws.py`).
`drawn` is a fit of any arrays, without a problem, for what is measured of draws alone.
`posterior` has draws of a law that is known: two features with an effect and three without, for
what is said of a fit. Those of the snapshots (`snapshots.py`) do not follow `make reseed`.
"""

import numpy as np
import pandas as pd
import xarray as xr
from scipy import special

import ardvark as av
from tests.support import rng

N, D, B, M, CHAINS, DRAWS = 29, 5, 11, 19, 3, 701
"""Rows, features, rows of the basis, new rows, chains, draws of a chain."""
SIZES = np.array([2.5, 1.2, 0.02, 0.03, 0.01])
"""Mean effects of the features of `posterior`, without their signs."""


def table(number=0, rows=13, first=0, generator=None):
    """Return rows in five units, one of them far from 0, with the names of rows and columns."""
    generator = rng(number) if generator is None else generator
    X = generator.normal(size=(rows, D)) * [1.0, 30.0, 0.2, 5.0, 2.0] + [0.0, 5.0, -1.0, 400.0, 3.0]
    names = [f"row {first + i}" for i in range(rows)]
    return pd.DataFrame(X, columns=list("abcde"), index=names)


def dataset(frame, y=None, classes=("ill", "well"), name="made"):
    """Return a data set of such rows; by default one in three is of the second class."""
    y = np.arange(len(frame)) % 3 == 0 if y is None else y
    named = isinstance(frame, pd.DataFrame)
    return av.Dataset(
        name=name,
        X=frame.to_numpy() if named else frame,
        y=np.asarray(y).astype(int),
        class_names=classes,
        feature_names=tuple(frame.columns if named else "abcde"),
        sample_names=tuple(frame.index if named else table().index),
    )


def from_prior(model, data=None, number=1, chains=3, draws=41):
    """Return a problem, and draws of its prior as a fit: half a chain is no whole number."""
    if isinstance(model, str):
        model = av.problem(model, dataset(table()) if data is None else data)
    problem = model
    generator = rng(number)
    points = [problem.simulate(generator) for _ in range(chains * draws)]
    arrays = {
        name: np.array([point[name] for point in points]).reshape(
            chains, draws, *np.shape(points[0][name])
        )
        for name in points[0]
        if name in problem.shapes
    }
    return problem, av.adopt(problem, arrays)


DIMS = {"feature_weight": "feature", "beta": "feature", "sample_weight": "basis", "eta": "obs",
        "covariate_weight": "covariate"}  # fmt: skip
METHODS = {"mcmc": "nuts", "approximation": "advi", "point": "laplace"}


def drawn(posterior, kind="mcmc", y=None, coords=None, stats=None, **attrs):
    """Return draws (chain, draw, ...) by name as a fit.

    Of labels y its likelihood has P(y = 1) = 1 / (1 + exp(-eta)).
    """

    def named(name, x):
        own = [DIMS[name]] if name in DIMS else [f"{name}_{i}" for i in range(np.ndim(x) - 2)]
        return ("chain", "draw", *own), np.asarray(x)

    def group(arrays, coords=None):
        return xr.Dataset({name: named(name, x) for name, x in arrays.items()}, coords)

    groups = {"/posterior": group(posterior, coords), "/sample_stats": group(stats or {})}
    if y is not None:
        log_p = special.log_expit((2 * y - 1) * posterior["eta"])
        groups["/log_likelihood"] = xr.Dataset({"y": named("eta", log_p)})
        groups["/observed_data"] = xr.Dataset({"y": ("obs", y)})
    tree = xr.DataTree.from_dict(groups)
    tree.attrs = {"kind": kind, "status": "finished", "reason": "", "method": METHODS[kind]}
    tree.attrs |= attrs
    return tree


# --- of the snapshots -----------------------------------------------------------------------------


LONG = "b, of a name that has no room in a table of eighty characters, nor beside a picture"


def split(name="made", names=None):
    """Return training and test rows whose labels follow the first two features.

    `names` are new ones for some of the features.
    """
    frame = table(rows=N + M, generator=np.random.default_rng(0))
    z = (frame - frame.mean()) / frame.std()
    noise = np.random.default_rng(1).logistic(size=N + M)
    y = 2.5 * z["a"] - 1.2 * z["b"] + noise > 0.4
    frame = frame.rename(columns=names or {})
    return dataset(frame[:N], y[:N], name=name), dataset(frame[N:], y[N:], name=name)


def problem_of(data, model="rfvm", **hypers):
    """Return a problem whose basis is every other row, or the first of them."""
    return av.problem(model, data, basis=list(range(0, 2 * B, 2)), **hypers)


def arrays_of(problem, number, shift=0.0, scale=1.0, order=None, shape=(CHAINS, DRAWS)):
    """Return independent draws of rfvm's variables by name, the same law for each number.

    The basis weights are such that a feature's effect is its weight, and the first two have the
    effects 2.5 and -1.2 per standard deviation. `shift` moves the bias, `scale` all standard
    deviations, and `order` gives the features' weights to others.
    """
    g = np.random.default_rng([number, 7])
    signs = np.array([1.0, -1.0, 1.0, 1.0, -1.0])
    a = np.linalg.lstsq(problem.Z.T, signs, rcond=None)[0]
    v = SIZES * np.exp(0.15 * scale * g.normal(size=(*shape, D)))
    a = a * (1.0 + 0.02 * scale * g.normal(size=(*shape, B)))
    return {
        "feature_weight": v if order is None else v[..., order],
        "sample_weight": a,
        "bias": -0.3 + shift + 0.2 * scale * g.normal(size=shape),
        "tau": np.exp(0.3 * scale * g.normal(size=shape)),
    }


def made_fit(problem, arrays, method="nuts", kind="mcmc", seconds=(1.25, 0.5), **attrs):
    """Return a fit of these draws, as if a method had made them in so many seconds."""
    tree = av.adopt(problem, arrays, kind)
    tree.attrs |= {"method": method, "prior_unchecked": "", "seed": 3, "options": "{}"}
    tree.attrs |= dict(zip(("seconds_run", "seconds_compile"), seconds, strict=True)) | attrs
    return tree
