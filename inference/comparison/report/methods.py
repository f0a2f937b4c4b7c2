"""How a posterior was computed, as a paragraph that can be pasted into a paper."""

import json

import xarray as xr

from ardvark.models import Problem

from ...fits.mixing import mixing_of

_COMPUTED = {
    "mcmc": "sampled by the method {method} ({chains} chains of {draws} stored draws each{mixed})",
    "approximation": "approximated by the method {method} ({chains} x {draws} draws)",
    "search": "searched by the method {method}",
    "point": "maximised by the method {method}",
}
_PACKAGES = ("pymc", "pytensor", "nutpie", "numpy")


def methods_text(problem: Problem, tree: xr.DataTree) -> str:
    """Return model, data, prior, computation and versions of a fit in sentences.

    Examples
    --------
    >>> import numpy as np
    >>> import ardvark as av
    >>> from ardvark.inference.comparison.report.methods import methods_text
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> problem = av.problem("pfcvm", X, X[:, 1] > 0)
    >>> fit = av.fit(problem, "pfcvm_em", random_seed=0, progressbar=False)
    >>> print(methods_text(problem, fit))
    The model is ... (pfcvm; Jiang et al. (2019), ACM TKDD 13(2), doi 10.1145/3309541), fitted to 30
    rows and 4 features, each standardised by its mean and standard deviation. ...
    """
    attrs, spec = tree.attrs, problem.spec
    scaled = ", each standardised by its mean and standard deviation" if problem.standardize else ""
    always = f" Always in the model: {', '.join(problem.always)}." if problem.always else ""
    prepared = "".join(f" {sentence}" for sentence in problem.data.prepared)
    versions = json.loads(str(attrs.get("versions", "{}")))
    used = ", ".join(f"{name} {versions[name]}" for name in _PACKAGES if name in versions)
    computed = _COMPUTED[attrs["kind"]].format(
        method=attrs.get("method", "draws of one's own"), mixed=_mixed(tree),
        chains=tree["posterior"].sizes["chain"], draws=tree["posterior"].sizes["draw"],
    )  # fmt: skip
    seed = f"; seed {attrs['seed']}" if "seed" in attrs else ""
    return (
        f"The model is {spec.title} ({spec.name}; {spec.citation}), fitted to {problem.data.N} "
        f"rows and {problem.D} features{scaled}.{always}{prepared} "
        f"Prior: {_prior(problem)}. Its posterior was {computed}, with ardvark "
        f"{versions.get('ardvark', '')} ({used}{seed}). "
        "An effect is per standard deviation of the feature, and P(> t) is the "
        "posterior probability that its absolute value is above t; the Bayes factor is the "
        "posterior odds of that over its prior odds. Intervals are central 90 % intervals."
    )


def _prior(problem: Problem) -> str:
    """Return the hyperparameters, by name and value."""
    words = []
    for name, value in vars(problem.hypers).items():
        if isinstance(value, str):
            words.append(f"{name} {value}")
        elif value is not None and getattr(value, "ndim", 0) == 0:
            words.append(f"{name} {value:.4g}")
    return ", ".join(words)


def _mixed(tree: xr.DataTree) -> str:
    """Return R-hat and effective sample size of chains, in words."""
    of = f"; sampler {tree.attrs['sampler']}" if "sampler" in tree.attrs else ""
    mixed = mixing_of(tree)
    if mixed.table.empty:
        return of
    return (
        f"{of}; R-hat of all that is quoted at most {mixed.rhat.value:.3f}, effective sample sizes "
        f"at least {mixed.ess_bulk.value:.0f}"
    )
