"""The registry: every method by name, which of them apply to a problem, and with which options."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal

from ardvark.common.declared import Settings
from ardvark.common.pieces import Processes, elsewhere
from ardvark.common.registry import Registry
from ardvark.common.store import identity
from ardvark.common.validate import InputError, named, one_of, unknown_option
from ardvark.models import Problem

from ..fits.datatree import versions
from ..samplers.exact.rule import SAMPLERS
from ..target.backend import KINDS, Backend
from ..target.sampling import Sampling
from ..target.target import Target

MethodName = Literal[
    "exact",
    "nuts",
    "gibbs",
    "advi",
    "laplace",
    "pfcvm_lp",
    "pfcvm_em",
    "jcfo_em",
    "fsklr_savb",
    "rfvm_vb",
    "paper",
]
"""What a person may type for `method`, so that editors complete it."""

BACKENDS = Registry[Backend](
    __package__,
    {
        "exact": "..samplers.exact.method",
        "nuts": "..samplers.gradient.nuts",
        "gibbs": "..samplers.gibbs.method",
        "advi": "..approximations.advi",
        "laplace": "..approximations.laplace",
        "pfcvm_lp": "..papers.pfcvm.lp",
        "pfcvm_em": "..papers.pfcvm.em",
        "jcfo_em": "..papers.jcfo.em",
        "fsklr_savb": "..papers.fsklr.savb",
        "rfvm_vb": "..papers.rfvm.vb",
    },
)
"""Every method, by name."""
_BUILT_IN = (*BACKENDS, "paper")


def register_backend(module: Any) -> None:
    """Add a method of your own: a module or object with the names of `backend.Backend`.

    ABOUT may be absent. A method without options has `Options = Settings`. Registering the same
    NAME again replaces your earlier method, so that a notebook's cell can run twice.

    Raises
    ------
    InputError
        A name is missing, KIND is unknown, or NAME is that of a method of the package.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> import ardvark as av
    >>> from ardvark.inference import Result, Settings
    >>> def fit(target, options, job):
    ...     drawn = [target.zoo_problem.simulate(rng) for rng in job.generators()]
    ...     names = ("bias", "sample_weight", "feature_weight", "eta")
    ...     return Result({name: np.array([[d[name]] for d in drawn]) for name in names})
    >>> prior = SimpleNamespace(NAME="prior", KIND="approximation", Options=Settings, fit=fit)
    >>> prior.supports = lambda target: None  # it applies to every problem
    >>> av.inference.register_backend(prior)
    >>> problem = av.problem("rvm", [[0.0], [1.0], [2.0]], [0, 0, 1])
    >>> tree = av.fit(problem, "prior", draws=1, chains=2, progressbar=False)
    >>> tree["posterior"]["eta"].shape
    (2, 1, 3)
    >>> del av.inference.BACKENDS["prior"]
    """
    missing = [n for n in ("NAME", "KIND", "Options", "supports", "fit") if not hasattr(module, n)]
    if missing:
        raise InputError(
            f"a method needs NAME, KIND, Options, supports and fit; missing: {', '.join(missing)}."
        )
    one_of("KIND", module.KIND, KINDS)
    if module.NAME in _BUILT_IN:
        raise InputError(f"the package already has a method {module.NAME!r}; choose another NAME.")
    BACKENDS[module.NAME] = module


def resolve(method: str, problem: Problem | None) -> str:
    """Return the method's name; "paper" is the algorithm of the paper on the problem's model."""
    method = named("method", method, [*BACKENDS, "paper"], "`ardvark methods` lists them.")
    if method == "paper":
        if problem is None:
            raise InputError(
                'method "paper" needs a problem made by ardvark.problem, got a bare pm.Model.'
            )
        method = problem.spec.paper_method
        if method not in BACKENDS:
            raise InputError(
                f"{problem.spec.name} has no paper algorithm in the zoo"
                f"{f' ({method}) yet' if method else ''}. "
                f"Use one of {', '.join(applicable(problem))}."
            )
    return method


def refusals(problem: Problem) -> dict[str, str | None]:
    """Return for each method why it does not apply to a problem, or None; no model is built."""
    target = Target(problem)
    return {name: backend.supports(target) for name, backend in BACKENDS.items()}


def applicable(problem: Problem) -> list[str]:
    """Return the methods that apply to a problem: the generic ones, and its own algorithm."""
    return [name for name, why_not in refusals(problem).items() if why_not is None]


def without_own(problem: Problem) -> str:
    """Return a sentence that says why the algorithm of the model's paper does not apply, or ""."""
    own = problem.spec.paper_method
    why_not = refusals(problem).get(own)
    return f"Not {own}, the paper's algorithm: {why_not}." if why_not else ""


