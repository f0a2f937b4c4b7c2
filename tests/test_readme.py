"""What the README and the how-to pages tell a reader to type: their Python runs, commands exist."""

import ast
import inspect
import re
import shlex
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import typer

import ardvark as av
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


def printed(folder: Path) -> dict[str, str]:
    """Run the blocks of each page one after the other, as a reader types them, in a folder."""
    written = {page.stem: "\n".join(blocks(page, "python")) for page in PAGES}
    written = {name: code for name, code in written.items() if code}
    for name, code in written.items():
        (folder / f"{name}.py").write_text(code)
    command = [sys.executable, "-c", RUN, *written]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr
    return dict(re.findall(r"^=== (\S+)\n(.*?)(?=^=== |\Z)", done.stdout, re.DOTALL | re.M))


@pytest.mark.course
def test_the_python_of_the_pages_runs(tmp_path):
    said = printed(tmp_path)
    assert len(said) > 9
    assert "Comparison of 2 fits of rfvm on digits38, reference: exact" in said["README"]
    assert re.search(r"^paper +\[do not use\]", said["README"], re.MULTILINE)
    # a mean field of an intercept and a slope that are nearly one number: sqrt(1 - r^2) = 0.0075
    assert re.search(r"^advi +\[do not use\].* x 0\.00\d+ ", said["README"], re.MULTILINE)
    *_, shown = blocks(ROOT / "README.md", "text")
    found = [words(line)[:3] for line in said["README"].splitlines()]
    assert all(words(line)[:3] in found for line in shown.splitlines())
    assert (tmp_path / "README" / "report.html").stat().st_size > 50_000
    assert "mean field: use its predicted classes" in said["own-draws"]
    assert "sex=male" in said["missing-values"]
    check_the_report_on_a_table(tmp_path / "missing-values")
    assert "not_converged" in said["own-method"]
    first, *_, longer, second = said["failing-chain"].splitlines()
    assert first.startswith("not_converged")
    assert longer.startswith("finished")
    assert second == "exact up to Monte Carlo error: nuts, another exact sampler, agrees."
    assert (tmp_path / "export" / "effects.csv").exists()


def check_the_report_on_a_table(folder: Path) -> None:
    """The report that the page shows is what its first command prints for its table."""
    page = ROOT / "docs" / "howto" / "missing-values.md"
    first, *_ = blocks(page, "sh")
    command = [sys.executable, "-m", *shlex.split(first)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert blocks(page, "text") == [done.stderr.rstrip("\n") + "\n"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_python_of_a_page_calls_what_there_is(page):
    """What does not run here is read: its public names exist and take these arguments."""
    assert not wrong_calls("\n".join(blocks(page, "python")))


def test_every_public_name_stands_in_a_notebook_or_a_how_to_page():
    notebooks = (nbformat.read(path, as_version=4) for path in (ROOT / "notebooks").glob("*.ipynb"))
    code = [cell.source for book in notebooks for cell in book.cells if cell.cell_type == "code"]
    code += [block for page in PAGES[1:] for block in blocks(page, "python")]
    shown = set(re.findall(r"\b(?:av|from ardvark)\.(\w+)", "\n".join(code)))
    assert set(av.__all__) <= shown, set(av.__all__) - shown


def wrong_calls(code: str) -> list[str]:
    """Return the names `av.x` that are not public, and calls of them with unknown arguments."""
    wrong = []
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Attribute(ast.Name("av"), name) if name not in av.__all__:
                wrong.append(name)
            case ast.Call(ast.Attribute(ast.Name("av"), name), given, named) if name in av.__all__:
                words = {k.arg: None for k in named if k.arg}
                try:
                    inspect.signature(getattr(av, name)).bind_partial(*given, **words)
                except TypeError as error:
                    wrong.append(f"{name}: {error}")
    return wrong


@pytest.mark.parametrize("code", ["av.fitt(p)", "av.resume(p, f, 3)", "av.calibrate(p, m, 3)"])
def test_a_wrong_call_is_seen(code):
    assert len(wrong_calls(code)) == 1


def test_the_readme_is_short_and_home_has_its_example():
    example, own = blocks(ROOT / "README.md", "python")
    assert len([line for line in own.splitlines() if line.strip()]) <= 10
    assert len([line for line in example.splitlines() if line.strip()]) <= 8
    assert example in blocks(HOME, "python")
    assert len((ROOT / "README.md").read_text().split()) <= 600


@pytest.mark.course
def test_the_readme_shows_what_its_first_command_prints(tmp_path):
    """Lines of it, in their order; numbers to what machines may differ in, without the seconds."""
    first, *_ = blocks(ROOT / "README.md", "sh")
    command = [sys.executable, "-m", *shlex.split(first)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert len(done.stdout.splitlines()) <= 30
    assert max(map(len, done.stdout.splitlines())) <= 80
    shown, *_ = blocks(ROOT / "README.md", "text")
    printed_lines = iter(done.stdout.splitlines())
    for own in shown.splitlines():
        if own != "...":
            line = next(line for line in printed_lines if words(line) == words(own))
            assert numbers(own) == pytest.approx(numbers(line), rel=0.2, abs=0.05)


NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?!\w)")


def words(line: str) -> list[str]:
    return NUMBER.sub("number", line).split()


def numbers(line: str) -> list[float]:
    """Return the numbers of a line; the row of a fit ends with its seconds, which are its own."""
    found = [float(number) for number in NUMBER.findall(line)]
    return found[:-1] if "  [" in line or "  plain" in line else found


def test_the_links_of_the_readme_lead_somewhere():
    links = re.findall(r"\]\(([^)#:]+)\)", (ROOT / "README.md").read_text())
    assert len(links) > 9
    assert [link for link in links if not (ROOT / link).exists()] == []


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


@pytest.mark.parametrize("line", ["ardvark compare rfvm digits38 --slap 2", "ardvark compare rfvm"])
def test_a_wrong_command_is_seen(line):
    with pytest.raises(Exception, match=r"No such option|Missing parameter"):
        parsed(line)
