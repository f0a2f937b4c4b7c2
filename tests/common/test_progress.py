"""What a person sees of a long job, on a terminal, through a pipe and in a notebook."""

import html
import io
import itertools
import re
import time
from types import SimpleNamespace

import pytest
from rich import console

from ardvark.common import progress
from ardvark.common.progress import Reporter
from ardvark.inference.target.backend import Job

ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@pytest.fixture
def written(monkeypatch):
    """Return a function that runs two stages on a console of some kind, and what they wrote."""

    real = console.Console

    def run(*, terminal, total=10):
        out = io.StringIO()

        def instead(**_):
            return real(
                file=out, force_terminal=terminal, force_jupyter=False, width=100, color_system=None
            )

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


def test_a_pipe_gets_one_line_for_the_stages_of_one_job(capsys):
    report = Reporter("nuts")
    with report:
        for name in ("compiling", "sampling"):
            with report.stage(name):
                pass
    assert re.fullmatch(r"nuts \([\d.]+ s\)\n", capsys.readouterr().err)


def test_a_pipe_gets_a_line_a_minute_while_a_stage_runs(monkeypatch, capsys):
    monkeypatch.setattr(progress, "MINUTE", 0.01)
    with Reporter("exact").stage("sampling", total=8) as update:
        update(2, "R-hat 1.2")
        while "min" not in (text := capsys.readouterr().err):  # the thread writes it
            time.sleep(0.01)
    assert re.match(r"exact: sampling: 0 min, 25 %, 0 to 0 min left, R-hat 1.2\n", text)


def test_a_line_says_how_long_is_left():
    state = progress._Minutes("choose", total=40)
    assert state.line(120.0) == "choose: 2 min"
    state(5, "rfvm, fold 1")
    state(10, "rfvm, fold 3")
    assert state.line(120.0) == "choose: 2 min, 25 %, 3 to 12 min left, rfvm, fold 3"


def test_a_terminal_gets_the_share_done_and_the_note(written):
    text = written(terminal=True)
    assert "nuts: sampling" in text
    assert "100%" in text
    assert "3 divergences" in text
    assert "%" not in written(terminal=True, total=None)


@pytest.fixture
def cell(monkeypatch):
    """Every state of the outputs below a notebook's cell, in order: (output, its HTML)."""
    states, made, clock = [], [], itertools.count()

    class Handle:
        def update(self, data, *, raw):
            assert raw
            assert data["text/plain"] in html.unescape(data["text/html"])
            states.append((made.index(self), data["text/html"]))

    def display(data, *, raw, display_id):
        assert display_id is True
        made.append(Handle())
        made[-1].update(data, raw=raw)
        return made[-1]

    monkeypatch.setattr("IPython.display.display", display)
    monkeypatch.setattr("rich.console.Console", lambda **_: SimpleNamespace(is_jupyter=True))
    monkeypatch.setattr("time.perf_counter", lambda: float(next(clock)))  # a second a look
    return states


def test_a_notebook_has_one_bar_that_ends_as_a_line(cell):
    report = Reporter("nuts")
    with report.stage("compiling"):
        pass
    with report.stage("sampling <4 chains>", total=400) as update:
        update(100, "0 divergences")  # 1 s for a quarter
        update(400, "3 divergences")
    assert {output for output, _ in cell} == {0}
    assert [state for _, state in cell] == [
        "<progress ></progress> nuts: compiling",
        "nuts: 1.0 s (compiling 1.0 s)",
        "<progress ></progress> nuts: sampling &lt;4 chains&gt;",
        '<progress value="0.250"></progress> nuts: sampling &lt;4 chains&gt; 25 %, 0:00:03 left, '
        "0 divergences",
        '<progress value="1.000"></progress> nuts: sampling &lt;4 chains&gt; 100 %, 0:00:00 left, '
        "3 divergences",
        "nuts: 4.0 s (compiling 1.0 s; sampling &lt;4 chains&gt; 3.0 s, 3 divergences)",
    ]


def test_a_notebooks_bar_is_rewritten_at_most_ten_times_a_second(cell, monkeypatch):
    clock = itertools.count()
    monkeypatch.setattr("time.perf_counter", lambda: next(clock) / 1000)
    with Reporter("nuts").stage("sampling", total=2000) as update:
        for done in range(2000):  # in 2 s
            update(done)
    assert 15 <= len(cell) <= 22


def test_a_stage_of_a_notebook_that_is_interrupted_leaves_no_bar(cell):
    with pytest.raises(KeyboardInterrupt), Reporter("nuts").stage("compiling"):
        raise KeyboardInterrupt
    assert cell[-1] == (0, "nuts: 1.0 s (compiling 1.0 s)")


def test_disabled_shows_nothing(capsys):
    with Reporter("nuts", enabled=False).stage("sampling", total=3) as update:
        update(1, "note")
    with Job(draws=1, chains=1, seed=0).report.stage("compiling"):  # a backend called directly
        pass
    assert capsys.readouterr() == ("", "")
