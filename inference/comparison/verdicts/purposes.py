"""What a fit may be used for: the registry of purposes, one declaration each.

To add one, declare a `Purpose` here and put it into `PURPOSES`; verdicts, their sentences, tables
and the page follow. What it rests on are limits of statistics: those that name it
(`scoring/statistics/`), and those that it brings.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...scoring.statistic import Limit, Statistic, Word
from ...scoring.statistics import STATISTICS


@dataclass(frozen=True, kw_only=True)
class Purpose:
    """One thing that a reader does with a posterior.

    Attributes
    ----------
    name : str
    meaning : str
        What is read off the fit for this purpose.
    quoted : str
        What the sentence says may be reported; "" if `said` has its own clauses.
    said : dict of str
        By word, a clause of the sentence, before what may be reported.
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
    meaning: str
    quoted: str = ""
    said: Mapping[Word, str] = field(default_factory=dict)
    within: str = ""
    capped_with: tuple[str, ...] = ()
    main: bool = False
    limits: Mapping[str, Limit] = field(default_factory=dict)

    def rests_on(self) -> list[tuple[Statistic, Limit]]:
        """Return every limit that decides its word, each with its statistic."""
        found = [(s, s.limits[self.name]) for s in STATISTICS.values() if self.name in s.limits]
        found += [(s, self.limits[s.name]) for s in STATISTICS.values() if s.name in self.limits]
        return found


PURPOSES: dict[str, Purpose] = {
    p.name: p
    for p in (
        Purpose(
            name="predictions",
            meaning="P(y = 1), and the class",
            main=True,
            said={
                "good": "use its predictions",
                "rough": "use its predicted classes, not its probabilities",
                "bad": "do not use its predictions",
            },
        ),
        Purpose(
            name="means",
            meaning="posterior means, in the posterior's own sds",
            quoted="its means",
        ),
        Purpose(
            name="uncertainty",
            meaning="intervals, sds, the joint distribution",
            quoted="its intervals",
        ),
        Purpose(
            name="parameters",
            meaning="bias, scales and precisions: what the model has besides weights",
            quoted="its bias and scales",
        ),
        Purpose(
            name="ranking", meaning="which features come first", quoted="its ranking", main=True
        ),
        Purpose(
            name="selection",
            meaning="P(effect), and the features selected by it",
            quoted="its P(effect)",
            within="ranking",  # without a reliable order there is no reliable set
        ),
    )
}
"""Every purpose, by name, in the order of the words."""
