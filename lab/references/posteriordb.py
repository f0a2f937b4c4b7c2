"""A stored reference in the layout of posteriordb (github.com/stan-dev/posteriordb).

    posteriors/NAME.json                                  what belongs together
    models/info/MODEL.info.json, models/pymc/MODEL.py     the model, as a function of the data
    models/stan/MODEL.stan                                the same in Stan, if there is one
    data/info/DATA.info.json, data/data/DATA.json.zip     the data: of the user's own copy
    reference_posteriors/draws/info/NAME.info.json        how the draws were made, diagnostics
    reference_posteriors/draws/draws/NAME.json.zip        {"eta[1]": [...], ...} a chain

The data are written from the user's own copy, so nothing is redistributed without a licence:

    ARDVARK_DATA=FOLDER python -m lab.references.posteriordb results/posterior_database [NAME ...]
"""

import json
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from ardvark.data import Dataset
from ardvark.inference.fits.datatree import group, replacing
from lab.references.references import NAMES, attributes, hypers_of, opened, problem_of

BY = "ardvark"
STAN = Path(__file__).with_name("stan")
CHECKS = {
    "chains": "nchains_is_gte_4",
    "R-hat": "r_hat_below_1_01",
    "bulk ESS": "ess_bulk_above_4000",
    "tail ESS": "ess_tail_above_4000",
    "divergences": "no_divergences",
    "E-FMI": "efmi_above_0_2",
    "autocorrelation": "autocorrelation_below_0_05",
}
"""posteriordb's names for the lines of the bar."""


def export(name: str, folder: Path) -> list[Path]:
    """Write one stored reference into a folder laid out as a posterior database.

    Parameters
    ----------
    name : str
        Its data must be there.
    folder : Path
        Created if it does not exist; files of the same names are replaced.

    Returns
    -------
    list of Path
        What was written.

    Raises
    ------
    InputError
        The data are missing.
    """
    problem = problem_of(name)
    tree, attrs = opened(name, problem), attributes(name)
    data, settings = attrs["data"], hypers_of(name)
    model = "-".join([problem.spec.name, *settings.values()])
    added = {"added_by": BY, "added_date": attrs["date"]}
    programs = _programs(problem.spec.name, settings)
    draws = _draws(tree)
    dimensions = {n: int(np.prod(v.shape[2:])) for n, v in _variables(tree).items()}
    texts: dict[str, dict[str, Any]] = {
        f"posteriors/{name}.json": {
            "name": name,
            "keywords": ["classification", "sparse"],
            "model_name": model,
            "data_name": data,
            "reference_posterior_name": name,
            "dimensions": dimensions,
            **added,
        },
        f"models/info/{model}.info.json": {
            "name": model,
            "keywords": ["classification", "sparse"],
            "title": problem.spec.title,
            "description": problem.spec.doc.strip().split("\n\n")[0],
            "references": [problem.spec.citation],
            "model_implementations": {
                language: {"model_code": f"models/{language}/{model}.{suffix}"}
                for language, (suffix, _) in programs.items()
            },
            **added,
        },
        f"data/info/{data}.info.json": {
            "name": data,
            "title": data,
            "description": f"{problem.data.N} samples, {problem.data.D} features, two classes",
            "keywords": [],
            "references": [problem.data.citation],
            "data_file": f"data/data/{data}.json",
            **added,
        },
        f"reference_posteriors/draws/info/{name}.info.json": {
            "name": name,
            **_how(attrs, group(tree, "summary"), len(draws)),
            **added,
        },
    }
    written = {file: json.dumps(content, indent=2) + "\n" for file, content in texts.items()}
    for language, (suffix, code) in programs.items():
        written[f"models/{language}/{model}.{suffix}"] = code
    for file, text in written.items():
        with replacing(folder / file) as part:
            part.write_text(text, encoding="utf-8")
    zipped: dict[str, Any] = {
        f"data/data/{data}.json": as_json(problem.data),
        f"reference_posteriors/draws/draws/{name}.json": draws,
    }
    for file, content in zipped.items():
        with (
            replacing(folder / f"{file}.zip") as part,
            zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive,
        ):
            archive.writestr(Path(file).name, json.dumps(content))
    return [folder / file for file in (*written, *(f"{file}.zip" for file in zipped))]


