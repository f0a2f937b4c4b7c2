"""Which sampler gives the exact posterior of a problem: the rule, a table, and what was measured.

`nuts` and `gibbs` sample the posterior itself, and nearly everywhere both apply. How long they take
differs by factors. `RULE` has the rows in order, and the first that fits a problem is taken; `text`
prints them. What a row says is the processor's time until `exact` stops by its own rule. Figures
and dates are in `lab/speed/SPEED.md` and `lab/algorithms/ALGORITHMS.md`, which also say by which
sampler "along gradients" was measured.
"""

from dataclasses import dataclass

from ardvark.common.registry import Registry
from ardvark.models import Problem

from ...target.chains import Continuing
from ...target.target import Target

SAMPLERS = Registry[Continuing](
    __package__,
    {"gibbs": "..gibbs.method", "nuts": "..gradient.nuts"},
)
"""The exact samplers, by name."""
MASKS = "binary masks have no gradient"
MODES = (
    "a sparse prior's posterior has many modes, and a jump finds the next one where a path does not"
)
SMOOTH = "with few modes, trajectories along gradients take the longest steps for their cost"
FEW = "with few features for its samples, the posterior has few modes and its gradient is cheap"
BLOCK = "all weights are drawn as one block, in the smaller of rows and columns"
RIDGE = "a scale and the weights that follow it are a ridge, along which a move is one step"
FAT = 3
"""Features per sample above which a table is fat."""


@dataclass(frozen=True)
class Row:
    """A row of the rule.

    Attributes
    ----------
    models : tuple of str
        Models that it is for; none: every model.
    sampler, why : str
        What it takes, and the reason in words.
    measured : str
        What was measured for it.
    kernel : {"", "linear", "other", "primal", "not primal"}
        The kernel that it asks for. A model without one counts as linear, and as primal.
    fat : bool, optional
        Whether D > 3 N; None: either.
    masked, learned : bool
        Whether it asks for binary masks; for a learned scale of the features.
    """

    models: tuple[str, ...]
    sampler: str
    why: str
    measured: str
    kernel: str = ""
    fat: bool | None = None
    masked: bool = False
    learned: bool = False

    def fits(self, problem: Problem) -> bool:
        """Whether the row is for a problem."""
        N, D = problem.X.shape
        kernel = problem.kernel
        is_of = {
            "": True,
            "linear": kernel is None or kernel.is_linear,
            "other": kernel is not None and not kernel.is_linear,
            "primal": kernel is None or kernel.is_primal,
            "not primal": kernel is not None and not kernel.is_primal,
        }
        return (
            (not self.models or problem.spec.name in self.models)
            and is_of[self.kernel]
            and (self.fat is None or self.fat == (D > FAT * N))
            and (not self.masked or bool(problem.spec.masked))
            and (not self.learned or problem.hypers.learned_scale == "feature_scale")
        )

    def where(self) -> str:
        """Return what it is for, in words."""
        fat = {None: "", True: "D > 3 N", False: "D <= 3 N"}[self.fat]
        words = (
            ", ".join(self.models) or "any other",
            "binary masks" if self.masked else "",
            "learned scale" if self.learned else "",
            f"{self.kernel} kernel" if self.kernel else "",
            fat,
        )
        return "; ".join(filter(None, words))


PRODUCTS = ("pfcvm", "rfvm")
"""Models whose eta is a product of feature weights and sample weights under sparse priors."""

RULE = (
    Row((), "gibbs", MASKS, "no other applies", masked=True),
    Row(
        ("horseshoe",), "gibbs", MODES,
        "along gradients: 1.8 times as long at 200 x 30, and not converged at 168 x 504",
    ),
    Row(
        ("sparse_probit",), "gibbs", BLOCK,
        "along gradients: 1.6 times as long at 200 x 30",
    ),
    Row(PRODUCTS, "gibbs", MODES, "nuts: R-hat 1.03 after 4 x 4000 draws on sonar", kernel="other"),
    Row(
        PRODUCTS, "gibbs", MODES,
        "nuts: R-hat 1.02 on colon (62 x 2000), 1.3 at 72 x 7129", fat=True,
    ),
    Row(
        PRODUCTS, "nuts", FEW,
        "gibbs takes 1.2 (pfcvm) and 1.4 times (rfvm) as long at 60 x 8, 2.2 at 200 x 30 (pfcvm)",
    ),
    Row(
        (), "gibbs", RIDGE,
        "along gradients: R-hat 1.9 of the scale on colon after the two minutes of gibbs",
        fat=True, learned=True,
    ),
    Row(
        (), "gibbs", RIDGE,
        "along gradients: R-hat 1.6 at 30 x 6 (degree 2); rbf: without the small scales",
        kernel="not primal", learned=True,
    ),
    Row(
        (), "nuts", SMOOTH,
        "gibbs takes 0.7 times as long at 60 x 8 and more than 2.5 at 200 x 30 (jcfo); it took 2.3 "
        "to 2.7 on sonar (pcvm, rvm)",
    ),
)  # fmt: skip
"""The rule. A bare `pm.Model` is sampled by `nuts`: no Gibbs sampler applies to it."""


def text() -> str:
    """Return the rule as a table in Markdown, the first row that fits first.

    Examples
    --------
    >>> from ardvark.inference.samplers.exact.rule import text
    >>> print(text())
    | model | sampler | measured |
    | --- | --- | --- |
    | any other; binary masks | gibbs | no other applies |
    ...
    """
    head = ["| model | sampler | measured |", "| --- | --- | --- |"]
    return "\n".join(head + [f"| {r.where()} | {r.sampler} | {r.measured} |" for r in RULE])


@dataclass(frozen=True)
class Pick:
    """The sampler for a target, and why it was chosen."""

    name: str
    reason: str

    @property
    def sampler(self) -> Continuing:
        """The method itself."""
        return SAMPLERS[self.name]


def refusal(target: Target) -> str | None:
    """Return why no exact sampler applies, or None."""
    refusals = {name: sampler.supports(target) for name, sampler in SAMPLERS.items()}
    if not all(refusals.values()):
        return None
    if target.problem is None:  # no Gibbs sampler is for a model of one's own
        return refusals["nuts"]
    return "no exact sampler applies: " + "; ".join(f"{n}: {why}" for n, why in refusals.items())


def pick(target: Target) -> Pick:
    """Return the sampler for a target that `refusal` accepts."""
    picked = _preferred(target)
    if picked.sampler.supports(target) is None:
        return picked
    other = next(name for name in SAMPLERS if name != picked.name)
    return Pick(other, f"{picked.name} does not apply to it")


def _preferred(target: Target) -> Pick:
    """Return what the first row that fits says."""
    problem = target.problem
    if problem is None:
        return Pick("nuts", "gradients serve any model")
    row = next(row for row in RULE if row.fits(problem))
    return Pick(row.sampler, row.why)
