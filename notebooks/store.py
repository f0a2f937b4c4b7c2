"""Execute notebooks in place and store them with their outputs: `make notebooks`.

    python notebooks/store.py [NAME ...]      all notebooks of this folder, or 00_tour ...

Execution times, widget state and the kernel's version are not stored, because no reader needs them.
When a notebook is stored again, only what depends on its draws changes.
"""

import os
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent


def store(path: Path) -> None:
    """Execute one notebook at full size, in its folder, and write it back."""
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": path.parent}}
    settings = {"timeout": 1800, "record_timing": False, "coalesce_streams": True}
    NotebookClient(notebook, resources=resources, **settings).execute()
    notebook.metadata.pop("widgets", None)
    notebook.metadata["language_info"] = {"name": "python"}
    nbformat.write(notebook, path)


if __name__ == "__main__":
    os.environ.pop("ARDVARK_QUICK", None)
    for path in sorted(FOLDER.glob("*.ipynb")):
        if not sys.argv[1:] or path.stem in sys.argv[1:]:
            started = time.perf_counter()
            store(path)
            size = path.stat().st_size / 1000
            print(f"{path.name}: {time.perf_counter() - started:.0f} s, {size:.0f} kB", flush=True)
