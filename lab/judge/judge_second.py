"""The judge on trial a second time, by a catalogue written after its rules were frozen.

    python -m lab judge_second             all of it (half an hour)
    python -m lab judge_second --stored    report the rows that a stopped run has kept

The trial is that of `lab.judge.judge`, with the same problems, pools of exact draws and measure of
a defect's size. The wrong posteriors are those of `wrong_posteriors_second.py`. Its author had read
neither the rules nor the first catalogue. A part ran under seed 3; the record is of seed 4. Pools
are kept where `lab.judge.judge` keeps its own.
"""

import argparse

from lab.judge.judge import MEASURES as MEASURES  # the same rules
from lab.judge.judge import add as add  # the options of a trial
from lab.judge.judge import put
from lab.judge.trial import Trial
from lab.judge.wrong_posteriors_second import SECOND
from lab.records import HERE
from lab.script import Measured, Part

TRIAL = Trial(
    SECOND,
    few=(),
    quick=("tempered", "slow direction"),
    figure=HERE / "figures" / "judge_second.png",
    note=(
        "The author of this catalogue had read neither the rules nor the bodies of the first one. "
        "Three of its kinds (rows left out, burn-in kept, standardised twice) first chose rows, "
        "starts and factors anew in each fit, so that the size measured with 4000 draws was not "
        "that of the fit with 1000. This was seen in a part that ran under seed 3. The choice now "
        "belongs to the problem. No rule was changed. Chains with one slow direction have the "
        "right law and few effective draws; they are counted apart."
    ),
)


def measured(given: argparse.Namespace) -> Measured:
    """Put the judge on trial a second time."""
    given.pools = given.work.parent / "judge" / "pools"
    return put(TRIAL, given)


PARTS = [Part("The judge on trial a second time", measured)]
