"""What a fit may be used for: the registry of purposes, one declaration each.

To add one, put a `Purpose` into `PURPOSES` and its words into `target/words.py`; verdicts, their
sentences, tables and the page follow. What it rests on are limits of statistics: those that name it
(`scoring/statistics/`), and those that it brings.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...scoring.statistic import Limit, Statistic, Word
from ...scoring.statistics import STATISTICS
from ...target import words


@dataclass(frozen=True, kw_only=True)
class Purpose:
    """One thing that a reader does with a posterior.

    Attributes
    ----------
    name : str
    within : str
        Another purpose. If both have the same word, the sentence names only that one.
    capped_with : tuple of str
        Other purposes. A finding that caps one of them caps this one as well.
    main : bool
        Whether a reader comes for it: a fit is not to be used if no purpose of this kind can be.
    limits : dict of Limit
        By statistic: limits in addition to those that the statistics declare.
    """

    name: str
    within: str = ""
    capped_with: tuple[str, ...] = ()
    main: bool = False
    limits: Mapping[str, Limit] = field(default_factory=dict)

    @property
    def meaning(self) -> str:
        """What is read off the fit for this purpose."""
        return words.PURPOSES[self.name]["meaning"]

    @property
    def quoted(self) -> str:
        """What the sentence says may be reported; "" if the purpose has clauses of its own."""
        return words.PURPOSES[self.name].get("quoted", "")

    def said(self, word: Word) -> str | None:
        """Return its own clause of a word, None if it has none."""
        return words.PURPOSES[self.name].get(word)

    def rests_on(self) -> list[tuple[Statistic, Limit]]:
        """Return every limit that decides its word, each with its statistic."""
        found = [(s, s.limits[self.name]) for s in STATISTICS.values() if self.name in s.limits]
        found += [(s, self.limits[s.name]) for s in STATISTICS.values() if s.name in self.limits]
        return found


PURPOSES: dict[str, Purpose] = {
    p.name: p
    for p in (
        Purpose(name="predictions", main=True),
        Purpose(name="means"),
        Purpose(name="uncertainty"),
        Purpose(name="parameters"),
        Purpose(name="ranking", main=True),
        # without a reliable order there is no reliable set
        Purpose(name="selection", within="ranking"),
    )
}
"""Every purpose, by name, in the order of the words."""
