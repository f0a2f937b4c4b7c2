"""What the README and the how-to pages tell a reader to type: their Python runs, commands exist."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from ardvark.cli.app import app

ROOT = Path(__file__).parents[1]
HOME = ROOT / "docs" / "index.md"
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs" / "howto").glob("*.md")))
OTHERS = (HOME, ROOT / "docs" / "which.md")

RUN = """
import os, sys
from pathlib import Path
for name in sys.argv[1:]:
    Path(name).mkdir()
    os.chdir(name)
    print(f"=== {name}", flush=True)
    exec(compile(Path(f"../{name}.py").read_text(), f"{name}.md", "exec"), {"__name__": name})
    os.chdir("..")
"""
"""Each page in an empty folder and a namespace of its own; one process, as imports are slow."""


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), flags=re.DOTALL)


def printed(folder: Path, pages: tuple[Path, ...]) -> dict[str, str]:
    """Run the blocks of each page one after the other, as a reader types them, in a folder."""
    written = {page.stem: blocks(page, "python") for page in pages}
    written = {name: found for name, found in written.items() if found}
    for name, found in written.items():
        (folder / f"{name}.py").write_text("\n".join(found))
    command = [sys.executable, "-c", RUN, *written]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr
    return dict(re.findall(r"^=== (\S+)\n(.*?)(?=^=== |\Z)", done.stdout, re.DOTALL | re.M))


def test_the_python_of_the_readme_runs(tmp_path):
    said = printed(tmp_path, PAGES[:1])["README"]
    assert "Comparison of 2 fits of rfvm on digits38, reference: exact" in said
    assert "\npaper [" in said  # its verdict
    assert (tmp_path / "README" / "report.html").stat().st_size > 50_000


def test_the_python_of_the_pages_runs(tmp_path):
    said = printed(tmp_path, PAGES[1:])
    assert len(said) > 8
    assert "mean field [with care]: use its predicted classes" in said["own-draws"]
    assert "sex=male" in said["missing-values"]
    check_the_report_on_a_table(tmp_path / "missing-values")
    assert "not_converged" in said["own-method"]
    first, *_, last = said["failing-chain"].splitlines()
    assert first.startswith("not_converged")
    assert last.startswith("finished")
    assert (tmp_path / "export" / "effects.csv").exists()


def check_the_report_on_a_table(folder: Path) -> None:
    """The report that the page shows is what its first command prints for its table."""
    page = ROOT / "docs" / "howto" / "missing-values.md"
    first, *_ = blocks(page, "sh")
    command = [sys.executable, "-m", *shlex.split(first)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert blocks(page, "text") == [done.stderr.rstrip("\n") + "\n"]


def test_the_readme_is_short_and_home_has_its_example():
    [example] = blocks(ROOT / "README.md", "python")
    assert len([line for line in example.splitlines() if line.strip()]) <= 8
    assert example in blocks(HOME, "python")


def commands() -> list[str]:
    lines = [
        line.partition(" #")[0].strip()
        for page in (*PAGES, *OTHERS)
        for block in blocks(page, "sh")
        for line in block.splitlines()
    ]
    return sorted({line for line in lines if line.startswith("ardvark ")})


def parsed(line: str) -> None:
    """Parse a command as the command line does, down to its last group; run nothing."""
    command, words = typer.main.get_command(app), shlex.split(line)[1:]
    context = command.make_context("ardvark", list(words))
    while words and hasattr(command, "commands"):
        name, command, words = command.resolve_command(context, words)
        context = command.make_context(name, list(words), parent=context)


@pytest.mark.parametrize("line", commands())
def test_a_command_is_understood(line):
    parsed(line)


@pytest.mark.parametrize("line", ["ardvark compare rfvm digits38 --slap 2", "ardvark calibrate"])
def test_a_wrong_command_is_seen(line):
    with pytest.raises(Exception, match=r"No such option|Missing parameter"):
        parsed(line)
