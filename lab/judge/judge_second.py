"""The judge on trial a second time, by a catalogue written after its rules were frozen.

    python -m lab judge_second             all of it (about an hour)
    python -m lab judge_second --stored    report the rows that a stopped run has kept

The trial is that of `lab.judge.judge`, with the same problems, pools of exact draws and measure of
a defect's size. The wrong posteriors are those of `wrong_posteriors_second.py`. Its author had read
neither the rules nor the first catalogue. A part ran under seed 3; the record is of seed 4. Pools
are kept where `lab.judge.judge` keeps its own.
"""

import argparse
from collections import Counter

from lab.judge.judge import APART, CLASSES, Told, Trial, alarm, put, told
from lab.judge.judge import add as add  # the options of a trial
from lab.judge.wrong_posteriors_second import SECOND
from lab.records import HERE
from lab.script import Measured, Part, Row


def notes(rows: list[Row]) -> list[str]:
    """Return what the rows say, in sentences."""
    cases = told(rows)
    judged = [c for c in cases if c.kind not in APART]
    gross = [c for c in judged if c.group == CLASSES[2]]
    trusted = [f"{c.problem}, {c.kind}, {c.draws} draws" for c in gross if c.level == "trust"]
    alarms = [
        f"{r['problem']}, {r['draws']} draws ({str(r['right reason']).split('; ')[0]})"
        for r in rows
        if alarm(r)
    ]
    slow = Counter(c.level for c in cases if c.kind == "slow direction")
    return [
        "The author of this catalogue had read neither the rules nor the bodies of the first one. "
        "Three of its kinds (rows left out, burn-in kept, standardised twice) first chose rows, "
        "starts and factors anew in each fit, so that the size measured with 4000 draws was not "
        "that of the fit with 1000. This was seen in a part that ran under seed 3. The choice now "
        "belongs to the problem. No rule was changed.",
        f"{len(trusted)} of {len(gross)} wrong posteriors of at least twice the limit "
        f"were trusted{_listed(trusted)}",
        f"{len(alarms)} of {len(rows)} right posteriors were condemned{_listed(alarms)}",
        f"The largest size of each kind stays below the limit {_unseen(judged)}.",
        "Chains with one slow direction have the right law and few effective draws. They are "
        "counted apart. Their levels: "
        + ", ".join(f"{level} {count}" for level, count in slow.most_common())
        + ".",
    ]


def _listed(cases: list[str]) -> str:
    return f": {'; '.join(cases)}." if cases else "."


def _unseen(cases: list[Told]) -> str:
    """Return on how many problems each kind's largest size is below the limit, the most first."""
    own = {(c.kind, c.problem): c for c in cases if c.size == 3}
    problems = Counter(kind for kind, _ in own)
    below = Counter(kind for (kind, _), c in own.items() if c.group == CLASSES[0])
    said = [f"on {n} of {problems[kind]} problems ({kind})" for kind, n in below.most_common()]
    return ", ".join(said) or "on no problem"


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


MEASURES = ("inference/fits", "inference/scoring", "inference/verdicts")
PARTS = [Part("The judge on trial a second time", measured)]
