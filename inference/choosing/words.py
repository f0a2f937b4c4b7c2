"""A choice in words: what is known, and what the folds cannot tell apart."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from .candidates import BASELINES, PENALISED, SHARE, STACK
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
        f"{choice.about['data']}: {len(choice.asked)} candidates, {rows} rows, each held out "
        f"{times} in {choice.about['folds']} folds"
    )


def rows(choice: Scores) -> list[str]:
    """Return the table in lines of at most 80 characters."""
    names = [_short(str(name)) for name in choice.table.index]
    width = max(map(len, names))
    head = f"{'':<{width}} log score to the best      weight (90 %)       Brier  AUC   sec"
    each = zip(names, choice.table.iterrows(), strict=True)
    return [head, *(_row(name, row, width) for name, (_, row) in each)]


def _row(name: str, row: pd.Series, width: int) -> str:
    if np.isnan(row["log_score"]):
        return f"{name:<{width}} {row['status']}"[:80]
    lead = f"{row['difference']:+.3f} +- {row['difference_se']:.3f}"
    lead = "the best" if row["difference"] == 0.0 and row["difference_se"] == 0.0 else lead
    weight = ""
    if not np.isnan(row["weight"]):
        weight = f"{row['weight']:.2f} ({row['weight_low']:.2f} to {row['weight_high']:.2f})"
    return (
        f"{name:<{width}} {row['log_score']:9.3f} {lead:<16} {weight:<20}"
        f"{row['brier']:5.3f} {row['auc']:4.2f} {row['seconds']:5.0f}"
    )


def sentences(choice: Scores) -> list[str]:
    """Return what the table says."""
    told = [_best(choice), *_plain(choice), _stack(choice), *_guess(choice), *_doubts(choice)]
    return [sentence for sentence in told if sentence]


def _best(choice: Scores) -> str:
    best, N = choice.best, len(choice.y)
    others = [name for name in choice.table.index if name not in (best, STACK)]
    others = [name for name in others if name in choice.names]
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
    zoo = [name for name, asked in kinds.items() if asked not in BASELINES]
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


def _stack(choice: Scores) -> str:
    lead, error = choice.difference(STACK, choice.best)
    has = choice.weights[choice.weights > 0.005].sort_values(ascending=False, kind="stable")
    share = _listed([f"{name} {weight:.2f}" for name, weight in has.items()], 4)
    if has.size == 1:
        return f"The stack is {has.index[0]}: no other candidate has weight."
    side = "above" if lead > 0.0 else "below"
    sure = "" if clear(abs(lead), error) else ", no clear difference"
    return (
        f"The stack ({share}) scores {abs(lead):.3f} +- {error:.3f} {side} {choice.best}{sure}, by "
        "weights that have not seen the fold."
    )


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
    failed = [str(name) for name in choice.fits if name not in choice.names]
    if failed:
        found.append(f"Without scores: {failed[0]} ({choice.fits[failed[0]]['reason']})")
        found[-1] += f", and {len(failed) - 1} more." if len(failed) > 1 else "."
    early = {n: int(table["unconverged"][n]) for n in choice.names if table["unconverged"][n]}
    total = int(choice.folds.shape[1]) * int(choice.about["folds"])
    if early:
        counts = _listed([f"{name} {count} of {total}" for name, count in early.items()])
        most = max(early, key=lambda name: table["error"][name])
        found.append(
            f"Fits that ended before they had converged: {counts}. Their Monte Carlo error moves "
            f"a log score by about {table['error'][most]:.3f} ({most})."
        )
    noisy = [n for n in choice.names if _noisy(choice, n)]
    if noisy:
        found.append(
            f"The Monte Carlo error of {_listed(noisy)} is not small against the differences. "
            "Raise ess and limit."
        )
    return found


def _noisy(choice: Scores, name: str) -> bool:
    """Whether the noise of a candidate's draws may decide whether it is the best."""
    row = choice.table.loc[name]
    error = row["difference_se"]
    if name == choice.best:
        others = [n for n in choice.names if n != name]
        error = min((choice.difference(name, n)[1] for n in others), default=np.inf)
    return bool(row["error"] > max(NOTABLE * error, 1e-12))


def clear(lead: float, error: float) -> bool:
    """Whether a lead is more than `CLEAR` standard errors."""
    return lead > CLEAR * error and lead > 0.0


def _first(choice: Scores, names: Sequence[str]) -> str:
    return str(choice.scores[list(names)].mean().idxmax())


def _short(name: str) -> str:
    return name if len(name) <= _NAME else f"{name[: _NAME - 3]}..."


def _listed(names: Sequence[str], most: int = 8) -> str:
    """Return names as a list in words."""
    shown = list(names[:most])
    if len(names) > most:
        return f"{', '.join(shown)} and {len(names) - most} more"
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))
