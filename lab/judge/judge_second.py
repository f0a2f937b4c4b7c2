"""The judge on trial a second time, by a catalogue written after its rules were frozen.

    python -m lab.judge.judge_second --seed 6    (half an hour; a run that was stopped goes on)

The trial is that of `judge.py`, with the same problems, pools of exact draws and measure of a
defect's size. The wrong posteriors are those of `wrong_posteriors_second.py`. Its author had read
neither the rules nor the bodies of the first catalogue.

Three of its kinds (rows left out, burn-in kept, standardised twice) first chose rows, starts and
factors anew in each fit, so that the size measured with 4000 draws was not that of the fit with
1000. This was seen in a part that ran under seed 3. The choice now belongs to the problem. No rule
was changed. Chains with one slow direction have the right law and few effective draws; they are
counted apart.
"""

from lab.judge.judge import run, seed_of
from lab.judge.trial import Trial
from lab.judge.wrong_posteriors_second import SECOND

TRIAL = Trial(SECOND)


def main(words: list[str] | None = None) -> None:
    """Put the judge on trial a second time."""
    run("judge_second", TRIAL, seed_of(words, __doc__ or ""))


if __name__ == "__main__":
    main()
