"""What a fit may be used for: the registry of purposes, one declaration each.

To add one, put a `Purpose` into `PURPOSES`, the rules that decide it into `scoring/limits.py` and
its words into `target/words.py`; verdicts, their sentences, tables and the page follow.

A `pm.Model` of one's own has variables whose roles are not known: neither features to rank nor
labels to predict. Of its fits only the parameters are judged.
"""

from dataclasses import dataclass

from ...scoring.limits import Word
from ...target import words


@dataclass(frozen=True, kw_only=True)
class Purpose:
    """One thing that a reader does with a posterior.

    Attributes
    ----------
    name : str
    within : str
        Another purpose. If both have the same word, the sentence names only that one.
    main : bool
        Whether a reader comes for it: a fit is not to be used if no purpose of this kind can be.
    """

    name: str
    within: str = ""
    main: bool = False

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


PURPOSES: dict[str, Purpose] = {
    p.name: p
    for p in (
        Purpose(name="predictions", main=True),
        Purpose(name="means"),
        Purpose(name="uncertainty"),
        Purpose(name="parameters"),
        Purpose(name="ranking", main=True),
        Purpose(name="selection", within="ranking"),
    )
}
"""Every purpose, by name, in the order of the words."""
OF_OWN = ("parameters",)
"""Those of a fit of a `pm.Model` of one's own."""