def _variables(tree: xr.DataTree) -> dict[str, np.ndarray]:
    """Return the draws (chain, draw, ...) of everything that is not a constant of the model."""
    fixed = str(tree.attrs.get("fixed", "")).split()
    posterior = group(tree, "posterior").transpose("chain", "draw", ...)
    return {str(n): v.values for n, v in posterior.data_vars.items() if n not in fixed}


def _draws(tree: xr.DataTree) -> list[dict[str, list[float]]]:
    """Return the draws of each chain by component, numbered from 1."""
    chains: list[dict[str, list[float]]] = []
    for name, values in _variables(tree).items():
        flat = values.reshape(*values.shape[:2], -1)  # (chain, draw, K)
        names = [name] if values.ndim == 2 else [f"{name}[{k + 1}]" for k in range(flat.shape[2])]
        for c, chain in enumerate(flat):
            if c == len(chains):
                chains.append({})
            chains[c] |= dict(zip(names, chain.T.tolist(), strict=True))
    return chains


def _how(attrs: Mapping[str, Any], summary: xr.Dataset, chains: int) -> dict[str, Any]:
    """Return how the draws were made, their diagnostics, and which lines of the bar they met."""
    known = {
        title: [v for n in summary.data_vars for v in _list(summary[n].sel(statistic=statistic))]
        for title, statistic in (
            ("effective_sample_size_bulk", "ess_bulk"),
            ("effective_sample_size_tail", "ess_tail"),
            ("r_hat", "rhat"),
        )
    }
    names = [
        f"{n}[{k + 1}]" if summary[n].ndim > 1 else str(n)
        for n in summary.data_vars
        for k in range(summary[n][0].size)
    ]
    lines = json.loads(attrs["bar"])
    options = json.loads(attrs["options"])
    size = {"chains": attrs["chains"], "draws": attrs["draws"], "thin": attrs["thin"]}
    return {
        "inference": {
            "method": f"ardvark {attrs['method']}",
            "method_arguments": {**size, "seed": attrs["seed"], **options},
        },
        "diagnostics": {
            "diagnostic_information": {"names": names},
            "ndraws": attrs["chains"] * attrs["draws"],
            "nchains": chains,
            **known,
        },
        "checks_made": {CHECKS.get(i["what"], i["what"]): i["met"] for i in lines},
        "comments": attrs["note"] or None,
        "versions": json.loads(attrs["versions"]),
    }


def _list(values: xr.DataArray) -> list[float | None]:
    """Return numbers for JSON, which has no NaN and no infinity."""
    return [float(v) if np.isfinite(v) else None for v in values.values.ravel()]


def as_json(data: Dataset) -> dict[str, Any]:
    """Return the data as a program takes them."""
    return {"N": data.N, "D": data.D, "X": data.X.tolist(), "y": data.y.tolist()}


def _programs(model: str, settings: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return the model's programs by language: suffix and text.

    The Python file is a function of the data, as posteriordb's are. The Stan program is of a model
    whose scale is fixed.
    """
    given = "".join(f", {name}={value!r}" for name, value in settings.items())
    python = (
        "import ardvark as av\n"
        "import numpy as np\n\n\n"
        "def model(data):\n"
        '    X, y = np.array(data["X"]), np.array(data["y"])\n'
        f"    return av.problem({model!r}, X, y{given}).model\n"
    )
    stan = STAN / f"{model}.stan"
    if not settings or not stan.exists():
        return {"pymc": ("py", python)}
    return {"pymc": ("py", python), "stan": ("stan", stan.read_text(encoding="utf-8"))}


if __name__ == "__main__":
    for each in sys.argv[2:] or NAMES:
        print(*export(each, Path(sys.argv[1])), sep="\n")
