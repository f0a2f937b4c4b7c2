"""`calibrate`: one call that asks whether a method is right, for any problem and any method."""

import os
from collections.abc import Callable
from typing import Any, Literal, get_args

from ardvark.common.validate import InputError, one_of, unknown_option
from ardvark.models import Problem

from ..contract.sampling import Sampling
from ..fitting import registry
from ..gibbs import sampling as gibbs
from .joint import Kernel, NutsKernel, joint_test
from .ranks import Calibration
from .replicates import BasisLabels
from .sbc import sbc

Test = Literal["sbc", "joint"]
KERNELS: dict[str, Callable[[Problem], Kernel[Any]]] = {
    "nuts": NutsKernel,
    "gibbs": gibbs.make_sampler,
}
"""The methods whose single transition can be tested."""


def calibrate(
    problem: Problem,
    method: str,
    *,
    test: Test = "sbc",
    replicates: int = 100,
    draws: int = 250,
    chains: int = 2,
    random_seed: int = 0,
    basis_labels: BasisLabels = "independent",
    folder: str | os.PathLike[str] | None = None,
    processes: int = 1,
    progressbar: bool = True,
    **options: Any,
) -> Calibration:
    """Ask whether a method is right, on data sets that the problem's own model draws.

    Parameters
    ----------
    problem : Problem
        Gives X, basis and hyperparameters; its labels are not used. A replicate is a fit, so take
        a small one.
    method : str
        A name in `BACKENDS`, one of your own (`register_backend`), or "paper".
    test : {"sbc", "joint"}
        Simulation-based calibration, for whatever returns draws: are true values exchangeable with
        the draws? For an approximation it says where it is wrong, and by how much. Or the joint
        test of a Markov chain's transition, "nuts" or "gibbs", which is exact whether or not the
        chain mixes; `calibration.joint.joint_test` takes a kernel of your own.
    replicates : int
        Simulated data sets; a longer run goes on from a shorter one.
    draws, chains : int
        The size of each fit ("sbc").
    random_seed : int
        Replicate r is a function of (random_seed, r).
    basis_labels : {"independent", "fixed", "rederived"}
        For models whose labels enter the basis; see `sbc`.
    folder : path, optional
        Where replicates are kept, a line each, so that a killed run goes on.
    processes : int
        Replicates that run at once.
    progressbar : bool
    **options
        Options of the method ("sbc").

    Returns
    -------
    Calibration
        `.text()` in words, `.table`, `.plot()`.

    Raises
    ------
    InputError
        The method does not apply, returns no draws, or has no transition to test.
    """
    one_of("test", test, get_args(Test))
    sampling = Sampling(draws=draws, chains=chains, seed=random_seed, progressbar=progressbar)
    shared: dict[str, Any] = {
        "replicates": replicates,
        "basis_labels": basis_labels,  # of the joint test never rederived: checked there
        "folder": folder,
        "processes": processes,
    }
    if test == "sbc":
        return sbc(problem, method, sampling, **shared, **options)
    name = registry.prepare(method, problem, {}).name
    if name not in KERNELS:
        raise InputError(
            f"the joint test looks at one transition of a Markov chain, and {name!r} has none that "
            f"it knows of: {' and '.join(KERNELS)} have. Use test='sbc', or joint_test with a "
            "kernel of your own."
        )
    if options:
        raise unknown_option("the joint test", options, ())
    seed = sampling.seed
    return joint_test(problem, KERNELS[name], random_seed=seed, progressbar=progressbar, **shared)
