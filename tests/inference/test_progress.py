"""What a person sees of a long job, on a terminal, through a pipe and in a notebook."""

import io
import re
import sys

import pytest
from rich import console

from ardvark.inference.progress import Reporter

ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@pytest.fixture
def written(monkeypatch):
    """Return a function that runs two stages on a console of some kind, and what they wrote."""

    monkeypatch.setitem(sys.modules, "ipywidgets", None)  # as if it were not installed
    real = console.Console

    def run(*, terminal, notebook=False, total=10):
        out = io.StringIO()

        def instead(**_):
            made = real(
                file=out, force_terminal=terminal, force_jupyter=False, width=100, color_system=None
            )
            made.is_jupyter = notebook
            return made

        monkeypatch.setattr("rich.console.Console", instead)
        report = Reporter("nuts")
        for name in ("compiling", "sampling"):
            with report.stage(name, total=total) as update:
                update(5, "3 divergences")
        return ANSI.sub("", out.getvalue())

    return run


def test_a_pipe_gets_one_line_a_stage(written):
    lines = written(terminal=False).splitlines()
    assert [re.sub(r"[\d.]+ s", "t", line) for line in lines] == [
        "nuts: compiling (t)",
        "nuts: sampling (t)",
    ]


def test_a_terminal_gets_the_share_done_and_the_note(written):
    text = written(terminal=True)
    assert "nuts: sampling" in text
    assert "100%" in text
    assert "3 divergences" in text
    assert "%" not in written(terminal=True, total=None)


def test_a_notebook_without_widgets_gets_lines(written, capsys):
    """Else each state of a bar is printed below the one before it."""
    written(terminal=False, notebook=True)
    assert capsys.readouterr().out.count("\n") == 2  # what rich displays in a cell, one a stage


def test_disabled_shows_nothing(capsys):
    with Reporter("nuts", enabled=False).stage("sampling", total=3) as update:
        update(1, "note")
    assert capsys.readouterr() == ("", "")
