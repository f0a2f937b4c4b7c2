"""Which version of the package computed a row."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILES = ("ardvark", "models", "inference", "data", "lab/*.py")  # a new table changes no code


def version() -> str:
    """Return the commit of the package's own checkout, with "+" if its files differ from it.

    It is "unknown" for a package that was installed.
    """
    if not (ROOT / ".git").exists():
        return "unknown"
    commit = _git("rev-parse", "--short=8", "HEAD").stdout.strip()
    changed = _git("diff", "--quiet", "HEAD", "--", *FILES).returncode
    return (commit or "unknown") + ("+" if changed else "")


def _git(*command: str) -> subprocess.CompletedProcess[str]:
    words = ["git", "-C", str(ROOT), *command]
    return subprocess.run(words, capture_output=True, text=True, check=False)
