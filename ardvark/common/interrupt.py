"""Make Ctrl-C end a command at once, with one line and exit code 130, whatever is running.

Python's own mechanism, an exception, is swallowed by compiled code and its callbacks, or waits for
child processes, or ends as a traceback. Ending at once loses nothing: a result is written
completely or not at all, and the next run reuses it.
"""

import multiprocessing
import os
import signal
from contextlib import suppress
from pathlib import Path

EXIT_CODE = 130
"""128 + SIGINT, as shells have it."""

unfinished: set[Path] = set()
"""Files that are being written; they go with the process."""

_words = "Stopped."


def ends_at_once() -> None:
    """From now on, let Ctrl-C end this process, unless it runs in the background and ignores it."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        return
    signal.signal(signal.SIGINT, _end)
    # where processes were started, a helper of Python's removes their locks: it need not say so
    told = os.environ.get("PYTHONWARNINGS")
    mute = "ignore:resource_tracker:UserWarning"
    os.environ["PYTHONWARNINGS"] = f"{told},{mute}" if told else mute


def last_words(text: str) -> None:
    """Set the line that Ctrl-C prints: where the results are, and how to continue."""
    global _words
    _words = text


def _end(*_: object) -> None:
    # straight to the descriptor: the interrupted code may be in the middle of a print
    terminal = os.isatty(2)
    below = "\n\x1b[?25h" if terminal else ""  # below a progress bar, and its cursor shown again
    with suppress(OSError):
        os.write(2, f"{below}{_words}\n".encode())
    for child in multiprocessing.active_children():  # one that still imports would look up late
        child.kill()
    for path in unfinished:
        path.unlink(missing_ok=True)
    os._exit(EXIT_CODE)
