"""What was asked for: the hash of everything that decides the draws of a fit."""

import dataclasses
import hashlib
from typing import Any

from ardvark.models import Problem

from ..fits.datatree import as_json, versions


def request(
    problem: Problem | None,
    name: str,
    options: Any,
    *,
    draws: int,
    chains: int,
    seed: int,
    keep: str,
) -> str:
    """Return the hash of everything that decides a fit's draws: a stored fit with it is reused."""
    identity = {
        "fingerprint": "" if problem is None else problem.fingerprint,
        "form": "" if problem is None else problem.form,
        "method": name,
        "options": dataclasses.asdict(options),
        "draws": draws,
        "chains": chains,
        "seed": seed,
        "keep": keep,
        "versions": versions(),
    }
    return hashlib.sha256(as_json(identity).encode()).hexdigest()[:16]
