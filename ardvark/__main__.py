"""`python -m ardvark`: the command line where its script is not on PATH."""

from ardvark.cli import main

main()
