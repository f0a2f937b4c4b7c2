"""The matrix, declared: which posteriors, and which methods beside the exact one.

A block is one posterior: a model on all rows of a data set under one prior (`PRIORS`). Its cells
are methods. Every method runs by its defaults. A label that ends in "more" is a second setting
under another seed, and one that ends in "other form" the same method on the same posterior in
other coordinates (`OTHER_FORM`): for a reader who objects that the first was not given a chance.
"own settings" is the paper's algorithm with the hyperpriors of its paper, as far as the text or the
released code has them (`OWN`). Its target is then another posterior, or none.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from typing import Any

from ardvark.common.validate import InputError
from ardvark.models import Problem
from ardvark.models import problem as make_problem

EXACT, AGAIN, OTHER_SAMPLER = "exact", "exact, again", "exact, other sampler"
"""The reference, a second run of it under another seed, and one by the sampler it did not take."""
MORE, OTHER = ", more", ", other form"
"""How the labels of a method's second setting end."""
FLAT, DIFFUSE = "flat", "diffuse"
LIMIT = 4096
"""Iterations after which `exact` ends under the diffuse prior."""
PRIORS = {
    "sparse": "the default of PFCVM and RFVM: half-Cauchy feature weights and Cauchy sample "
    "weights (Gamma shape 1/2), each times a normal slab, with scales from the numbers of active "
    "features and samples that are expected (`models/sparse.py`)",
    "dense": "Gamma shape 1.5 for all precisions: Student-t weights, no spike, no slab. The scale "
    "shrinks with D, so of thousands of genes it expects fewer above 0.1 than the sparse prior",
    DIFFUSE: "Gamma shape 0.05 for all precisions, the least that can be simulated, and a slab of "
    "1: the nearest proper prior to the flat one, and still far from it. It expects about a "
    "quarter of all genes to be active, and the slab matters. On genes `exact` does not converge "
    f"under it, and ends after {LIMIT} iterations",
    FLAT: "shape and rate 0, the limit that PFCVM and RFVM work in: improper, and so is the "
    "posterior",
    "double_exponential": "JCFO's own hierarchy, which is proper: Laplace sample weights, "
    "exponential feature weights. The paper tunes gamma1 and gamma2; here our rule fills them from "
    "N and D, and for thousands of features the posterior is then close to the prior",
    "independent": "FS-SKLR's (12) to (15): one probability for each bit of a mask",
    "printed_masks": "FS-SKLR's (21) and (22), the prior that its algorithm uses",
}
"""By name: what it is, for a reader of the page."""
OTHER_FORM: dict[str, dict[str, Any]] = {
    "pfcvm": {"parametrization": "hierarchical"},
    "rfvm": {"parametrization": "marginal", "latent_noise": "integrated"},
    "jcfo": {"parametrization": "marginal"},
    "sparse_probit": {"parametrization": "marginal"},
}
"""By model: the form of the same posterior that is not the default. PFCVM's default has the
precisions integrated out, the others' have them explicit, RFVM's the latent noise as well."""
OWN = {
    "pfcvm": "flat hyperpriors; thresholds and first precisions, which the paper leaves open, at "
    "our defaults, with which it does not come to the paper's few genes",
    "rfvm": "shapes 1e-12, rates 1e-14 and the pruning of the released example, 20 000 sweeps",
    "jcfo": "gammas chosen on a held-out tenth, about 50 features left by sparse probit, one start",
    "sparse_probit": "gamma chosen on a held-out tenth, one start",
    "fsklr": "the prior (21), (22) in the search, normalised comparison",
    "sklr": "the prior (22) in the search, normalised comparison",
}
"""By model: what its algorithm's own settings are, with the misprints of `ERRATA.md` corrected."""
_ARD: dict[str, dict[str, Any]] = {
    "sparse": {},
    "dense": {"active_features": "all", "active_samples": "all"},
    DIFFUSE: {"sample_shape": 0.05, "feature_shape": 0.05, "slab": 1.0},
    FLAT: {},
}
_MASKS: dict[str, dict[str, Any]] = {"independent": {}, "printed_masks": {"mask_prior": "printed"}}
_LAPLACE: dict[str, dict[str, Any]] = {"double_exponential": {}}
_HELD_OUT: dict[str, Any] = {"select": "holdout", "starts": 1}
_RELEASED: dict[str, Any] = {
    **dict.fromkeys(("sample_shape", "feature_shape"), 1e-12),
    **dict.fromkeys(("sample_rate", "feature_rate", "noise_shape", "noise_rate"), 1e-14),
}
"""The shapes and rates of RFVM's released example, whose limit is `flat`."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A method in a block.

    Attributes
    ----------
    label : str
        Its name in the tables; `short` groups the settings of one approximation.
    method : str
        In `registry.BACKENDS`.
    options : dict
        Those that differ from the default.
    hypers : dict, optional
        Of the problem that it is run on, where that is not the block's: the prior of a paper's
        algorithm at its own settings. Its draws are then compared with the block's posterior.
    form : dict
        Of the same posterior, where it is not the default.
    seed : int
    """

    label: str
    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    hypers: Mapping[str, Any] | None = None
    form: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 1

    def problem(self, block: "Block") -> Problem:
        """Return the problem that it is run on."""
        own = block.hypers if self.hypers is None else self.hypers
        return block.problem({**own, **self.form})


