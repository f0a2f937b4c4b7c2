"""Why a fit is not what was asked for: a code with its numbers.

Code asks for the code and the numbers, and never for the words (`words.py`). A method may also give
its reason as plain text; the code of that is "told".

A fit stores the words (``attrs["reason"]``) and beside them the code (``attrs["reason_code"]``).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .words import REASONS


@dataclass(frozen=True)
class Reason:
    """Why something was not reached, or what speaks against a fit.

    Attributes
    ----------
    code : str
        In `words.REASONS`.
    numbers : dict
        What its words name: numbers, names of quantities, and reasons that are a part of it.

    Examples
    --------
    >>> from ardvark.inference.target.reasons import Reason
    >>> str(Reason("chains", {"least": 2}))
    'R-hat needs at least 2 chains'
    """

    code: str
    numbers: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return it in words."""
        return REASONS[self.code].format(**self.numbers)


def told(text: str) -> Reason:
    """Return a reason that is given in words, and means nothing to code."""
    return Reason("told", {"text": text})


def joined(reasons: Iterable[Reason]) -> str:
    """Return several reasons in words."""
    return "; ".join(map(str, reasons))
