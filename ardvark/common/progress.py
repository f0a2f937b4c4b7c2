"""Show the progress of a long job, with the name of each stage, including compilation."""

import html
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Self

Update = Callable[..., None]

MINUTE = 60.0
"""Seconds between two lines of a stage where output is no terminal."""
_OFTEN = 0.1
"""Seconds between two states of a notebook's bar; also what a stage must take to be listed."""


class Reporter:
    """Shows stages on standard error; silent if disabled.

    A terminal shows a bar for the stage that runs, and nothing when it is done. A notebook shows
    one bar below the cell. It goes through the stages and ends as a line of text. A pipe gets one
    line per stage, or one line for all stages inside ``with reporter:``, and a line a minute as
    long as a stage runs.

    Parameters
    ----------
    label : str
        What is running, put before each stage.
    enabled : bool
        Whether to show anything.
    """

    def __init__(self, label: str = "", enabled: bool = True) -> None:
        self.label = label
        self.enabled = enabled
        self._cell = _Cell(label)
        self._together = False

    def __enter__(self) -> None:
        """Begin a job whose stages a pipe does not get one by one."""
        self._together = True
        self._started = time.perf_counter()

    def __exit__(self, kind: object, *_: object) -> None:
        """Tell a pipe what all stages took together, unless the job failed."""
        self._together = False
        if self.enabled and kind is None:
            self._line("", self._started)

    @contextmanager
    def stage(self, name: str, total: float | None = None) -> Iterator[Update]:
        """Show one stage; yields `update(completed, note="")`.

        With a total, the bar shows the share done and the time left; without one, it pulses.
        """
        if not self.enabled:
            yield lambda completed=0, note="": None
            return
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress,
            TaskProgressColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        console = Console(stderr=True)
        if console.is_jupyter:
            with self._cell.stage(name, total) as update:
                yield update
            return
        started = time.perf_counter()
        if not console.is_terminal:
            try:
                with _Minutes(self._title(name), total) as state:
                    yield state
            finally:
                if not self._together:
                    self._line(name, started)
            return
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            *((TaskProgressColumn(), TimeRemainingColumn()) if total else ()),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}"),
        )
        with Progress(*columns, console=console, transient=True) as bars:
            task = bars.add_task(self._title(name), total=total, note="")

            def update(completed: float = 0, note: str = "") -> None:
                bars.update(task, completed=completed, note=note)

            yield update
            bars.update(task, total=total or 1, completed=total or 1)

    def _line(self, name: str, started: float) -> None:
        """Tell a pipe what has ended and how long it took."""
        from rich.console import Console

        console = Console(stderr=True)
        if not console.is_terminal and not console.is_jupyter:
            took = time.perf_counter() - started
            console.print(f"{self._title(name)} ({took:.1f} s)", highlight=False)

    def _title(self, name: str) -> str:
        return ": ".join(filter(None, (self.label, name)))


class _Minutes:
    """A line a minute for a pipe, by a thread of its own: a stage may not say anything for hours.

    Called as `update` is.
    """

    def __init__(self, title: str, total: float | None) -> None:
        self.title, self.total = title, total
        self.completed, self.note = 0.0, ""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __call__(self, completed: float = 0, note: str = "") -> None:
        self.completed, self.note = completed, note

    def __enter__(self) -> Self:
        self._started = time.perf_counter()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(MINUTE):
            print(self.line(time.perf_counter() - self._started), file=sys.stderr, flush=True)

    def line(self, took: float) -> str:
        """Return what is known after so many seconds: the share done, and about how long is left.

        The range is half to twice what the rest takes at the pace so far.
        """
        words = [f"{took / 60.0:.0f} min"]
        if self.total and self.completed:
            share = min(self.completed / self.total, 1.0)
            left = took * (1.0 / share - 1.0) / 60.0
            words += [f"{100.0 * share:.0f} %", f"{0.5 * left:.0f} to {2.0 * left:.0f} min left"]
        return f"{self.title}: {', '.join([*words, *filter(None, [self.note])])}"


class _Cell:
    """One output below a notebook's cell, rewritten in place: a bar, and finally the times.

    It is HTML, because widgets would leave an empty output per stage and are lost when a notebook
    is stored.
    """

    def __init__(self, label: str) -> None:
        self.label = label
        self.ended: list[str] = []
        self.handle: Any = None
        self.seconds = 0.0

    @contextmanager
    def stage(self, name: str, total: float | None) -> Iterator[Update]:
        started = shown = time.perf_counter()
        last = ""

        def update(completed: float = 0, note: str = "") -> None:
            nonlocal shown, last
            last, now = note, time.perf_counter()
            if total and completed and now - shown > _OFTEN:
                shown, share = now, min(completed / total, 1.0)
                left = timedelta(seconds=round((now - started) * (1.0 / share - 1.0)))
                words = filter(None, [f"{100.0 * share:.0f} %", f"{left} left", note])
                self._show(f"{name} {', '.join(words)}", f'value="{share:.3f}"')

        self._show(name, "")  # without a value it pulses
        try:
            yield update
        finally:
            took = time.perf_counter() - started
            self.seconds += took
            if took >= _OFTEN:
                self.ended.append(f"{name} {took:.1f} s{f', {last}' if last else ''}")
            parts = f" ({'; '.join(self.ended)})" if self.ended else ""
            self._show(f"{self.seconds:.1f} s{parts}")

    def _show(self, words: str, bar: str | None = None) -> None:
        text = f"{self.label}: {words}" if self.label else words
        before = "" if bar is None else f"<progress {bar}></progress> "
        data = {"text/plain": text, "text/html": f"{before}{html.escape(text)}"}
        if self.handle is None:
            from IPython.display import display

            self.handle = display(data, raw=True, display_id=True)
        else:
            self.handle.update(data, raw=True)


def forecast(title: str, done: int, left: int, seconds: float) -> str:
    """Return in words how long the fits that are left may take together.

    Examples
    --------
    >>> from ardvark.common.progress import forecast
    >>> forecast("panel", 1, 4, 100.0)
    'panel: 1 fit is done. The other 4 may take about 100 s.'
    """
    took = f"{seconds:.0f} s" if seconds < 120.0 else f"{seconds / 60.0:.0f} min"
    fits = "fit is" if done == 1 else "fits are"
    return f"{title}: {done} {fits} done. The other {left} may take about {took}."
