"""The matrix, declared: which posteriors, and which methods beside the exact one.

A block is one posterior: a model on all rows of a data set under one prior. Its cells
are methods. Every method runs by its defaults. For a reader who objects that it was not given a
chance there are further settings: a label that ends in "more" is more effort under another seed,
"other update" another rule by which the same algorithm moves, and "other form" the same method on
the same posterior in other coordinates (`OTHER_FORM`). "own settings" is the paper's algorithm with
the hyperpriors of its paper, as far as the text or the released code has them. Its target is then
another posterior, or none. `MATRIX.md` says in words what each prior and each setting is.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from typing import Any

from ardvark.common.validate import InputError
from ardvark.models import Problem
from lab.problems import problem as make_problem

EXACT, AGAIN, OTHER_SAMPLER = "exact", "exact, again", "exact, other sampler"
"""The reference, a second run of it under another seed, and one by the sampler it did not take."""
MORE, UPDATE, OTHER = ", more", ", other update", ", other form"
"""How the labels of a method's further settings end."""
PAPERS, OWN_SETTINGS = "paper's, this prior", "paper's, own settings"
FLAT, DIFFUSE = "flat", "diffuse"
LIMIT = 4096
"""Iterations after which `exact` ends under the diffuse prior."""
OTHER_FORM: dict[str, dict[str, Any]] = {
    "pfcvm": {"parametrization": "hierarchical"},
    "rfvm": {"parametrization": "marginal", "latent_noise": "integrated"},
    "jcfo": {"parametrization": "marginal"},
    "sparse_probit": {"parametrization": "marginal"},
}
"""By model: the form of the same posterior that is not the default. PFCVM's default has the
precisions integrated out, the others' have them explicit, RFVM's the latent noise as well."""
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
    own: Mapping[str, Any],
    hypers: Mapping[str, Any] | None,
    **further: Mapping[str, Any],
) -> tuple[Cell, ...]:
    """Return the paper's algorithm under the block's prior, and at its own settings.

    Under the block's prior there are `further` settings too, by the ends of their labels.
    """
    return (
        Cell(label=PAPERS, method=method, options=options),
        *(
            Cell(label=PAPERS + {"more": MORE, "update": UPDATE}[name], method=method,
                 options={**options, **more}, seed=3)
            for name, more in further.items()
        ),
        Cell(label=OWN_SETTINGS, method=method, options=own, hypers=hypers),
    )  # fmt: skip


CELLS: dict[str, tuple[Cell, ...]] = {
    "pfcvm": (
        *_EXACT,
        *_paper(
            "pfcvm_lp",
            {"hyperprior": "model"},
            own={},
            hypers={},
            update={"update": "em", "max_iterations": 5000},
        ),
        *_generic("pfcvm"),
    ),
    "rfvm": (
        *_EXACT,
        *_paper(
            "rfvm_vb",
            {},
            own={"prune": True, "restarts": 1, "max_sweeps": 20_000},
            hypers=_RELEASED,
            update={"v_factor": "truncated", "restarts": 10, "max_sweeps": 10_000},
        ),
        *_generic("rfvm"),
    ),
    **{
        model: (
            *_EXACT,
            *_paper("jcfo_em", {}, own={**_HELD_OUT, **filtered}, hypers={}, more={"starts": 24}),
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
                own={"prior": "printed"},
                hypers=None,  # the block's: another mask prior would bring another kernel
                more={"feature_sweeps": 300, "sample_sweeps": 300},
                update={"alpha": "mean"},
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
    both = ("fsklr", "sklr")
    yield from of(
        both, _MASKS, "sonar", "heart", "ionosphere", "breast_wisconsin", "australian"
    )  # fmt: skip
    yield from of(("fsklr",), {"independent": _MASKS["independent"]}, "messidor")
    yield from of(("sklr",), _MASKS, "messidor")
    yield from of(both, _MASKS, "digits38_noisy")


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
        raise InputError(f"no block matches {', '.join(patterns)}: see `lab/matrix/declared.py`.")
    return found
