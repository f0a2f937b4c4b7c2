"""The request: the hash of everything that determines the draws of a fit."""

import dataclasses
import hashlib

from ardvark.common.declared import Settings
from ardvark.models import Problem

from ..contract.sampling import Sampling
from ..fits.datatree import as_json, versions
from .registry import Plan


def request(problem: Problem | None, plan: Plan, sampling: Sampling) -> str:
    """Return the hash of everything that determines a fit's draws; a stored fit is reused by it.

    An option that the draws do not depend on, such as the number of cores, counts as not given.
    """
    options = dataclasses.asdict(plan.options)
    if isinstance(plan.options, Settings):  # a method of a user's own may have others
        options |= {d.name: d.default for d in plan.options.declared() if not d.draws_depend}
    identity = {
        "fingerprint": "" if problem is None else problem.fingerprint,
        "form": "" if problem is None else problem.form,
        "method": plan.name,
        "options": options,
        "draws": sampling.draws,
        "chains": sampling.chains,
        "seed": sampling.seed,
        "keep": sampling.keep,
        "versions": versions(),
    }
    return hashlib.sha256(as_json(identity).encode()).hexdigest()[:16]
