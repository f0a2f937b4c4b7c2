"""Which rows of the papers' tables are computed only where they are asked for by name."""

from fnmatch import fnmatch

from lab.papers import competitors

COSTLY = (
    "rfvm-3-4/prostate_ge/rfvm_vb*",
    "*exact*",
    "*-dense",
    "rfvm-3-4/*/rfvm_vb-e*",
    "jcfo-1/*/*-filled",
    "jcfo-1/*/*-open",
    "jcfo-1-five/*",
    "jcfo-1/*/sparse_probit*-printed",
    "fsklr-*/fsklr-literal",
    "fsklr-*/fsklr-whole*",
    "fsklr-3/ionosphere/*-matched",
    "fsklr-3/messidor/*",
    "pfcvm-1/waveform/*",
    *competitors.ASKED,
)
"""Patterns of rows that are computed when they are asked for by name: together they take a day."""


def costly(name: str) -> bool:
    """Say whether a row is left out unless it is asked for."""
    return any(fnmatch(name, pattern) for pattern in COSTLY)
