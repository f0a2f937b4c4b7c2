"""The genes that the papers print as selected: compute what is missing, and draw each table.

    ARDVARK_DATA=... python -m lab genes [PATTERN ...]

It computes the pieces whose names match, in the order of the tables; see `pieces.py`.

A piece is named DATA/MODEL/CHANGE (a posterior) or by its row of the papers' tables (its folds). A
stopped run goes on with the same command.
"""

from fnmatch import fnmatch

from lab.origin import version

from .declared import HERE, TABLES
from .figure import draw
from .often import write_names
from .pieces import AllFolds, Posteriors, pieces, tidy
from .summary import Stored, done, sparse


def main(patterns: list[str]) -> None:
    """Compute what is missing, and say what each piece took."""
    tidy(HERE)
    commit = version()

    def asked(name: str) -> bool:
        return any(fnmatch(name, pattern) for pattern in patterns or ["*"])

    fits = dict.fromkeys(fit for table in TABLES for fit in table.fits if asked(fit.name))
    for fit, (row, _) in Posteriors(HERE, commit).results(list(fits)):
        print(fit.name, row["status"], row["reason"], row.get("seconds", ""), flush=True)
    rows = dict.fromkeys(folds for table in TABLES for folds in table.folds if asked(folds.row))
    for folds in rows:
        found = AllFolds(HERE, commit).run(pieces(folds))
        failed = [row["reason"] for row in found.values() if row["status"] == "failed"]
        print(folds.row, len(found), "folds", *failed[:1], flush=True)
    write_names(HERE)
    stored = Stored.of(HERE)
    for table in TABLES:
        if done(stored, sparse(table)):
            path = HERE / "figures" / f"{table.name}.png"
            path.write_bytes(draw(stored, table)._repr_png_())
