"""Where the chains of a `pm.Model` of one's own start: far apart, after a short search for modes.

Four chains that start near one point end in the same one of two equal modes once in eight runs.
Then no diagnostic can tell that there is another one: R-hat compares the chains, and each has its
law. So `SCOUTS` short runs go first, and the chains start where the ends of these lie farthest
apart. Of two modes with equal basins one is missed once in 2^19 runs, one whose basin has a tenth
of the starts once in eight. The models of the zoo have samplers that were measured on them, and
need no scouts.
"""

from dataclasses import replace

import numpy as np

from ...target.backend import FitFailed, Job
from ...target.chains import FREE, Continuing
from ...target.length import Length
from ...target.target import Target

SCOUTS = 20
STEPS = 100
"""Transitions of each scout, all of which adapt its steps."""
ACCEPT = 0.9
"""Their target acceptance, which is given so that none runs again with smaller steps."""


def scouted(nuts: Continuing, target: Target, job: Job) -> dict[str, np.ndarray] | None:
    """Return unconstrained vectors (chain, P) that chains go on from; None if a scout cannot start.

    `nuts` is the method of that name, which the scouts are chains of.

    Examples
    --------
    >>> import pymc as pm
    >>> from ardvark.inference.target.backend import Job
    >>> from ardvark.inference.target.target import Target
    >>> from ardvark.inference.samplers.gradient import nuts
    >>> from ardvark.inference.samplers.gradient.starts import scouted
    >>> with pm.Model() as model:
    ...     x = pm.NormalMixture("x", w=[0.5, 0.5], mu=[-10.0, 10.0], sigma=1.0)
    >>> found = scouted(nuts, Target(model), Job(draws=1, chains=2, seed=0, progressbar=False))
    >>> sorted((found["unconstrained"][:, 0] > 0.0).tolist())  # one chain in each mode
    [False, True]
    """
    seed = int(np.random.SeedSequence([job.seed, SCOUTS]).generate_state(1)[0])
    scouts = replace(job, chains=SCOUTS, seed=seed)
    options = nuts.Options(tune=STEPS, target_accept=ACCEPT)
    try:
        with nuts.chains(target, options, scouts, Length(limit=1, room=1), None) as chains:
            with job.report.stage("looking for modes"):
                chains.advance(1, 1, lambda *_: None)
            ends = chains.last()[FREE]
    except FitFailed:
        return None
    return {FREE: ends[apart(ends, job.chains)]}


def apart(points: np.ndarray, count: int) -> list[int]:
    """Return which points (S, P) lie far apart: each is the farthest from those before it.

    Distances are in standard deviations of each coordinate. More points than there are repeat them.

    Examples
    --------
    >>> import numpy as np
    >>> from ardvark.inference.samplers.gradient.starts import apart
    >>> apart(np.array([[0.0], [0.1], [5.0], [0.2], [5.1]]), 2)
    [4, 0]
    """
    sd = points.std(axis=0)
    z = (points - points.mean(axis=0)) / np.where(sd > 0.0, sd, 1.0)
    chosen = [int(np.square(z).sum(axis=1).argmax())]
    nearest = np.square(z - z[chosen[0]]).sum(axis=1)
    while len(chosen) < count:
        chosen.append(int(nearest.argmax()))
        nearest = np.minimum(nearest, np.square(z - z[chosen[-1]]).sum(axis=1))
    return chosen
