"""Progress of a long job: each stage is named, compilation as such."""

import importlib.util
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Update = Callable[..., None]


class Reporter:
    """Shows stages on standard error, as bars on a terminal or in a notebook; silent if disabled.

    A notebook shows one bar at a time: that of a stage goes when the stage ends. Without ipywidgets
    it could only print each state of a bar below the last one, so it gets a line a stage, as a
    pipe does.

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

    @contextmanager
    def stage(self, name: str, total: float | None = None) -> Iterator[Update]:
        """Show one stage; yields `update(completed, note="")`.

        With a total the bar shows the share done and the time left, without one it pulses. Where
        there are no bars, one line per stage says what ran and how long it took.
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
        started = time.perf_counter()
        title = f"{self.label}: {name}" if self.label else name
        widgets = console.is_jupyter and importlib.util.find_spec("ipywidgets") is not None
        if not (widgets or console.is_terminal):
            try:
                yield lambda completed=0, note="": None
            finally:
                console.print(f"{title} ({time.perf_counter() - started:.1f} s)", highlight=False)
            return
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            *((TaskProgressColumn(), TimeRemainingColumn()) if total else ()),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}"),
        )
        with Progress(*columns, console=console, transient=widgets) as bars:
            task = bars.add_task(title, total=total, note="")

            def update(completed: float = 0, note: str = "") -> None:
                bars.update(task, completed=completed, note=note)

            yield update
            bars.update(task, total=total or 1, completed=total or 1)
