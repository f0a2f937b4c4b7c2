"""Every word that is said of a fit, with numbers in it: a word that changes is one diff."""

import string

import numpy as np

import ardvark as av
from ardvark.inference.scoring.columns import COLUMNS
from ardvark.inference.scoring.held_out import remarks
from ardvark.inference.scoring.limits import LIMITS
from ardvark.inference.scoring.statistics import STATISTICS
from ardvark.inference.target import words

SAID = {
    "least": 7.0, "limit": 0.25, "value": 1.634, "of": 13, "more": 5, "count": 3, "total": 41,
    "draws": 29, "percent": 62.4, "visible": 0.634, "reference": 2.5, "steps": 600,
    "stage": 1, "stages": 3, "start": 12.5, "end": 8.25, "decrement": 0.3764, "iteration": 11,
    "passes": 2, "step": "STEP", "others": "OTHERS",
}  # fmt: skip
"""Numbers of different sizes, none of them a tie when it is rounded; other fields are their names
in capitals."""


def filled(text):
    """Return words with something in each of their fields."""
    fields = {name for _, name, _, _ in string.Formatter().parse(text) if name}
    given = {name.split("!")[0]: SAID.get(name, name.upper()) for name in fields}
    return text.format(**given)


def test_every_word_of_the_tables(snapshot):
    lines = []
    for name in ("REASONS", "SENTENCES", "REMEDIES", "FOR_ESTIMATOR", "HEADINGS", "MEANINGS"):
        lines += [f"\n{name}", *(f"{k}: {filled(v)}" for k, v in getattr(words, name).items())]
    lines += ["\nSTATISTICS"]
    for name, text in words.STATISTICS.items():
        given = {**SAID, "percent": "62 %", "component": "COMPONENT", "quantity": "QUANTITY"}
        lines.append(f"{name}: {text.format(**given)}")
    lines += ["\nPURPOSES", *(f"{k}: {v}" for k, v in words.PURPOSES.items())]
    lines += ["\nCLAUSES", *(f"{k}: {v}" for k, v in words.CLAUSES.items())]
    lines += ["\nLIMITS"]
    for x in LIMITS:
        where = f"{x.purpose}: {x.statistic} of {', '.join(x.quantities)}"
        limits = f"{x.good:.4g} good, {x.rough:.4g} rough, told {x.order}, needed {x.needed}"
        lines.append(f"{where}, {limits}: {x.why}")
    lines += ["\nCOLUMNS", *(f"{c.name}: {c.heading}, {c.digits}, {c.section}" for c in COLUMNS)]
    assert set(words.STATISTICS) == set(STATISTICS)
    snapshot("words", "\n".join(lines))


def rows(ones, zeros, repeated=(), other=()):
    """Return rows of two classes, of which some repeat the first ones, some with another label."""
    X = np.random.default_rng(0).normal(size=(ones + zeros, 3))
    y = np.arange(ones + zeros) < ones
    X, y = (np.concatenate([v, v[list(repeated)]]) for v in (X, y))
    again = np.concatenate([X, X[list(other)]]), np.concatenate([y, ~y[list(other)]])
    return av.Dataset.from_arrays(*again, name="made")


DATA = {
    "5 rows": rows(2, 3),
    "19 rows": rows(9, 10),
    "20 rows": rows(10, 10),
    "1 of 24": rows(1, 23),
    "4 of 24": rows(4, 20),
    "5 of 24": rows(5, 19),
    "19 of 200": rows(19, 181),
    "3 repeat": rows(11, 13, repeated=[0, 4, 20]),
    "1 repeats with the other label": rows(11, 13, other=[5]),
    "12 of 120": rows(12, 108),
    "2 of 42": rows(2, 40),
}
HELD_OUT = {"5 and 20": rows(5, 20), "12 and 10": rows(12, 10)}


def test_what_is_said_of_rows(snapshot):
    lines = []
    for name, data in DATA.items():
        lines += [f"{name}:", *data.remarks, "beside a comparison:", *remarks(data), ""]
        assert all(remark in av.problem("rfvm", data).describe() for remark in data.remarks)
    for name, test in HELD_OUT.items():
        lines += [f"{name} left out:", *remarks(rows(30, 40), test)]
    snapshot("rows", "\n".join(lines))


def test_every_reason_is_given_by_the_library():
    """A code that nobody gives is a word that nobody reads."""
    from pathlib import Path

    rooms = Path(__file__).parents[1] / "inference"
    text = "\n".join(path.read_text() for path in rooms.rglob("*.py") if path.name != "words.py")
    assert [code for code in words.REASONS if f'"{code}"' not in text] == []
