"""Compare posteriors of one problem: one row per method, the exact one as reference.

The columns are declared in `columns.py`; what they say follows below.

"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from ardvark.common.validate import InputError, logger, one_of, unknown
from ardvark.data import Dataset
from ardvark.models import SHARED, Problem

from ..contract.backend import finished
from ..fits import diagnostics
from ..fits.datatree import group, replacing
from ..fits.selection import selection_text, summary
from ..fitting.prediction import classes, predict
from ..references import references
from ..refits.sensitivity import Sensitivity
from ..refits.stability import beside
from ..report import page as report
from ..report.figures import FIGURES, Kind
from ..report.look import Picture
from ..scoring.baselines import baselines
from ..scoring.columns import COLUMNS, described
from ..scoring.held_out import HeldOut, measures, remarks
from ..scoring.measures import score
from ..scoring.quantities import Function, Scores, as_frame, measure
from ..verdicts.verdict import Verdict, verdicts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__doc__ = f"{__doc__}{described()}\n"


STORED = "stored"
"""The name of the row, and of the reference, that comes with the package."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """Fits of one problem beside each other.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per method (and per baseline, with a test split), the columns of this module's
        docstring.
    fits : dict of DataTree
    reference : str or None
        The row the errors are measured against.
    problem : Problem or None
    distances : pandas.DataFrame
        Every distance from the reference: method, quantity, statistic, value, deviation from what
        a perfect method would score, the noise floor of that (95 % quantile and median), and
        whether it is inside.
    verdict : dict of Verdict
        What each fit may be used for.
    held_out : HeldOut or None
        The predictions for the test samples.
    remarks : list of str
        What to know of data that are unbalanced or few.
    """

    table: pd.DataFrame
    fits: dict[str, xr.DataTree]
    reference: str | None = None
    problem: Problem | None = None
    distances: pd.DataFrame = field(default_factory=lambda: as_frame({}))
    verdict: dict[str, Verdict] = field(default_factory=dict)
    held_out: HeldOut | None = None
    remarks: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        return "\n".join([self._title(), *(v.text(n) for n, v in self.verdict.items())])

    def _repr_html_(self) -> str:
        return report.short(self._title(), self.verdict, self.table, self.reference)

    def _title(self) -> str:
        count = f"{len(self.fits)} fit{'s' if len(self.fits) != 1 else ''}"
        of = "" if self.problem is None else f" of {self._subject}"
        return f"Comparison of {count}{of}, reference: {self.reference or 'none'}"

    @property
    def _subject(self) -> str:
        p = self.problem
        return "" if p is None else f"{p.spec.name} on {p.data.name}"

    def verdicts(self) -> pd.DataFrame:
        """Return what each fit may be used for: a word for each purpose, and a sentence."""
        rows = {n: {**v.words, "verdict": v.sentence} for n, v in self.verdict.items()}
        frame = pd.DataFrame.from_dict(rows, orient="index")
        frame.index.name = "method"
        return frame

    def plot(self, kind: Kind = "forest", **settings: Any) -> "Figure":
        """Return a figure of the comparison.

        Parameters
        ----------
        kind : str
            "forest" and "samples" (leading feature and sample weights), "image" (pixels), "eta"
            (decision values), "pair" (two features that stand in for each other), "frontier" (run
            time against error), "calibration" (reliability curves, with a test split), "ranks"
            (rank ECDFs of the reference's chains).
        **settings
            Of the figure: `leading`, the number of features in a forest.

        Raises
        ------
        InputError
            An unknown kind, or one that these fits have no draws for.
        """
        return self._picture(kind, **settings).figure

    def _picture(self, kind: Kind, **settings: Any) -> Picture:
        one_of("kind", kind, tuple(FIGURES))
        figure = FIGURES[kind]
        return figure.draw(getattr(self, figure.of), self.reference, self._subject, **settings)

    def pictures(self) -> dict[Kind, Picture]:
        """Return every kind of figure that these fits have draws for, with its words.

        A figure that fails is left out with a warning: the page of hours of fits does not hang on
        it.
        """
        drawn: dict[Kind, Picture] = {}
        for kind in FIGURES:
            try:
                drawn[kind] = self._picture(kind)
            except InputError as error:
                logger.info("no %s figure: %s", kind, error)
            except Exception as error:
                logger.warning("no %s figure: %s: %s", kind, type(error).__name__, error)
                logger.debug("traceback", exc_info=True)
        return drawn

    def selection(self) -> dict[str, str]:
        """Return which features each fit says are active, in words; the reference first."""
        words = {name: selection_text(tree) for name, tree in self.fits.items()}
        order = sorted(words, key=lambda name: name != self.reference)
        return {name: words[name] for name in order if words[name]}

    def to_html(
        self,
        path: str | os.PathLike[str],
        command: str = "",
        sensitivity: Sensitivity | None = None,
        pictures: Mapping[Kind, Picture] | None = None,
    ) -> Path:
        """Write one self-contained page with the table and the figures; return its path.

        Parameters
        ----------
        path : path
            The file; its folder is made if it is not there.
        command : str
            How the comparison was made, shown at the end of the page.
        sensitivity : Sensitivity, optional
            What moves with the prior (`ardvark.sensitivity`): a section of the page.
        pictures : dict of Picture, optional
            `self.pictures()`, if they are drawn already.
        """
        page = report.page(
            self.table,
            self.pictures() if pictures is None else pictures,
            self.selection(),
            verdicts=self.verdict,
            distances=self.distances,
            reference=self.reference,
            problem=self.problem,
            sensitivity=sensitivity,
            sets=beside(self.fits, self.reference),
            remarks=self.remarks,
            command=command,
            versions=str(next(iter(self.fits.values())).attrs.get("versions", "")),
        )
        target = Path(path)
        with replacing(target) as part:
            part.write_text(page, encoding="utf-8")
        return target


def compare(
    fits: Mapping[str, xr.DataTree],
    reference: str | None = None,
    problem: Problem | None = None,
    test: Dataset | None = None,
    quantities: Mapping[str, Function] | None = None,
) -> Comparison:
    """Compare fits of the same posterior.

    Parameters
    ----------
    fits : dict of DataTree
        Results of `fit` or `adopt`, by the name of their row. Without a problem, and all of them:
        trees from elsewhere that hold shared quantities (`eta`, `feature_weight`,
        `sample_weight`), which are taken for Markov chains; only these are compared.
    reference : str, optional
        The fit to measure errors against; by default the first converged Markov chain. "stored" is
        the reference posterior of this problem that is kept with the package (`references.py`):
        it needs `problem`, and is a row of its own.
    problem : Problem, optional
        Needed with `test`, and for the features' own weights under a linear kernel.
    test : Dataset, optional
        Held-out samples, in the original units. Adds accuracy, log score and two scikit-learn
        baselines.
    quantities : dict of callable, optional
        Further quantities to compare, by name: functions of the posterior (a Dataset) that return
        an array (chain, draw, ...). They are in `Comparison.distances`; verdicts do not rest on
        them.

    Raises
    ------
    InputError
        No fits, draws that are no fits yet beside a problem or beside fits, fits of different
        problems, an unknown reference, `test` without `problem`, a quantity of a wrong shape or a
        name that is taken, or no stored reference of the problem.
    """
    fits = _entered(fits, problem)
    if reference == STORED and STORED not in fits:
        if problem is None:
            raise InputError("a stored reference is found by the problem: pass problem=.")
        fits = {STORED: references.stored(problem), **fits}
    prints = {name: tree.attrs.get("fingerprint") for name, tree in fits.items()}
    if len(set(prints.values())) > 1:
        listed = ", ".join(f"{k}: {v}" for k, v in prints.items())
        raise InputError(f"these fits are of different problems (fingerprints {listed}).")
    if test is not None and problem is None:
        raise InputError("a test split needs the problem as well: pass problem=.")
    if reference is not None and reference not in fits:
        raise unknown("reference", reference, fits)
    if reference is None:
        reference = reference_of(fits)

    drawn = {name: tree for name, tree in fits.items() if _drawn(tree)}
    probability: dict[str, np.ndarray] = {}
    if test is not None and problem is not None:
        probability = {n: predict(problem, t, test).values for n, t in drawn.items()}
    # a score of the link "identity" is no probability
    known = {} if problem is None or problem.spec.link == "identity" else probability
    found: dict[str, Scores] = {}
    if reference in drawn:
        found = measure(fits, reference, problem, known, quantities)
    judged = verdicts(fits, reference, found)

    rows = {}
    for name, tree in fits.items():
        row: dict[str, Any] = {k: tree.attrs.get(k) for k in ("kind", "status", "reason")}
        row |= {"verdict": judged[name].level}
        if finished(row["status"]):
            row["status"] = "finished"
        row |= {k: tree.attrs.get(k) for k in ("seconds_compile", "seconds_run")}
        if name in drawn:
            row |= _reliability(tree) | _selection(tree) | _distances(found.get(name, {}))
            if test is not None and problem is not None:
                row |= _predictions(problem, probability[name], test)
        rows[name] = row
    if test is not None and problem is not None:
        for name, row in baselines(problem.data, test).items():
            rows[name] = {"kind": "baseline", "status": "finished", "reason": "", **row}
    table = pd.DataFrame.from_dict(rows, orient="index", columns=[c.name for c in COLUMNS])
    table.index.name = "method"
    said = [] if problem is None else remarks(problem.data, test)
    kept = None
    if test is not None and known:
        kept = HeldOut(test.y, tuple(test.sample_names), {n: _some(p) for n, p in known.items()})
    return Comparison(table, dict(fits), reference, problem, as_frame(found), judged, kept, said)


def _entered(fits: Mapping[str, xr.DataTree], problem: Problem | None) -> dict[str, xr.DataTree]:
    """Return fits, or what can be compared of trees that are none."""
    named = isinstance(fits, Mapping) and not isinstance(fits, xr.DataTree)
    if not named or not all(isinstance(tree, xr.DataTree) for tree in fits.values()):
        raise InputError(
            "compare needs a dict of DataTrees by the name of their row, {'nuts': fit, ...}, got "
            f"{type(fits).__name__}{' of other things' if named else ''}."
        )
    if not fits:
        raise InputError("nothing to compare: fits is empty.")
    foreign = [name for name, tree in fits.items() if "kind" not in tree.attrs]
    if foreign and (problem is not None or len(foreign) < len(fits)):
        raise InputError(
            f"{foreign[0]!r} is no fit yet: enter it by ardvark.adopt(problem, draws), or compare "
            "shared quantities alone, without a problem and without fits."
        )
    return {n: _bare(n, tree) if n in foreign else tree for n, tree in fits.items()}


def _bare(name: str, tree: xr.DataTree) -> xr.DataTree:
    """Return the shared quantities of a tree from elsewhere, taken for Markov chains."""
    posterior = group(tree, "posterior")
    shared = [n for n in SHARED if n in posterior]
    if not shared or not {"chain", "draw"} <= set(posterior.dims):
        raise InputError(
            f"{name!r} is no fit, and its group posterior holds none of {', '.join(SHARED)} with "
            "the dimensions chain and draw. Enter it by ardvark.adopt(problem, draws)."
        )
    bare = xr.DataTree.from_dict({"/posterior": posterior[shared]})
    bare.attrs = {"kind": "mcmc"}
    status, reason = diagnostics.convergence(bare)
    bare.attrs |= {"status": status, "reason": reason}
    return bare


def reference_of(fits: Mapping[str, xr.DataTree]) -> str | None:
    """Return the fit that errors are measured against: the first converged Markov chain, or any."""
    good = [n for n, t in fits.items() if t.attrs["kind"] == "mcmc" and _drawn(t)]
    converged = [n for n in good if finished(fits[n].attrs["status"])]
    return next(iter(converged or good), None)


def _drawn(tree: xr.DataTree) -> bool:
    return bool(group(tree, "posterior").data_vars)


def _predictions(problem: Problem, draws: np.ndarray, test: Dataset) -> dict[str, float]:
    """Return every measure of predictions (chain, draw, M) on the test samples."""
    p = draws.mean(axis=(0, 1))
    row, decided = score(problem, p, test), classes(problem, p)
    if problem.spec.link == "identity":
        return row | measures(test.y, decided, p)
    return row | measures(test.y, decided, p=p)


def _some(draws: np.ndarray, most: int = 500) -> np.ndarray:
    """Return at most so many of the draws (chain, draw, M), evenly spaced, as (S, M)."""
    flat = draws.reshape(-1, draws.shape[-1])
    return flat[np.linspace(0, len(flat) - 1, min(most, len(flat))).astype(int)]


def _reliability(tree: xr.DataTree) -> dict[str, Any]:
    """Return draws, R-hat, ESS, divergences and k-hat of one fit, each where it means something."""
    posterior, stats = group(tree, "posterior"), group(tree, "sample_stats")
    row: dict[str, Any] = {"draws": posterior.sizes["chain"] * posterior.sizes["draw"]}
    if tree.attrs["kind"] == "reference":  # few draws of many: what is known of all of them
        kept = ("rhat", "rhat_eta", "ess_bulk", "ess_tail")
        return row | {name: tree.attrs[name] for name in kept}
    if tree.attrs["kind"] == "mcmc" and posterior.sizes["draw"] >= 4:
        fixed = tree.attrs.get("fixed", "").split()  # by the model: nothing to converge
        values = [posterior[name] for name in posterior.data_vars if name not in fixed]
        values = [diagnostics.moved(tree, v) for v in values]
        values = [v for v in values if v.size]
        by_name = {str(v.name): diagnostics.rhat(v) for v in values}
        row["rhat"] = diagnostics.worst(by_name.values(), np.max)
        if "eta" in by_name:
            row["rhat_eta"] = diagnostics.worst([by_name["eta"]], np.max)
        for method in ("bulk", "tail"):
            found = (diagnostics.ess(v, method) for v in values)
            row[f"ess_{method}"] = diagnostics.worst(found, np.min)
        if "diverging" in stats:
            row["divergences"] = diagnostics.divergences(tree)
        row |= _bits(tree)
    if "log_q" in stats and "lp" in stats:
        row["khat"] = diagnostics.khat(stats["lp"].values, stats["log_q"].values)
    return row


def _bits(tree: xr.DataTree) -> dict[str, float]:
    """Return how far the inclusion probabilities of a fit's masks may be believed."""
    found = [diagnostics.inclusion(weight) for weight in diagnostics.masks(tree).values()]
    if not found:
        return {}
    return {
        "mcse_bits": float(max(f["mcse"].fillna(0.0).max() for f in found)),
        "spread_bits": float(max(f["spread"].max() for f in found)),
        "unmoved_bits": int(sum(f["unmoved"].sum() for f in found)),
    }


def _distances(found: Scores) -> dict[str, float]:
    """Return the distances that have a column, and how far each is beyond its floor."""
    shown = {c.name for c in COLUMNS}
    row: dict[str, float] = {}
    for quantity, scores in found.items():
        for statistic, distance in scores.items():
            name = f"{statistic}_{quantity}"
            if name in shown:
                row[name] = distance.value
                if not np.isnan(distance.floor):
                    row[f"{name}_beyond"] = distance.beyond
    return row


def _selection(tree: xr.DataTree) -> dict[str, float]:
    """Return how many features and samples are active, and how many the method itself selects."""
    found, own = group(tree, "selection"), group(tree, "fit")
    row: dict[str, float] = {}
    for what in ("feature", "sample"):
        numbers = summary(found, what)
        if numbers:
            row |= {
                f"active_{what}s": numbers["active"],
                f"active_{what}s_low": numbers["low"],
                f"active_{what}s_high": numbers["high"],
                f"n90_{what}s": numbers["n90"],
                f"selected_{what}s": numbers["selected"],
            }
        if f"selected_{what}" in own:
            row[f"own_{what}s"] = int((own[f"selected_{what}"] != 0).sum())
    return row
