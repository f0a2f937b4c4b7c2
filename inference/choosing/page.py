"""The page of a choice: `choice.html` of `ardvark choose`."""

import numpy as np
import pandas as pd

from ..comparison.report.page import answer
from . import words
from .choice import Choice

_READING = (
    "Left: the log score of each candidate minus that of the best, with two standard errors each "
    "way. Right: its weight in the stack, with the 90 % interval of the Bayesian bootstrap."
)
_NOTE = (
    "'log score' is the mean log probability of the labels that were held out: 0 is perfect, "
    "-0.69 a coin. 'to the best' is the difference to the best candidate with its standard error "
    "over rows; below two of them it may be luck. 'weight' is that in the stack, the mixture of "
    "all predictions with the best log score; the row of the stack is scored by weights that have"
    " not seen the fold."
)


def page(choice: Choice, command: str) -> str:
    """Return the page of a choice; nothing in it refers to another file."""
    return answer(
        f"Candidates for {choice.about['data']}, compared",
        [f"{words.heading(choice).partition(': ')[2]}.", *words.sentences(choice)[1:]],
        choice.plot(),
        _READING,
        {"Scores": (_scores(choice.table), _NOTE)},
        command,
        subject=f"{choice.about['data']}: ",
    )


def _scores(table: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame.from_dict(
        {name: _row(row) for name, row in table.iterrows()}, orient="index"
    ).fillna("")


def _row(row: pd.Series) -> dict[str, str]:
    if np.isnan(row["log_score"]):
        return {"log score": str(row["status"])}
    found = {"log score": f"{row['log_score']:.3f}"}
    first = row["difference"] == row["difference_se"] == 0.0
    lead = f"{row['difference']:+.3f} ± {row['difference_se']:.3f}"
    found["to the best"] = "the best" if first else lead
    if not np.isnan(row["weight"]):
        ends = f"{row['weight_low']:.2f} to {row['weight_high']:.2f}"
        found["weight (90 %)"] = f"{row['weight']:.2f} ({ends})"
    return found | {
        "Brier": f"{row['brier']:.3f}",
        "AUC": f"{row['auc']:.2f}",
        "seconds": f"{row['seconds']:.0f}",
    }
