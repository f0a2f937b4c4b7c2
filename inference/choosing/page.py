"""The page of a choice: `choice.html` of `ardvark choose`."""

from ..comparison.report.page import answer
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
    said = [f"{choice.heading}.", *choice.sentences()[1:]]
    title, tables = f"Candidates for {choice.data}, compared", {"Scores": (choice.cells(), _NOTE)}
    subject = f"{choice.data}: "
    return answer(title, said, choice.plot(), _READING, tables, command, subject=subject)
