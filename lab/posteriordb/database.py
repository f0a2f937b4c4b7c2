"""A copy of posteriordb on disk: its data and its reference draws.

    git clone https://github.com/stan-dev/posteriordb

Nothing of it is kept in this project but the moments of its draws.
"""

import json
import zipfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ardvark.common.validate import InputError


@dataclass(frozen=True)
class Database:
    """A clone of posteriordb.

    Attributes
    ----------
    folder : Path
        The clone, or its folder `posterior_database`.
    """

    folder: Path

    @cached_property
    def root(self) -> Path:
        """The folder that has `posteriors`."""
        for root in (self.folder, self.folder / "posterior_database"):
            if (root / "posteriors").is_dir():
                return root
        raise InputError(
            f"{self.folder} is no clone of posteriordb: it has no folder posteriors. Get one by "
            "git clone https://github.com/stan-dev/posteriordb"
        )

    def about(self, name: str) -> dict[str, Any]:
        """Return what is said of a posterior: its data, and the name of its reference."""
        return dict(json.loads((self.root / "posteriors" / f"{name}.json").read_text()))

    def data(self, name: str) -> dict[str, Any]:
        """Return the data of a posterior."""
        return dict(
            _unzipped(self.root / "data" / "data" / f"{self.about(name)['data_name']}.json")
        )

    def draws(self, name: str) -> dict[str, np.ndarray]:
        """Return the reference draws (chain, draw) by component, such as `beta[1]`."""
        reference = self.about(name)["reference_posterior_name"]
        folder = self.root / "reference_posteriors" / "draws" / "draws"
        chains = _unzipped(folder / f"{reference}.json")
        return {k: np.array([chain[k] for chain in chains], dtype=float) for k in chains[0]}


def _unzipped(path: Path) -> Any:
    """Return the content of a JSON file that lies in a zip archive of its name."""
    with zipfile.ZipFile(f"{path}.zip") as archive:
        return json.loads(archive.read(path.name))
