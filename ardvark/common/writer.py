"""One command at a time writes to a folder."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .validate import InputError

LOCK = ".lock"


@contextmanager
def one_writer(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Hold a folder, made if it is not there, while its files are written.

    The system lets go of it when the process ends, however it ends; its file stays.

    Raises
    ------
    InputError
        Another process holds it.
    """
    from filelock import FileLock, Timeout

    Path(folder).mkdir(parents=True, exist_ok=True)
    lock = FileLock(Path(folder, LOCK))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise InputError(
            f"another command writes to {folder}. Wait until it has ended, or choose another "
            "folder with --out."
        ) from None
    try:
        yield
    finally:
        lock.release()
