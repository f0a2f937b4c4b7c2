"""A panel in words: at most 32 lines of 80 columns, most often 25."""

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ardvark.data.columns import listed

WIDTH = 80
_ROWS, _LONGEST = 6, 18
"""Columns that have a line each, and characters of a name."""


@dataclass(frozen=True, eq=False)
class Words:
    """What is said of a panel: the arguments are as in `Panel`.

    Attributes
    ----------
    what : str
        Model and data.
    D : int
        The number of features.
    always : tuple of str
        Columns that every panel has.
    size : int or None
        What members and coefficients are about.
    members, coefficients : pandas.DataFrame or None
        None where there is no panel to describe.
    """

    what: str
    D: int
    always: tuple[str, ...]
    table: pd.DataFrame
    size: int | None
    suggested: int | None
    members: pd.DataFrame | None
    coefficients: pd.DataFrame | None
    selected_by_p_active: tuple[str, ...] | None
    not_converged: tuple[str, ...]
    performance: pd.DataFrame
    few_events: tuple[str, ...] = ()

    def text(self) -> str:
        """Return sizes, members and what selection by P(effect) gives."""
        first, *others = self.sentences()
        lines = [*_filled(first, 3), "", *self._sizes()]
        if self.members is not None and self.coefficients is not None:
            lines += ["", *self._panel(self.members, self.coefficients)]
        lines += ["", *_filled(others[0], 2)]
        return "\n".join([*lines, *(line for words in others[1:] for line in _filled(words, 2))])

    def sentences(self) -> list[str]:
        """Return what was found, what selection by P(effect) gives, and what is to be doubted."""
        which = ", ".join(self.not_converged)
        doubts = [f"Refits that have not converged, so doubt their scores: {which}."]
        known = [*self._performance(), *self._formula(), *self._left_out()]
        known += doubts if which else []
        if self.few_events:
            known.append(f"Fewer than three rows of a class in {listed(self.few_events, 8)}.")
        return [self._first(), self._by_p_active(), *known]

    def _performance(self) -> list[str]:
        """Return what a paper says of the panel, or else of the full posterior."""
        who = str(self.performance.index[0][0])
        told = []
        for where, row in self.performance.loc[who].iterrows():
            numbers = {"AUC": "auc", "Brier score": "brier", "calibration slope": "slope"}
            there = {w: n for w, n in numbers.items() if not np.isnan(row[n])}
            said = ", ".join(f"{w} {_number(row, n)}" for w, n in there.items())
            told.append(f"{who}, {where}: {said}")
        return [f"{'; '.join(told)}."] if told else []

    def _formula(self) -> list[str]:
        """Return how the formula of the coefficients predicts, without an average over draws."""
        known = self.table["formula"]
        if not self.size or not {0, self.size} <= set(known.index):
            return []
        score, gain = known[self.size], known[self.size] - known[0]
        return [
            f"As one formula, size {self.size} has log score {score:.3f}: {gain:+.3f} to size 0."
        ]

    def _left_out(self) -> list[str]:
        """Return the log scores of rows that the fit has not seen, beside those of the folds."""
        known = self.table.attrs
        if "test_rows" not in known:
            return []
        scores: dict[str, tuple[Any, str]] = {}
        if self.size in self.table.index:
            scores[f"size {self.size}"] = self.table.loc[self.size], "log_score"
        scores["the full posterior"] = known, "full"
        told = ", ".join(
            f"{who} {measured(of, f'test_{name}')} (folds {of[name]:.3f})"
            for who, (of, name) in scores.items()
        )
        return [f"Log score on {known['test_rows']} rows left out of the fit: {told}."]

    def _first(self) -> str:
        full = f"the full posterior (log score {self.table.attrs['full']:.3f})"
        if self.suggested is None:
            found = f"no panel of up to {self.table.index[-1]} of {self.D} features predicts"
        elif self.suggested == 0:
            alone = f"{listed(self.always, 3)} alone predict" + "s" * (len(self.always) == 1)
            without = alone if self.always else "a panel without any predicts"
            found = f"none of {self.D} features is needed: {without}"
        else:
            verb = "predicts" if self.suggested == 1 else "predict"
            found = f"{self.suggested} of {self.D} features {verb}"
        return (
            f"Panel of {self.what}: {found} as well as {full} and any larger panel, within one "
            "standard error."
        )

    def _sizes(self) -> list[str]:
        """Return the table of sizes: those around the suggested one, and the last."""
        known = list(self.table.index)
        at = len(known) - 1 if self.suggested is None else known.index(self.suggested)
        shown = known if len(known) <= 7 else [*known[max(0, at - 3) :][:5], known[-1]]
        head = f"{'size':>4} {'adds':<{_LONGEST}} {'log score':>9} {'difference':>10} {'se':>6}"
        lines = [head]
        for size in dict.fromkeys(shown):
            row = self.table.loc[size]
            mark = "  suggested" if size == self.suggested else ""
            lines.append(
                f"{size:>4} {_short(self._adds(size)):<{_LONGEST}} {row['log_score']:>9.3f} "
                f"{row['difference']:>+10.3f} {row['se']:>6.3f}{mark}"
            )
        return lines

    def _adds(self, size: int) -> str:
        """Return the feature that a size adds; for size 0, the columns that are always in."""
        always = f"({', '.join(self.always)})" if self.always else ""
        return str(self.table.loc[size, "feature"]) or always

    def _panel(self, members: pd.DataFrame, coefficients: pd.DataFrame) -> list[str]:
        """Return the coefficients, and how sure each member is."""
        towards, unit = (coefficients.attrs[name] for name in ("towards", "unit"))
        about = (
            f"Coefficients of size {self.size} are a rule that predicts, in log odds of {towards!r}"
            f" per unit. Effects in the full posterior, with 90 % intervals, are in {unit}:"
        )
        lines = _filled(about, 3)
        lines.append(f"{'':<{_LONGEST}} {'coef':>9} {'in posterior':>19} {'folds':>6}  or instead")
        shares = {str(n): f"{100 * share:.0f} %" for n, share in members["chosen"].items()}
        others = coefficients.drop(index=["intercept", *members.index])
        rows = [(str(n), row) for part in (members, others) for n, row in part.iterrows()]
        lines += [_line(name, row, shares.get(name, "always")) for name, row in rows[:_ROWS]]
        if len(rows) > _ROWS:
            lines.append(f"... and {len(rows) - _ROWS} more")
        return [*lines, *(_line(str(n), row, "") for n, row in coefficients.head(1).iterrows())]

    def _by_p_active(self) -> str:
        chosen = self.selected_by_p_active
        if chosen is None:
            return "This fit has no P(effect) to compare with."
        if not chosen:
            return "No feature has P(effect) above one half."
        listed = ", ".join(chosen[:8]) + (", ..." if len(chosen) > 8 else "")
        return f"P(effect) above one half: {len(chosen)} of {self.D} features ({listed})."


def measured(of: Mapping[Any, Any] | pd.Series, name: str) -> str:
    """Return a number by its name, with its standard error where there is one."""
    error = of[f"{name}_se"]
    return f"{of[name]:.3f}" + ("" if np.isnan(error) else f" ± {error:.3f}")


def _number(of: pd.Series, name: str) -> str:
    error = of[f"{name}_se"]
    return f"{of[name]:.2f}" + ("" if np.isnan(error) else f" ± {error:.2f}")


def _filled(words: str, most: int) -> list[str]:
    return textwrap.wrap(words, WIDTH, max_lines=most, placeholder=" ...")


def _line(name: str, row: pd.Series, share: str) -> str:
    low, high = row["posterior_low"], row["posterior_high"]
    interval = "" if np.isnan(low) else f"{low:.3g} to {high:.3g}"
    words = f"{_short(name):<{_LONGEST}} {row['coefficient']:>9.3g} {interval:>19} {share:>6}"
    others = str(row.get("alternatives", ""))
    left = WIDTH - len(words) - 2
    if not others or left < 5:
        return words.rstrip()
    return f"{words}  {others if len(others) <= left else others[: left - 3] + '...'}"


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 3]}..."
