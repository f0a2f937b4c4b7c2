"""Compare posteriors of one problem: one row per method, the exact one as reference.

The columns are declared in `columns.py`, and have the following meanings.

"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr
from threadpoolctl import threadpool_limits

from ardvark.common.validate import InputError, logger, one_of
from ardvark.data import Dataset
from ardvark.models import Problem

from ..fits.datatree import is_bare, replacing
from ..fits.selection_text import selection_text
from ..methods.prediction import classes, predicted_draws, rows_of, warn_of_new_values
from ..scoring.baselines import Baseline, Predicted, baselines, beside_baselines
from ..scoring.columns import SCORES, described, table_text, whole
from ..scoring.distances import frame, measure
from ..scoring.held_out import HeldOut, measures, remarks, wrong_and_sure
from ..scoring.held_out import frame as scored
from ..scoring.quantities import has_draws
from .entry import beside_the_reference, check, only, other_models, reference_of
from .rows import tabulate
from .text import WIDTH, counts, everything, one_screen
from .verdicts.verdict import Verdict, verdicts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..checks.sensitivity import Sensitivity
    from .report.figures import Kind
    from .report.style import Picture

# What draws and writes the page is imported by the methods that need it.

__doc__ = f"{__doc__}{described()}\n"


@dataclass(frozen=True, eq=False)
class Comparison:
    """A comparison of fits of one problem.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per method (and per baseline, with a test split): what a reader looks at first, in
        those columns of this module's docstring that some row can fill.
    fits : dict of DataTree
    reference : str or None
        The row the errors are measured against.
    problem : Problem or None
    distances : pandas.DataFrame
        Every distance from the reference, one row each: fit, quantity, statistic, value, deviation
        from what a perfect method would score, the noise floor of that (95 % quantile and median),
        the limit from which a verdict holds it against the fit, and which component it is of
        (`scoring.distances.frame`).
    scores : pandas.DataFrame
        Every measure of the predictions for the test samples, one row each: fit, measure, value,
        standard error, noise floor (`scoring.held_out.frame`).
    verdict : dict of Verdict
        What each fit may be used for.
    held_out : HeldOut or None
        The predictions for the test samples.
    remarks : list of str
        Remarks on data that are unbalanced or few.

    Examples
    --------
    >>> import numpy as np
    >>> import ardvark as av
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> problem = av.problem("pfcvm", X, X[:, 0] + 2 * X[:, 1] > 0)
    >>> methods = ("pfcvm_lp", "pfcvm_em")
    >>> fits = {m: av.fit(problem, m, random_seed=1, progressbar=False) for m in methods}
    >>> comparison = av.compare(fits, reference="pfcvm_lp", problem=problem)
    >>> comparison.table["kind"].to_dict()
    {'pfcvm_lp': 'approximation', 'pfcvm_em': 'point'}
    >>> sorted(comparison.distances["quantity"].unique())
    ['eta', 'feature_weight', 'primal_weight', 'probability', 'ranking',
    'sample_weight', 'scalar', 'selection']
    >>> comparison.verdicts().columns.tolist()
    ['predictions', 'means', 'uncertainty', 'parameters', 'ranking', 'selection',
    'verdict']
    >>> for name, words in comparison.selection().items():
    ...     print(f"{name}: {words}")
    pfcvm_lp: On average 2.0 of 4 features have an effect above 0.5 (90 % interval 2 to 2;
    the prior expects ...). More likely above it than not are x2 (+...
    pfcvm_em: At the returned point 1 of 4 features have an effect above 0.5: x2 (+...
    >>> comparison.verdict["pfcvm_lp"].remedies
    ('ardvark.fit(problem, "exact")',)
    >>> comparison.on_command_line()["pfcvm_lp"].remedies
    ('the same command with --methods exact,pfcvm_lp,pfcvm_em',)
    >>> print(comparison.text(full=True))
    Comparison of 2 fits of pfcvm on data, reference: pfcvm_lp
    30 rows, 13 of them 'True'; 4 features.
    pfcvm_lp [not judged]: ...
    >>> comparison.plot("forest").savefig("forest.png")
    >>> pictures = comparison.pictures()
    >>> sorted(pictures)
    ['curve', 'eta', 'forest', 'samples']
    >>> comparison.to_html("report.html", pictures=pictures).name  # one page, its figures inside
    'report.html'
    """

    table: pd.DataFrame
    fits: dict[str, xr.DataTree]
    reference: str | None = None
    problem: Problem | None = None
    distances: pd.DataFrame = field(default_factory=lambda: frame([]))
    scores: pd.DataFrame = field(default_factory=lambda: scored({}, SCORES))
    verdict: dict[str, Verdict] = field(default_factory=dict)
    held_out: HeldOut | None = None
    remarks: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"{self.text()}\nall of it: .text(full=True), .to_html(path)"

    def _repr_html_(self) -> str:
        from .report.page import short

        return short(self.title, self.verdict, self.printed, self.reference)

    def text(self, full: bool = False, width: int = WIDTH) -> str:
        """Return the comparison for a terminal.

        Parameters
        ----------
        full : bool
            Every verdict with its reasons and remedies, the whole table, and which features the
            reference says are active. Otherwise one screen: a line for each fit.
        width : int
            Columns that the whole table may take.
        """
        said = self._said
        if not full:
            return one_screen(
                self.title, self.rows, self.table, self.verdict, self.fits, self.reference, said
            )
        # of other fits than the reference, the selection is on the page
        known = {n: w for n, w in self.selection().items() if self.reference in (None, n)}
        reasons = {n: why for n, why in whole(self.table)["reason"].dropna().items() if why}
        told = [f"{name}: {words}" for name, words in (*reasons.items(), *known.items())]
        return everything(self.title, self.rows, self.printed, self.verdict, [*said, *told], width)

    @property
    def printed(self) -> pd.DataFrame:
        """The table and the scores as short strings, with their noise: one column a method."""
        return table_text(self.table, self.distances, self.scores)

    @property
    def title(self) -> str:
        """How many fits of what, and the reference."""
        count = f"{len(self.fits)} fit{'s' if len(self.fits) != 1 else ''}"
        of = "" if self.problem is None else f" of {self._subject}"
        return f"Comparison of {count}{of}, reference: {self.reference or 'none'}"

    @property
    def rows(self) -> str:
        """How many rows there are, in a sentence; "" without a problem."""
        left_out = None if self.held_out is None else self.held_out.y
        return "" if self.problem is None else counts(self.problem.data, left_out)

    @property
    def unjudged(self) -> str:
        """That nothing is known of the model's predictions, "" if something is."""
        own = all(map(is_bare, self.fits.values()))  # what it predicts, its author knows
        if own or self.table["kind"].eq("baseline").any():
            return ""
        return (
            "Whether the model predicts was not asked: leave rows out (test=, --test-size 0.3), or "
            "ask `choose`."
        )

    @property
    def _said(self) -> list[str]:
        """What screen and page say beside the verdicts."""
        return [words for words in (self.unjudged, *self.remarks) if words]

    @property
    def _subject(self) -> str:
        p = self.problem
        return "" if p is None else f"{p.spec.name} on {p.data.name}"

    def on_command_line(self) -> dict[str, Verdict]:
        """Return the verdicts with remedies in the flags of `ardvark compare`."""
        return {n: v.on_command_line(n, self.fits) for n, v in self.verdict.items()}

    def verdicts(self) -> pd.DataFrame:
        """Return what each fit may be used for: a word for each purpose, and a sentence."""
        rows = {n: {**v.words, "verdict": v.sentence} for n, v in self.verdict.items()}
        frame = pd.DataFrame.from_dict(rows, orient="index")
        frame.index.name = "method"
        return frame

    def plot(self, kind: "Kind | None" = None, **settings: Any) -> "Figure":
        """Return a figure of the comparison.

        Parameters
        ----------
        kind : str, optional
            "variables" (of a `pm.Model`: those in which the fits differ most, its default),
            "forest" (else the default) and "samples" (effects of the leading features and samples),
            "curve" (their probability over sizes), "eta" (decision values), "reliability" (how
            often y = 1 if P(y = 1) is p, with a test split). Ranks of chains and the like are
            drawn by ArviZ: `arviz_plots.plot_rank(fit)`.
        **settings
            Settings of the figure: `leading`, the number of features in a forest.

        Raises
        ------
        InputError
            An unknown kind, or one that these fits have no draws for.
        """
        own = all(map(is_bare, self.fits.values()))
        return self._picture(kind or ("variables" if own else "forest"), **settings).figure

    def _picture(self, kind: "Kind", **settings: Any) -> "Picture":
        from .report.figures import FIGURES

        one_of("kind", kind, tuple(FIGURES))
        figure = FIGURES[kind]
        return figure.draw(getattr(self, figure.of), self.reference, self._subject, **settings)

    def pictures(self) -> "dict[Kind, Picture]":
        """Return every kind of figure that these fits have draws for, with its description.

        A figure that fails is left out with a warning, so that it cannot cost the report of a long
        run.
        """
        from .report.figures import FIGURES

        drawn: dict[Kind, Picture] = {}
        for kind in FIGURES:
            try:
                drawn[kind] = self._picture(kind)
            except InputError as error:
                logger.debug("no %s figure: %s", kind, error)
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
        sensitivity: "Sensitivity | None" = None,
        pictures: "Mapping[Kind, Picture] | None" = None,
    ) -> Path:
        """Write one self-contained page with the table and the figures; return its path.

        Parameters
        ----------
        path : path
            The file; its folder is made if it is not there.
        command : str
            The command line that made the comparison, shown at the end of the page. Remedies are
            then flags of that command, and not calls in Python.
        sensitivity : Sensitivity, optional
            What changes with the prior (`ardvark.sensitivity`); adds a section to the page.
        pictures : dict of Picture, optional
            `self.pictures()`, if they are drawn already.
        """
        from .report.page import page

        text = page(
            self.table,
            self.printed,
            self.pictures() if pictures is None else pictures,
            self.fits,
            rows=self.rows,
            verdicts=self.on_command_line() if command else self.verdict,
            distances=self.distances,
            reference=self.reference,
            problem=self.problem,
            sensitivity=sensitivity,
            remarks=self._said,
            command=command,
            versions=str(next(iter(self.fits.values())).attrs.get("versions", "")),
        )
        target = Path(path)
        with replacing(target) as part:
            part.write_text(text, encoding="utf-8")
        return target


def compare(
    fits: Mapping[str, xr.DataTree],
    reference: str | xr.DataTree | None = None,
    problem: Problem | None = None,
    test: Dataset | None = None,
    quantities: Sequence[str] | None = None,
) -> Comparison:
    """Compare fits of the same posterior.

    Parameters
    ----------
    fits : dict of DataTree
        Results of `fit` or `adopt`, by the name of their row. Without a problem, they may instead
        all be trees that ardvark did not make, with shared quantities (`eta`, `feature_weight`,
        `sample_weight`). Those are treated as Markov chains; only these quantities are compared.
    reference : str or DataTree, optional
        The fit from which errors are measured: the name of one of them, or another one, such as
        ``ardvark.read("exact.nc")``, which gets a row of its own. By default the first converged
        chain of an exact sampler; if there is none, that of any other, or any chain.
    problem : Problem, optional
        Needed with `test`, and for the features' own weights under a linear kernel.
    test : Dataset, optional
        Held-out samples, in the original units. Adds accuracy, log score and three plain
        classifiers.
    quantities : sequence of str, optional
        The variables that are compared, by name; all of them unless given. Convergence is always
        judged by all of them.

    Raises
    ------
    InputError
        There are no fits, or fits of different problems. Trees that ardvark did not make are given
        together with a problem or with fits. The reference is unknown. `test` is given without
        `problem`.

    Examples
    --------
    >>> import ardvark as av
    >>> problem = av.problem("pfcvm", av.load("digits38").take(range(40)))
    >>> exact = av.fit(problem, "exact", random_seed=0, progressbar=False)
    >>> fits = {"em": av.fit(problem, "pfcvm_em", random_seed=0, progressbar=False)}
    >>> av.compare(fits, reference=exact, problem=problem)
    Comparison of 2 fits of pfcvm on digits38, reference: reference
    ...
                      verdict     P(y = 1) off by  width wrong, sure  accuracy seconds
    reference         [converged]        reference  ...
    em                [do not use] ...
    """
    entries, name = beside_the_reference(fits, reference, problem)
    check(entries, name, problem, test)
    looked_at = entries if quantities is None else only(entries, quantities)
    name = name or reference_of(entries)
    with threadpool_limits(1, user_api="blas"):  # thousands of small products: threads would wait
        predicted = _predicted(entries, problem, test)
        # a score of the link "identity" is no probability
        probabilities = {} if problem is None or problem.spec.link == "identity" else predicted
        alone = len(entries) == 1  # a fit has no distance from itself
        distances = measure(looked_at, None if alone else name, problem, probabilities)
        plain = {} if problem is None or test is None else baselines(problem.data, test)
        by_fit = verdicts(entries, name, distances, _models(predicted, plain, problem, test))
        measured = {n: _measured(problem, draws, test) for n, draws in predicted.items()}
        measured |= {n: dict(baseline.row) for n, baseline in plain.items()}
        table = tabulate(entries, distances, by_fit, measured, plain)
    return Comparison(
        table=table,
        fits=entries,
        reference=name,
        problem=problem,
        distances=distances,
        scores=scored(measured, SCORES),
        verdict=by_fit,
        held_out=_held_out(probabilities, test),
        remarks=other_models(entries) if problem is None else remarks(problem.data, test),
    )


def _predicted(
    fits: Mapping[str, xr.DataTree], problem: Problem | None, test: Dataset | None
) -> dict[str, np.ndarray]:
    """Return each fit's predictions (chain, draw, M) for the test samples, where there are any."""
    if problem is None or test is None:
        return {}
    warn_of_new_values(problem.data, *rows_of(problem.data, test, problem.always))
    drawn = {name: tree for name, tree in fits.items() if has_draws(tree)}
    return {name: predicted_draws(problem, tree, test) for name, tree in drawn.items()}


def _measured(problem: Problem | None, draws: np.ndarray, test: Dataset | None) -> dict[str, float]:
    """Return every measure of predictions (chain, draw, M) on the test samples."""
    if problem is None or test is None:
        return {}
    p = draws.mean(axis=(0, 1))
    known = problem.spec.link != "identity"  # whose predictions are scores
    found = measures(test.y, classes(problem, p), p, p if known else None)
    return found | (wrong_and_sure(test.y, draws) if known else {})


def _models(
    predicted: Mapping[str, np.ndarray],
    plain: Mapping[str, Baseline],
    problem: Problem | None,
    test: Dataset | None,
) -> dict[str, str]:
    """Return by fit whether its model predicts better than the majority and L1, in words."""
    if problem is None or test is None:
        return {}
    known = problem.spec.link != "identity"
    own = {}
    for name, draws in predicted.items():
        p = draws.mean(axis=(0, 1))
        own[name] = Predicted.of(test.y, classes(problem, p), p if known else None)
    others = {n: Predicted.of(test.y, b.decided, b.p) for n, b in plain.items() if b.p is not None}
    return beside_baselines(own, others)


def _held_out(known: Mapping[str, np.ndarray], test: Dataset | None) -> HeldOut | None:
    """Return the predicted probabilities that figures are made of, None without any."""
    if test is None or not known:
        return None
    return HeldOut(test.y, tuple(test.sample_names), {n: _some(p) for n, p in known.items()})


def _some(draws: np.ndarray, most: int = 500) -> np.ndarray:
    """Return at most `most` of the draws (chain, draw, M), evenly spaced, as (S, M)."""
    flat = draws.reshape(-1, draws.shape[-1])
    return flat[np.linspace(0, len(flat) - 1, min(most, len(flat))).astype(int)]
