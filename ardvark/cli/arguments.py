"""What the words of a command line mean: lists, and name=value pairs."""

import csv
import json
import shlex
import sys
from typing import Any

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


def pairs(given: list[str] | None, flag: str) -> dict[str, Any]:
    """Return {name: value} of name=value words; a value is JSON, or else a plain word."""
    found: dict[str, Any] = {}
    for word in given or ():
        name, sign, value = word.partition("=")
        if not sign or not name:
            raise InputError(f"{flag} {word!r}: expected name=value.")
        try:
            found[name] = json.loads(value)
        except json.JSONDecodeError:
            found[name] = value
    return found