def usual(problem: Problem) -> list[str]:
    """Return the methods compared by default: `exact`, and the approximations that apply.

    The samplers that `exact` chooses from are run by themselves only on request.
    """
    names, exact_ones = applicable(problem), {*SAMPLERS}
    return [name for name in names if name not in exact_ones or "exact" not in names]


_OF_EVERY_FIT = ("draws", "chains", "random_seed", "progressbar", "keep")


def make_options(name: str, given: Mapping[str, Any]) -> Any:
    """Return a method's Options; an unknown one is a TypeError that lists them."""
    options = BACKENDS[name].Options
    known = {f.name for f in dataclasses.fields(options)}
    wrong = [k for k in given if k not in known]
    if wrong:
        raise unknown_option(f"method {name!r}", wrong, known, _OF_EVERY_FIT)
    return options(**given)


@dataclass(frozen=True)
class Plan:
    """A fit that can be made; `prepare` returns it.

    Attributes
    ----------
    target : Target
        What is fitted.
    name : str
        By which method, one that applies.
    options : Settings
        Its options, checked.
    sampling : Sampling
        How much is drawn, under which seed.
    """

    target: Target
    name: str
    options: Any
    sampling: Sampling

    @property
    def backend(self) -> Backend:
        """The method itself."""
        return BACKENDS[self.name]

    def of(self, problem: Problem, seed: int | None = None) -> "Plan":
        """Return the same for another problem to which the method applies, or another seed too."""
        sampling = self.sampling if seed is None else dataclasses.replace(self.sampling, seed=seed)
        return dataclasses.replace(self, target=Target(problem), sampling=sampling)

    def on_one_core(self) -> "Plan":
        """Return the plan for one of several processes: unless asked for, it uses one core."""
        if getattr(self.options, "cores", 0) is not None:
            return self
        return dataclasses.replace(self, options=dataclasses.replace(self.options, cores=1))

    def on(self, processes: Processes) -> "Plan":
        """Return the plan as it runs there: in other processes on one core, and silently.

        Raises
        ------
        InputError
            The number of processes is not positive. Or there are others, and the method is not part
            of this package: another process imports only ardvark, and does not have it.
        """
        if not elsewhere(processes):
            return self
        method = self.backend
        if not isinstance(method, ModuleType) or not method.__name__.startswith("ardvark."):
            raise InputError(
                f"method {self.name!r} was registered in this process only, and others do not know "
                "it. Use processes=1."
            )
        silent = dataclasses.replace(self.sampling, progressbar=False)
        return dataclasses.replace(self.on_one_core(), sampling=silent)

    @property
    def request(self) -> str:
        """The hash of everything that determines the draws; a stored fit is reused by it.

        An option that the draws do not depend on, such as the number of cores, counts as not given.
        """
        problem, sampling = self.target.problem, self.sampling
        options = dataclasses.asdict(self.options)
        if isinstance(self.options, Settings):  # a method of a user's own may have others
            options |= {d.name: d.default for d in self.options.declared() if not d.draws_depend}
        settings = {
            "fingerprint": "" if problem is None else problem.fingerprint,
            "form": "" if problem is None else problem.form,
            "method": self.name,
            "options": options,
            "draws": sampling.draws,
            "chains": sampling.chains,
            "seed": sampling.seed,
            "keep": sampling.keep,
            "versions": versions(),
        }
        return identity(settings)


USUAL = Sampling(seed=0)
"""What `fit` draws by default, for whoever only asks whether a method applies."""


def prepare(
    method: str,
    target: Target | Problem,
    options: Mapping[str, Any],
    sampling: Sampling = USUAL,
) -> Plan:
    """Return the plan for fitting a target by a method. All refusals of a method happen here.

    Nothing is computed, and no model is built for a problem.

    Parameters
    ----------
    method : str
        A name in `BACKENDS`, or "paper".
    target : Target or Problem
        What is to be fitted.
    options : dict
        Options of the method by name; omitted ones take their defaults.
    sampling : Sampling
        How much is drawn, under which seed.

    Raises
    ------
    InputError
        An unknown method, an option outside its range, or a method that does not apply.
    TypeError
        An option that the method does not have.
    """
    target = Target(target) if isinstance(target, Problem) else target
    if not isinstance(target, Target):
        kind = repr(target) if isinstance(target, str) else f"a {type(target).__name__}"
        raise InputError(
            f"a problem of ardvark.problem comes first, and then the method; got {kind} as one."
        )
    name = resolve(method, target.problem)
    backend, settings = BACKENDS[name], make_options(name, options)
    why_not = backend.supports(target)
    if why_not:
        what = "model" if target.problem is None else "problem"
        others = ""
        if target.problem is not None and target.problem.always:
            others = f" Methods that do: {', '.join(applicable(target.problem)) or 'none yet'}."
        raise InputError(f"method {name!r} does not apply to this {what}: {why_not}.{others}")
    return Plan(target, name, settings, sampling)
