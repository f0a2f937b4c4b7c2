"""The judge on trial a second time, by a catalogue written after its rules were frozen.

    python -m benchmarks.judge_second             all of it (about an hour)
    python -m benchmarks.judge_second --stored    report the rows that a stopped run has kept

The trial is that of `benchmarks.judge`, with the same problems, pools of exact draws and measure of
a defect's size. The wrong posteriors are those of `wrong_posteriors_second.py`. Its author had read
neither the rules nor the first catalogue, and it is run once, under one seed. Pools are kept where
`benchmarks.judge` keeps its own.
"""

import argparse

from benchmarks.judge import Trial, options, put
from benchmarks.records import HERE
from benchmarks.script import Measured, Part, Row, run
from benchmarks.wrong_posteriors_second import SECOND


def notes(rows: list[Row]) -> list[str]:
    """Return what the record says in words."""
    return [
        "The author of this catalogue had read neither the rules nor the first catalogue. It was "
        "run once.",
    ]


TRIAL = Trial(
    SECOND,
    few=(),
    quick=("tempered", "slow direction"),
    figure=HERE / "figures" / "judge_second.png",
    notes=notes,
)


def measured(given: argparse.Namespace) -> Measured:
    """Put the judge on trial a second time."""
    given.pools = given.work.parent / "judge" / "pools"
    return put(TRIAL, given)


PARTS = [Part("The judge on trial a second time", measured)]


def main(words: list[str] | None = None) -> None:
    run(__file__, PARTS, words, options)


if __name__ == "__main__":
    main()
