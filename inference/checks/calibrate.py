"""`calibrate`: one call to test whether a method is right, for any problem and any method."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, get_args

from ardvark.common.pieces import Processes
from ardvark.common.validate import InputError, one_of, unknown_option
from ardvark.models import Problem

from ..methods import registry
from ..samplers.gibbs import method as gibbs
from ..target.sampling import Sampling
from ..target.target import Target
from .joint import Kernel, NutsKernel, joint_test
from .own_sbc import own_sbc
from .ranks import Calibration
from .sbc import sbc

if TYPE_CHECKING:
    import pymc as pm

Test = Literal["sbc", "joint"]
KERNELS: dict[str, Callable[[Problem], Kernel[Any]]] = {
    "nuts": NutsKernel,
    "gibbs": gibbs.make_sampler,
}
"""The methods whose single transition can be tested."""


def calibrate(
    problem: "Problem | pm.Model",
    method: str,
    *,
    test: Test = "sbc",
    replicates: int = 100,
    draws: int = 250,
    chains: int = 2,
    random_seed: int = 0,
    folder: str | os.PathLike[str] | None = None,
    processes: Processes = None,
    progressbar: bool = True,
    **options: Any,
) -> Calibration:
    """Test whether a method is right, on data sets simulated from the problem's own model.

    Parameters
    ----------
    problem : Problem or pm.Model
        Gives X, basis and hyperparameters; its labels are not used. Of a model of your own, PyMC
        draws variables and data from its prior. Choose a small problem, because each replicate is
        a fit.
    method : str
        A name in `BACKENDS`, your own method (`register_backend`), or "paper".
    test : {"sbc", "joint"}
        "sbc" is simulation-based calibration, for any method that returns draws. It tests whether
        true values are exchangeable with the draws. For an approximation it shows where it is
        wrong, and by how much. "joint" is the joint test of the transition of a Markov chain,
        "nuts" or "gibbs", which is exact whether or not the chain mixes.
        `ardvark.inference.checks.joint.joint_test` accepts your own kernel.
    replicates : int
        Number of simulated data sets. A longer run continues a shorter one.
    draws, chains : int
        The size of each fit ("sbc").
    random_seed : int
        Replicate r is a function of (random_seed, r).
    folder : path, optional
        Where replicates are kept, one line each, so that an interrupted run can continue.
    processes : int, optional
        How many replicates run at once, each in a process of its own. By default as
        `joblib.parallel_config` says: one, unless it was called.
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
        The method does not apply, returns no draws, or has no transition to test. Or a model of
        your own cannot be drawn from.

    Examples
    --------
    >>> import numpy as np
    >>> import ardvark as av
    >>> X = np.random.default_rng(0).normal(size=(12, 2))
    >>> problem = av.problem("rfvm", X, X[:, 0] > 0)
    >>> found = av.calibrate(problem, "rfvm_vb", replicates=10, draws=50, progressbar=False)
    >>> found.ranks.shape == (10, len(found.names)), found.failed
    (True, 0)
    >>> "feature_weight[0]" in found.table.index
    True
    >>> found.table.columns.tolist()
    ['mean', 'width', 'shift', 'sd_ratio', 'p_value', 'holm']
    >>> print(found.text())
    sbc-rfvm-rfvm_vb: 10 replicates
    ...
    With this many replicates, a shift of ... sd, or an sd that is wrong by a factor of ...,
    is detected half of the time.
    >>> found.plot(most=3).savefig("ranks.png")  # the three quantities with the smallest p-values
    """
    one_of("test", test, get_args(Test))
    sampling = Sampling(draws=draws, chains=chains, seed=random_seed, progressbar=progressbar)
    shared: dict[str, Any] = {
        "replicates": replicates,
        "folder": folder,
        "processes": processes,
    }
    if not isinstance(problem, Problem):
        if test != "sbc":
            raise InputError("of a pm.Model, only test='sbc' is known.")
        return own_sbc(registry.prepare(method, Target(problem), options, sampling), **shared)
    if test == "sbc":
        return sbc(problem, method, sampling, **shared, **options)
    name = registry.prepare(method, problem, {}).name
    if name not in KERNELS:
        raise InputError(
            f"the joint test examines one transition of a Markov chain. It knows those of "
            f"{', '.join(KERNELS)}, but none of {name!r}. Use test='sbc', or call joint_test "
            "with your own kernel."
        )
    if options:
        raise unknown_option("the joint test", options, ())
    seed = sampling.seed
    return joint_test(
        problem, KERNELS[name], random_seed=seed, progressbar=progressbar, called=name, **shared
    )