_EXACT = (Cell(label=EXACT, method="exact"), Cell(label=AGAIN, method="exact", seed=2))


def _generic(model: str) -> tuple[Cell, ...]:
    """Return ADVI and Laplace: by default, with more effort, and in the other form."""
    return tuple(
        cell
        for label, method, more in (
            ("ADVI", "advi", {"rank": 20, "max_iterations": 100_000}),
            ("Laplace", "laplace", {"starts": 16}),
        )
        for cell in (
            Cell(label=label, method=method),
            Cell(label=label + MORE, method=method, options=more, seed=3),
            Cell(label=label + OTHER, method=method, form=OTHER_FORM[model]),
        )
    )


def _paper(
    method: str,
    options: Mapping[str, Any],
    more: Mapping[str, Any],
    own: Mapping[str, Any],
    hypers: Mapping[str, Any],
) -> tuple[Cell, ...]:
    """Return the paper's algorithm under the block's prior, twice, and at its own settings."""
    return (
        Cell(label="paper's, this prior", method=method, options=options),
        Cell(label="paper's, this prior, more", method=method, options={**options, **more}, seed=3),
        Cell(label="paper's, own settings", method=method, options=own, hypers=hypers),
    )


CELLS: dict[str, tuple[Cell, ...]] = {
    "pfcvm": (
        *_EXACT,
        *_paper(
            "pfcvm_lp",
            {"hyperprior": "model"},
            {"update": "em", "max_iterations": 5000},
            {},
            {},
        ),
        *_generic("pfcvm"),
    ),
    "rfvm": (
        *_EXACT,
        *_paper(
            "rfvm_vb",
            {},
            {"v_factor": "truncated", "restarts": 10, "max_sweeps": 10_000},
            {"prune": True, "restarts": 1, "max_sweeps": 20_000},
            _RELEASED,
        ),
        *_generic("rfvm"),
        Cell(label="XOLON", method="xolon"),
    ),
    **{
        model: (
            *_EXACT,
            *_paper("jcfo_em", {}, {"starts": 24}, {**_HELD_OUT, **filtered}, {}),
            *_generic(model),
        )
        for model, filtered in (("jcfo", {"prefilter": 50}), ("sparse_probit", {}))
    },
    **dict.fromkeys(
        ("fsklr", "sklr"),
        (
            *_EXACT,
            *_paper(
                "fsklr_savb",
                {},
                {"feature_sweeps": 300, "sample_sweeps": 300},
                {"prior": "printed"},
                {},
            ),
        ),
    ),
}
"""By model: its cells, the exact posterior first."""


