"""Leave-one-out cross-validation: from the draws of one fit, or by refitting without each sample.

Two questions with two answers:

- `loo`: how well do the other labels predict y_n, **with the basis fixed**? Pareto-smoothed
  importance sampling (Vehtari, Gelman, Gabry 2017, Stat. Comput. 27; ArviZ) reweights the draws of
  one fit. This requires p(y | basis) to be a density of y. If the labels are part of the basis
  (PFCVM, PCVM), it is not: s_n stays in the basis when observation n is left out, and pulls the
  prediction towards its own label. With coin flips as labels and a dense prior, this gives a mean
  log probability of -0.46, whereas refitting gives -0.76 and guessing -0.69. So `loo` refuses these
  models.
- `refit_loo`: how well does the whole procedure predict a sample that it has never seen? Sample n
  is removed from X, y and the basis. This is the leave-one-out of the four papers. It takes N fits,
  each stored in its own file when it finishes.
"""

import dataclasses
import json
import os
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr
from scipy import special

from ardvark.common.pieces import Pieces, Processes
from ardvark.common.progress import Reporter
from ardvark.common.validate import InputError, logger
from ardvark.models import Problem

from ..fits.datatree import check_same, group, pointwise, replacing
from ..methods import registry, run
from ..methods.prediction import classes
from ..target.sampling import Sampling
from .sharing import Models, Sharing

if TYPE_CHECKING:
    from arviz_stats import ELPDData

Row = dict[str, Any]  # one refit, as it is stored

COLUMNS = ("y", "probability", "log_score", "correct", "status", "reason", "seconds")
"""Columns of `refit_loo`'s table; for a model without P(y = 1) the second one is named "score"."""


# --- from the draws of one fit --------------------------------------------------------------------


def loo(problem: Problem, tree: xr.DataTree) -> "ELPDData":
    """Estimate the leave-one-out predictive density from the draws of one fit, at a fixed basis.

    Parameters
    ----------
    problem : Problem
        The problem that was fitted.
    tree : xarray.DataTree
        A Markov chain, or an approximation with the density of its draws (`log_q`). The draws of
        an approximation are also reweighted by p / q.

    Returns
    -------
    arviz_stats ELPDData
        `elpd` (sum over samples), `se`, `p`, and for each sample `elpd_i` and `pareto_k`. If
        `pareto_k` is above `good_k`, the estimate for that sample cannot be trusted. The
        ``ardvark`` logger warns about the number of such samples.

    Raises
    ------
    InputError
        Labels are in the basis of the model (`refit_loo` is valid there), the fit is of another
        problem, or its draws are not from a stated distribution.

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
    >>> stats = {"lp": problem.log_density(draws)}
    >>> fit = av.adopt(problem, az.from_dict({"posterior": draws, "sample_stats": stats}))
    >>> estimate = av.loo(problem, fit)
    >>> bool((estimate.pareto_k < estimate.good_k).all())  # each of its terms can be trusted
    True
    >>> bool(estimate.elpd < estimate.elpd_i.max())  # the sum of the log probabilities of 3 labels
    True
    """
    check_same(problem, tree)
    spec, kind, method = problem.spec, tree.attrs["kind"], tree.attrs["method"]
    if spec.labels_in_basis:
        raise InputError(
            f"pointwise leave-one-out is not valid for {spec.name}. The label of a sample is also "
            "the sign of its basis function, and stays in the basis when the observation is left "
            "out. Held-out samples would look better predicted than they are. Use "
            f"av.refit_loo(problem, {method!r}, folder=...), which leaves the sample out of X, y "
            "and basis."
        )
    likelihood = pointwise(tree)
    if "y" not in likelihood:
        raise InputError("this fit has no pointwise log likelihood, because `eta` was not kept.")
    # only `eta` decides the relative efficiency: the other variables would cost time and memory
    data = xr.DataTree.from_dict(
        {"/posterior": group(tree, "posterior")[["eta"]], "/log_likelihood": likelihood}
    )
    if kind in ("mcmc", "reference"):
        return _psis(data)
    stats = group(tree, "sample_stats")
    if kind != "approximation" or "log_q" not in stats or "lp" not in stats:
        raise InputError(
            f"leave-one-out reweights draws from a known density, and {method!r} ({kind}) gives "
            "none for this problem. Use av.refit_loo, or a fit by exact."
        )
    log_p, log_q = stats["lp"], stats["log_q"]
    outside = int((~np.isfinite(log_p)).sum())
    if outside:
        raise InputError(
            f"{outside} draws of {method!r} lie outside the support of the posterior, so they have "
            "no importance ratio. Use av.refit_loo, or a fit by exact."
        )
    return _psis(data, log_p=log_p, log_q=log_q)


