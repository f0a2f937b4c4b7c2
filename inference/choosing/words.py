"""A choice in words: what is known, and what the folds cannot tell apart."""

import textwrap
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from .candidates import SHARE
from .penalised import PENALISED
from .scores import Scores

CLEAR = 2.0
"""Standard errors above which a difference is said to be one."""
NOTABLE = 0.5
"""Monte Carlo errors above this share of the standard error of a difference are told."""
_NAME = 16  # characters of a name in the table


def heading(choice: Scores) -> str:
    """Return what was compared."""
    rows, repeats = choice.folds.shape
    times = "once" if repeats == 1 else f"{repeats} times"
    return (
        f"{choice.data}: {len(choice.asked)} candidates, {rows} rows, each held out "
        f"{times} in {choice.folds.max() + 1} folds"
    )


def cells(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table in words."""
    leads = zip(table["difference"], table["difference_se"], strict=True)
    shown = {
        "log score": table["log_score"].map("{:.3f}".format),
        "to the best": ["the best" if d == e == 0.0 else f"{d:+.3f} +- {e:.3f}" for d, e in leads],
        "Brier": table["brier"].map("{:.3f}".format),
        "AUC": table["auc"].map("{:.2f}".format),
        "seconds": table["seconds"].map("{:.0f}".format),
    }
    frame = pd.DataFrame(shown, index=table.index.rename(None))
    frame.loc[table["log_score"].isna(), :] = ["failed", "", "", "", ""]
    return frame


def text(choice: Scores) -> str:
    """Return the table and the sentences, in lines of at most 80 characters."""
    shown = cells(choice.table)
    shown.index = shown.index.map(lambda name: name[:_NAME])
    wrapper = textwrap.TextWrapper(80, break_long_words=False, break_on_hyphens=False)
    lines = [heading(choice), *shown.to_string().splitlines(), ""]
    return "\n".join([*lines, *map(wrapper.fill, sentences(choice))])


def sentences(choice: Scores) -> list[str]:
    """Return what the table says."""
    return [_best(choice), *_plain(choice), *_guess(choice), *_doubts(choice)]


def _best(choice: Scores) -> str:
    best, N = choice.best, len(choice.y)
    others = [name for name in choice.table.index if name != best and name in choice.names]
    if not others:
        return f"{best} is the only candidate that has a log score."
    worse = [name for name in others if clear(*choice.difference(best, name))]
    alike = [name for name in others if name not in worse]
    text = f"Best on the rows held out: {best}. "
    if not alike:
        return f"{text}All others are worse by more than {CLEAR:g} standard errors."
    text += f"These {N} rows cannot tell it apart from {_listed(alike)}"
    return f"{text}; worse: {_listed(worse)}." if worse else f"{text}."


def _plain(choice: Scores) -> list[str]:
    """Return whether a model of the zoo is ahead of plain logistic regression."""
    kinds = {name: choice.asked[name] for name in choice.names}
    plain = [name for name, asked in kinds.items() if asked in tuple(PENALISED)]
    zoo = [name for name, asked in kinds.items() if isinstance(asked, Mapping)]
    if not plain or not zoo:
        return []
    one, other = _first(choice, zoo), _first(choice, plain)
    lead, error = choice.difference(one, other)
    those = f"penalised logistic regression ({other}{', the best of it' if len(plain) > 1 else ''})"
    size = f"{abs(lead):.3f} +- {error:.3f}"
    if clear(lead, error):
        return [f"{one} predicts better than {those}, by {size} in log score."]
    if clear(-lead, error):
        return [f"No model of the zoo predicts as well as {those}: {one} is behind it by {size}."]
    side = "ahead" if lead > 0.0 else "behind"
    return [
        f"No model of the zoo clearly beats {those}: {one} is {side} by {size}, which may be luck."
    ]


def _guess(choice: Scores) -> list[str]:
    """Return a warning if nothing is better than the share of the classes."""
    shares = [name for name in choice.names if choice.asked[name] == SHARE]
    if not shares or choice.best in shares:
        return [f"Nothing predicts better than {SHARE}: no feature helps."] if shares else []
    if clear(*choice.difference(choice.best, shares[0])):
        return []
    return [f"Even {choice.best} does not clearly predict better than {shares[0]}, a guess."]


def _doubts(choice: Scores) -> list[str]:
    """Return what the computation lacks: fits that failed or ended early, and their noise."""
    table, found = choice.table, []
    failed = table.loc[table["log_score"].isna(), "status"]
    if len(failed):
        more = f", and {len(failed) - 1} more" if len(failed) > 1 else ""
        reason = failed.iloc[0].removeprefix("failed: ")
        found.append(f"Without scores: {failed.index[0]} ({reason}){more}.")
    early = table[(table["unconverged"] > 0) & table["log_score"].notna()]
    if len(early):
        total, most = len(choice.fits) // len(table), str(early["error"].idxmax())
        counts = _listed([f"{n} {k} of {total}" for n, k in early["unconverged"].items()])
        found.append(
            f"Fits that ended before they had converged: {counts}. Their Monte Carlo error moves "
            f"a log score by about {early['error'][most]:.3f} ({most})."
        )
    noisy = [name for name in choice.names if _noisy(choice, name)]
    if noisy:
        found.append(
            f"The Monte Carlo error of {_listed(noisy)} is not small against the differences. "
            "Raise ess and limit."
        )
    return found


def _noisy(choice: Scores, name: str) -> bool:
    """Whether the noise of a candidate's draws may decide whether it is the best."""
    others = choice.names if name == choice.best else [choice.best]
    errors = [choice.difference(name, other)[1] for other in others if other != name]
    return bool(choice.table["error"][name] > max(NOTABLE * min(errors, default=np.inf), 1e-12))


def clear(lead: float, error: float) -> bool:
    """Whether a lead is more than `CLEAR` standard errors."""
    return lead > CLEAR * error and lead > 0.0


def _first(choice: Scores, names: Sequence[str]) -> str:
    return str(choice.scores[list(names)].mean().idxmax())


def _listed(names: Sequence[str], most: int = 8) -> str:
    """Return names as a list in words."""
    shown = list(names[:most])
    if len(names) > most:
        return f"{', '.join(shown)} and {len(names) - most} more"
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))