@dataclass(frozen=True, kw_only=True)
class Block:
    """One posterior.

    Attributes
    ----------
    model, data : str
        Names in their registries.
    prior : str
    hypers : dict
        What differs from the model's defaults under this prior.
    kernel : str
        Where it is not the model's default.
    other_sampler : str
        The exact sampler that `exact` does not take here, where it is run as well.
    """

    model: str
    data: str
    prior: str
    hypers: Mapping[str, Any] = field(default_factory=dict)
    kernel: str = ""
    other_sampler: str = ""

    @property
    def group(self) -> str:
        """Model, kernel and data: what the blocks that differ in the prior have in common."""
        return "/".join([*filter(None, [self.model, self.kernel]), self.data])

    @property
    def name(self) -> str:
        """The group and the prior, as `--only` takes it."""
        return f"{self.group}/{self.prior}"

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The methods; under an improper prior there is only a line that says so."""
        cells = CELLS[self.model]
        if self.other_sampler:
            options = {"sampler": self.other_sampler}
            other = Cell(label=OTHER_SAMPLER, method="exact", options=options, seed=4)
            return (*cells[:2], other, *cells[2:])
        if self.prior == DIFFUSE:
            limited = [replace(cell, options={"limit": LIMIT}) for cell in cells[:2]]
            return (*limited, *cells[2:])
        return cells[:1] if self.prior == FLAT else cells

    def problem(self, hypers: Mapping[str, Any] | None = None) -> Problem:
        """Return the problem, under its own prior or under other hyperparameters."""
        given = dict(self.hypers if hypers is None else hypers)
        if self.kernel:
            given["kernel"] = self.kernel
        return make_problem(self.model, self.data, **given)


_OTHER_SAMPLER = {
    "pfcvm/sonar/sparse": "gibbs",
    "pfcvm/sonar/dense": "gibbs",
    "rfvm/colon_discrete/dense": "nuts",
    "jcfo/sonar/double_exponential": "gibbs",
    "sparse_probit/sonar/double_exponential": "gibbs",
}
"""By block: one or two of each model that has two exact samplers, where both end within minutes."""


def _blocks() -> Iterator[Block]:
    def of(
        models: tuple[str, ...], priors: dict[str, dict[str, Any]], *data: str, kernel: str = ""
    ) -> Iterator[Block]:
        for name in data:
            for model in models:
                for prior, hypers in priors.items():
                    block = Block(model=model, data=name, prior=prior, hypers=hypers, kernel=kernel)
                    yield replace(block, other_sampler=_OTHER_SAMPLER.get(block.name, ""))

    yield from of(("pfcvm",), _ARD, "colon", "golub", "duke_lymph", "sonar")
    yield from of(("pfcvm",), _ARD, "sonar", "waveform", kernel="rbf")
    yield from of(
        ("rfvm",), _ARD, "colon_discrete", "lymphoma_discrete", "leukemia_discrete", "allaml",
        "prostate_ge", "digits38",
    )  # fmt: skip
    yield from of(("jcfo", "sparse_probit"), _LAPLACE, "colon", "golub", "duke_lymph", "sonar")
    yield from of(
        ("fsklr", "sklr"), _MASKS, "sonar", "heart", "ionosphere", "breast_wisconsin",
        "australian", "messidor", "digits38_noisy",
    )  # fmt: skip


BLOCKS: dict[str, Block] = {block.name: block for block in _blocks()}
"""Every block, by name."""


def chosen(patterns: Sequence[str]) -> list[Block]:
    """Return the blocks whose names, or whose parts, match one of the patterns; all without any.

    A pattern is a name with wildcards (`rfvm/*/sparse`) or a part of one (`colon`).

    Raises
    ------
    InputError
        None matches.
    """
    found = [
        block
        for name, block in BLOCKS.items()
        if not patterns or any(fnmatch(name, p) or p in name.split("/") for p in patterns)
    ]
    if not found:
        raise InputError(f"no block matches {', '.join(patterns)}: see `ardvark reproduce --list`.")
    return found
