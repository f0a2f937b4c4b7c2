"""Which records are older than the code that they measure, and which say of no version.

    python -m lab check_records             the list (make check-records)
    python -m lab check_records --strict    exit 1 if there is one

A record names the files that it measured, with a hash of the code of each; comments and docstrings
do not count. It is older where one of these files has changed since or is gone.

A script goes on from the rows that it finds. To make a record anew, remove them before you run it:
`results/NAME`; for known_truth also `results/known_truth.csv` in this folder.
"""

import argparse

from lab import records
from lab.records import Record


def main(words: list[str] | None = None) -> int:
    """Print the list."""
    summary, _, rest = (__doc__ or "").partition("\n\n")
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=summary, epilog=rest, formatter_class=formatter)
    parser.add_argument("--strict", action="store_true", help="exit 1 if a record is listed")
    strict = parser.parse_args(words).strict
    found = records.everything()
    older = {name: changed for name, record in found.items() if (changed := record.changed())}
    unknown = [name for name, record in found.items() if not record.code]
    print(f"{len(older)} of {len(found)} records are older than the code that they measure.\n")
    for name, changed in older.items():
        print(f"{name}: {found[name].date}, commit {found[name].commit}")
        print(f"  changed: {', '.join(changed)}")
        print(f"  anew: {anew(found[name])}\n")
    print(f"{len(unknown)} say of no version: nobody noted the code that they measure.\n")
    for name in unknown:
        print(f"{name}: {found[name].date or 'date unknown'}, {anew(found[name])}")
    return int(strict and bool(older or unknown))


def anew(record: Record) -> str:
    """Return the command that makes a record anew; `--stored` would only report it again."""
    return record.command.replace(" --stored", "") or "by hand"