def _psis(data: xr.DataTree, **densities: xr.DataArray) -> "ELPDData":
    """Return ArviZ's estimate, its warning passed on through our logger."""
    import arviz_stats

    estimate = arviz_stats.loo_approximate_posterior if densities else arviz_stats.loo
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = estimate(data, pointwise=True, var_name="y", **densities)
    high = int((result.pareto_k > result.good_k).sum())
    if high:
        logger.warning(
            "loo: Pareto k-hat is above %.2f for %d of %d samples. Their terms cannot be "
            "estimated from these draws: refit without them (av.refit_loo)",
            result.good_k,
            high,
            result.n_data_points,
        )
    return result


# --- by refitting ---------------------------------------------------------------------------------


def refit_loo(
    problem: Problem,
    method: str,
    *,
    folder: str | os.PathLike[str],
    draws: int = 1000,
    chains: int = 4,
    random_seed: int = 0,
    processes: Processes = 2,
    progressbar: bool = True,
    **options: Any,
) -> pd.DataFrame:
    """Fit N times, each time without one sample in X, y and the basis, and predict that sample.

    The hyperparameters stay as the problem computed them. The remaining samples are standardised
    again. Each refit is written to `folder` when it ends, so that an interrupted run can continue.

    Parameters
    ----------
    problem : Problem
        The problem of all N samples.
    method : str
        A name in `BACKENDS`, or "paper".
    folder : path
        Where the refits are kept, one small JSON file each. A stored refit is reused if problem,
        method, options, sizes, seed and versions are the same and it did not fail.
    draws, chains : int
        The size of each refit.
    random_seed : int
        Equal seeds give equal tables, with any number of processes.
    processes : int, optional
        How many refits run at once, each in a process of its own. By default as
        `joblib.parallel_config` says: one, unless it was called.
    progressbar : bool
        Show how many refits are done.
    **options
        Options of the method.

    Returns
    -------
    pandas.DataFrame
        One row per sample, by name: `y`; `probability`, the posterior predictive P(y = 1) (for a
        model without one, `score`, the posterior mean of eta); `log_score`, the log posterior
        predictive probability of the label it has; `correct`; `status`, `reason` and `seconds` of
        its refit. ``attrs``: `elpd` and `accuracy`, the sum of `log_score` and the mean of
        `correct`, NaN if a refit failed; `se`, the standard error of `elpd`; `method`,
        `fingerprint`, and `not_ok`, the number of refits whose status is not "finished".

    Raises
    ------
    InputError
        The method does not apply. Or without some sample, a class would vanish or the basis would
        be empty. Or the folder contains refits of another problem. Raised before anything is
        fitted.

    Examples
    --------
    >>> import numpy as np
    >>> import ardvark as av
    >>> X = np.random.default_rng(0).normal(size=(6, 2))
    >>> problem = av.problem("fsklr", X, X[:, 0] > 0)
    >>> table = av.refit_loo(problem, "paper", folder="refits", processes=1, progressbar=False)
    >>> table.shape, table.index.name
    ((6, 7), 'sample')
    >>> table["status"].unique().tolist(), table.attrs["not_ok"]
    (['finished'], 0)
    >>> table.attrs["accuracy"] > 0.5
    True
    """
    sampling = Sampling(draws=draws, chains=chains, seed=random_seed, keep="shared")
    plan = registry.prepare(method, dataclasses.replace(problem), options, sampling)
    work = _Refits(plan.on(processes), Path(folder))
    _check_every_fold(problem)
    N = problem.data.N
    stage = Reporter(f"refit_loo {plan.name}", progressbar).stage("refitting", total=N)
    rows = work.run(range(N), processes, stage)
    return _table(problem, plan.name, list(rows.values()))


def _table(problem: Problem, name: str, rows: list[Row]) -> pd.DataFrame:
    index = pd.Index(problem.data.sample_names, name="sample")
    frame = pd.DataFrame(rows, index=index)[list(COLUMNS)]
    for column in ("probability", "log_score", "correct", "seconds"):
        frame[column] = frame[column].astype(float)  # None, of a failed refit, is NaN
    log_score = frame["log_score"].to_numpy()
    good = frame["status"] == "finished"
    frame.attrs = {
        "elpd": float(log_score.sum()),
        "se": float(np.sqrt(len(frame)) * log_score.std()),
        "accuracy": float(frame["correct"].to_numpy().mean()),
        "method": name,
        "fingerprint": problem.fingerprint,
        "not_ok": int((~good).sum()),
    }
    bad = frame.loc[~good, "reason"]
    if len(bad):
        logger.warning(
            "refit_loo %s: %d of %d refits did not finish; the first is the one without %s: %s",
            name,
            len(bad),
            len(frame),
            bad.index[0],
            bad.iloc[0],
        )
    if problem.spec.link == "identity":
        frame = frame.rename(columns={"probability": "score"})
    return frame


