"""The command `ardvark`, and `python -m ardvark` if the former is not on PATH."""

from ardvark.common import interrupt


def main() -> None:
    """Run the command line; Ctrl-C ends it at any time, even during the first import."""
    interrupt.ends_at_once()
    from ardvark.cli.app import main as command

    command()


if __name__ == "__main__":
    main()
