"""The command: `ardvark`, and `python -m ardvark` where that is not on PATH."""

from ardvark.common import interrupt


def main() -> None:
    """Run the command line, which Ctrl-C ends from the first import on."""
    interrupt.ends_at_once()
    from ardvark.cli.app import main as command

    command()


if __name__ == "__main__":
    main()
