"""The page of a choice: `choice.html` of `ardvark choose`."""

from ..comparison.report.page import answer
from . import words
from .choice import Choice

_READING = (
    "The log score of each candidate minus that of the best, with two standard errors each way."
)
_NOTE = (
    "'log score' is the mean log probability of the labels that were held out: 0 is perfect, "
    "-0.69 a coin. 'to the best' is the difference to the best candidate with its standard error "
    "over rows; below two of them it may be luck."
)


def page(choice: Choice, command: str) -> str:
    """Return the page of a choice; nothing in it refers to another file."""
    return answer(
        f"Candidates for {choice.data}, compared",
        [f"{words.heading(choice).partition(': ')[2]}.", *words.sentences(choice)[1:]],
        choice.plot(),
        _READING,
        {"Scores": (words.cells(choice.table), _NOTE)},
        command,
        subject=f"{choice.data}: ",
    )
