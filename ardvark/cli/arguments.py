"""What the words of a command line mean: lists, and name=value pairs."""

import csv
import shlex
import sys

from ardvark.common.validate import InputError


def typed() -> str:
    """Return the command as it was typed."""
    return shlex.join(["ardvark", *sys.argv[1:]])


def words(given: list[str] | None) -> list[str]:
    """Return the words of comma-separated lists; a word that has a comma is in double quotes."""
    try:
        rows = csv.reader(given or (), skipinitialspace=True)
        return [word.strip() for row in rows for word in row if word.strip()]
    except csv.Error as error:
        raise InputError(f"{', '.join(given or ())!r} is not a list A,B,...: {error}.") from None
