"""The laboratory's command line: `python -m lab` lists the experiments, with a name it runs one.

python -m lab                               what there is
python -m lab reference make|check|export   the stored posteriors
python -m lab gibbs_speed [PART] [--quick]  a script: it writes records
python -m lab pages                         write the pages
python -m lab check_records                 list the records that are older than the code
"""

import importlib
import sys
from pathlib import Path

from ardvark.cli.app import run
from ardvark.common import interrupt
from lab import script

HERE = Path(__file__).parent
COMMANDS = {"reference": "lab.references.command"}
TOOLS = {
    "check_records": "lab.check_records",
    "pages": "lab.pages",
    "same_results": "lab.same_results",
}
"""Modules with a `main` that write no record."""


def scripts() -> dict[str, str]:
    """Return the module of each script that writes records, by the script's name."""
    found = sorted(HERE.glob("*/*.py"))
    declares = [path for path in found if "\nPARTS = " in path.read_text()]
    return {path.stem: f"lab.{path.parent.name}.{path.stem}" for path in declares}


def main() -> None:
    """Run what the command line names."""
    name, words = (sys.argv[1:2] or [""])[0], sys.argv[2:]
    if name in COMMANDS:
        interrupt.ends_at_once()  # what is stored is whole, and the next run goes on from it
        app = importlib.import_module(COMMANDS[name]).app
        run(lambda: app(words, prog_name=f"python -m lab {name}"), "lab")
    elif name in TOOLS:
        sys.exit(importlib.import_module(TOOLS[name]).main(words))
    elif name in scripts():
        script.run(importlib.import_module(scripts()[name]), words)
    else:
        _list(scripts())
        sys.exit(0 if name in ("", "--help") else f"lab: nothing is called {name!r}.")


def _list(known: dict[str, str]) -> None:
    """Print each name, and the first line of its docstring."""
    print((__doc__ or "").rstrip() + "\n\nScripts:\n")
    width = max(map(len, known))
    for name, module in sorted(known.items(), key=lambda item: item[1]):
        path = HERE.parent / f"{module.replace('.', '/')}.py"
        said = path.read_text().splitlines()[0].strip('"')
        print(f"  {name:<{width}}  {said}")


if __name__ == "__main__":
    main()
