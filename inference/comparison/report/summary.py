"""One fit on one screen: what it is, what it may be used for, and what its features do."""

import textwrap
from dataclasses import dataclass

import pandas as pd
import xarray as xr

from ardvark.common.html import table
from ardvark.common.validate import InputError

from ...fits.datatree import group
from ...fits.effects import effects, leading, printed
from ...fits.mixing import mixing_of
from ...fits.selection_text import selection_text
from ..verdicts.verdict import Verdict, verdicts

_LEADING = 8
"""Features in the table."""
_LONGEST = 24  # characters of a name


@dataclass(frozen=True)
class Summary:
    """What one fit says.

    Attributes
    ----------
    title : str
        Method, model and data.
    rows : dict of str
        Draws, sizes, times and diagnostics, in words.
    verdict : Verdict
        What it may be used for, by its own diagnostics alone. To judge an approximation, compare it
        with an exact fit (`ardvark.compare`).
    active : str
        Which features have an effect, "" if the fit cannot say.
    effects : pandas.DataFrame
        The leading features in the order of P(effect), with their signed effects
        (`ardvark.effects`); empty if the fit cannot say.

    Examples
    --------
    >>> import numpy as np
    >>> import ardvark as av
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> problem = av.problem("pfcvm", X, X[:, 1] > 0)
    >>> summary = av.summary(av.fit(problem, "pfcvm_em", random_seed=0, progressbar=False))
    >>> summary.title, summary.rows["kind"], summary.verdict.level
    ('pfcvm_em: pfcvm on data', 'point', 'do not use')
    >>> print(summary.active)
    At the returned point 1 of 4 features have an effect above 0.5: x2 (+...); 1 feature
    carries 90 % of the squared effects, and those above it 100 %. Numbers with a sign ...
    >>> summary.effects.index[0]
    'x2'
    """

    title: str
    rows: dict[str, str]
    verdict: Verdict
    active: str
    effects: pd.DataFrame

    def __repr__(self) -> str:
        lines = [self.title]
        width = max(map(len, self.rows)) + 4
        for name, words in self.rows.items():
            lines += textwrap.wrap(
                words, 80, initial_indent=f"  {name}".ljust(width), subsequent_indent=" " * width
            )
        lines += [self.verdict.text("verdict"), *textwrap.wrap(self.active, 80)]
        if len(self.effects):
            lines += [
                "leading features",
                *_printed(self.effects).to_string(index_names=False).split("\n"),
            ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        said = [("verdict", f"{self.verdict.level}: {self.verdict.headline}")]
        notes = (*self.verdict.reasons, *self.verdict.remedies, self.active)
        main = table(self.title, [*self.rows.items(), *said], notes=filter(None, notes))
        if not len(self.effects):
            return main
        shown = _printed(self.effects).reset_index()
        return main + table("Leading features", shown.to_numpy().tolist(), list(shown.columns))


def summary(tree: xr.DataTree) -> Summary:
    """Return what one fit says: sizes, diagnostics, verdict, active features.

    Parameters
    ----------
    tree : DataTree
        A fit returned by `ardvark.fit` or read from its file.

    Returns
    -------
    Summary
        Displays itself in a notebook and in a terminal.

    Raises
    ------
    InputError
        The tree holds no posterior.

    Examples
    --------
    >>> import numpy as np
    >>> import ardvark as av
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> problem = av.problem("pfcvm", X, X[:, 0] + 2 * X[:, 1] > 0)
    >>> av.summary(av.fit(problem, "paper", random_seed=1, progressbar=False))
    pfcvm_lp: pfcvm on data
      kind       approximation
      status     finished
      draws      4 chains of 1000
      variables  bias, sample_weight (30), feature_weight (4), eta (30), w (30)
    ...
    verdict [not judged]: there is no exact posterior to compare it with.
      try: ardvark.fit(problem, "exact")
    On average 2.0 of 4 features have an effect above 0.5 (90 % interval 2 to 2; the
    prior expects ...
    leading features
        effect     odds ratio (90 %) direction P(> 0.5) prior Bayes f.
    x2  +...
    """
    posterior = group(tree, "posterior")
    attrs = tree.attrs
    if "method" not in attrs:
        raise InputError(
            "summary needs a fit made by `ardvark.fit`; this tree does not name its method."
        )
    title = str(attrs["method"])
    if "data" in attrs:
        title += f": {attrs['model']} on {attrs['data']}"
    rows = {"kind": str(attrs["kind"]), "status": str(attrs["status"])}
    if posterior.data_vars:
        sizes = posterior.sizes
        rows["draws"] = f"{sizes['chain']} chains of {sizes['draw']}"
        rows["variables"] = ", ".join(_sized(v) for v in posterior.data_vars.values())
        rows["in memory"] = f"{sum(p.to_dataset().nbytes for p in tree.subtree) / 1e6:.1f} MB"
    if "seconds_run" in attrs:
        rows["seconds"] = f"{attrs['seconds_run']:.1f}, compilation {attrs['seconds_compile']:.1f}"
    if attrs["kind"] == "mcmc" and posterior.data_vars:
        mixed = mixing_of(tree)
        worst = {"worst R-hat": (mixed.rhat, ".3f"), "smallest ESS": (mixed.ess_bulk, ".0f")}
        rows |= {n: f"{w.value:{form}}, of {w.name}" for n, (w, form) in worst.items() if w.name}
    (verdict,) = verdicts({str(attrs["method"]): tree}, None).values()
    first = leading(effects(tree), _LEADING)
    return Summary(title, rows, verdict, selection_text(tree), first)


def _printed(table: pd.DataFrame) -> pd.DataFrame:
    """Return the leading features as short strings, their names in a column."""
    names = [n if len(n) <= _LONGEST else f"{n[: _LONGEST - 1]}…" for n in map(str, table.index)]
    return printed(table).reset_index(drop=True).assign(feature=names).set_index("feature")


def _sized(values: xr.DataArray) -> str:
    """Return a variable's name, and its shape in one draw where it has one."""
    own = [str(n) for dim, n in values.sizes.items() if dim not in ("chain", "draw")]
    return f"{values.name} ({' x '.join(own)})" if own else str(values.name)