def _check_every_fold(problem: Problem) -> None:
    """Refuse a problem with a sample that cannot be left out."""
    data = problem.data
    for label, count in enumerate(data.counts):
        if count < 2:
            sample = data.sample_names[int(np.flatnonzero(data.y == label)[0])]
            raise InputError(
                f"class {data.class_names[label]!r} has only one sample, {sample!r}. Without it, "
                "only one class remains and there is nothing to fit. Leave-one-out needs at least "
                "2 samples of each class."
            )
    if len(problem.basis) == 1 and problem.basis_names[0] in data.sample_names:
        raise InputError(
            f"the basis consists of the one sample {problem.basis_names[0]!r}, and would be empty "
            "without it. Give at least 2 basis rows, or your own centres."
        )


# --- one fold -------------------------------------------------------------------------------------


def without(problem: Problem, i: int) -> Problem:
    """Return the problem without sample i in X, y and basis."""
    return problem.take(np.arange(problem.data.N) != i)


@dataclasses.dataclass(frozen=True)
class _Refits(Pieces[int, Row]):
    """The refits of one call, each in a file of its own; sent to each process once."""

    plan: registry.Plan
    folder: Path

    @property
    def problem(self) -> Problem:
        """The problem of all samples."""
        return self.plan.target.zoo_problem

    def start(self) -> Callable[[int], Row]:
        """Return the refits of one process: they share what is compiled."""
        return partial(self._refit, models={})

    def _refit(self, i: int, *, models: Models) -> Row:
        """Fit without sample i, and predict it."""
        data, seeds = self.problem.data, np.random.SeedSequence([self.plan.sampling.seed, i])
        seed = int(seeds.generate_state(1)[0]) >> 1
        fold = Sharing.of(without(self.problem, i), models)
        # nobody reads a fold's selection
        tree = run.compute(self.plan.of(fold, seed), selection=False)
        row = self._row(i, tree.attrs["status"], tree.attrs["reason"])
        if row["status"] != "failed":
            row |= _score(fold, tree, data.X[i : i + 1], int(data.y[i]))
            row["seconds"] = float(tree.attrs["seconds_compile"] + tree.attrs["seconds_run"])
        return row

    def failure(self, key: int, reason: str) -> Row:
        """Return the row of a refit that raised an error."""
        return self._row(key, "failed", reason)

    def _row(self, i: int, status: str, reason: str) -> Row:
        data = self.problem.data
        return {
            "index": i,
            "sample": data.sample_names[i],
            "y": int(data.y[i]),
            **dict.fromkeys(("probability", "log_score", "correct", "seconds")),
            "fingerprint": self.problem.fingerprint,
            "request": self.plan.request,
            "status": status,
            "reason": reason,
        }

    def note(self, key: int, result: Row) -> str:
        """Return which sample was left out, and how its refit ended."""
        return f"{result['sample']}: {result['status']}"

    def put(self, key: int, result: Row) -> None:
        """Write the refit to its file."""
        with replacing(self._path(key)) as part:
            part.write_text(json.dumps(result), encoding="utf-8")

    def get(self, key: int) -> Row | None:
        """Return the refit of the folder, if it is the one asked for and did not fail.

        Raises
        ------
        InputError
            The folder holds refits of another problem.
        """
        path, mine = self._path(key), self.problem.fingerprint
        if not path.exists():
            return None
        try:
            row: Row = json.loads(path.read_text(encoding="utf-8"))
            other, same = row["fingerprint"] != mine, row["request"] == self.plan.request
        except (ValueError, KeyError, TypeError) as error:
            logger.warning("%s cannot be read, so it is computed again: %s", path.name, error)
            return None
        if other:
            raise InputError(
                f"{self.folder} contains refits of another problem (fingerprint "
                f"{row['fingerprint']}, this one's is {mine}). Choose another folder, or "
                "delete this one."
            )
        return row if same and row["status"] != "failed" else None

    def _path(self, i: int) -> Path:
        return self.folder / f"{self.plan.name}-{i:05d}.json"


def _score(fold: Problem, tree: xr.DataTree, x: np.ndarray, y: int) -> Row:
    """Return the posterior predictive of label y at a row x (1, D + K), in original units."""
    posterior, spec = group(tree, "posterior"), fold.spec
    arrays = {str(k): v.values for k, v in posterior.data_vars.items() if k != "eta"}
    inputs = fold.at(x)
    log_p, second = [], []
    for c in range(posterior.sizes["chain"]):  # a chain at a time: its weights are (draws, D)
        point = {k: v[c] for k, v in arrays.items()}
        eta = fold.decision(point, inputs)  # (draws, 1)
        log_p.append(fold.log_predictive(y, eta, point)[:, 0])
        if spec.link == "identity":
            second.append(eta[:, 0])
        else:
            second.append(np.exp(fold.log_predictive(1, eta, point)[:, 0]))
    terms, mean = np.concatenate(log_p), float(np.concatenate(second).mean())
    return {
        "probability": mean,
        "log_score": float(special.logsumexp(terms) - np.log(len(terms))),
        "correct": bool(classes(fold, np.asarray(mean)) == y),
    }
