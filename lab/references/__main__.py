"""`python -m lab.references`: make, check or export the posteriors kept with the package."""

from ardvark.cli.app import run
from ardvark.common import interrupt
from lab.references.command import app

if __name__ == "__main__":
    interrupt.ends_at_once()  # what is stored is whole, and the next run goes on from it
    run(lambda: app(prog_name="python -m lab.references"), "lab")
