"""Pieces that cost nothing: a module that other processes can import, which a test file is not."""

import json
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info

from ardvark.common import memory
from ardvark.common.pieces import Pieces
from ardvark.common.validate import logger

WHOLE = range(20, 60)
"""Pieces without a special meaning."""


@dataclass(frozen=True)
class Sums(Pieces):
    """A number a piece; 13 has a bug, 66 kills its process, 67 once. 99 seconds do not start."""

    folder: Path
    seconds: float = 0.05

    def start(self):
        if self.seconds == 99:
            raise LookupError("no compiler")
        made, done = time.monotonic_ns(), 0

        def compute(piece):
            nonlocal done
            if piece == 13:
                raise ZeroDivisionError("piece 13")
            if piece == 66:
                os.kill(os.getpid(), signal.SIGKILL)
            mark = self.folder / "killed"
            if piece == 67 and not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(self.seconds)
            done += 1
            blas = [p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"]
            return {
                "piece": piece,
                "value": float(np.random.default_rng(piece).normal(size=(9, 9)).sum()),
                "worker": (os.getpid(), made),
                "done": done,
                "threads": max(blas, default=1),
                "silent": not logger.isEnabledFor(40),
                "memory": memory.allowed(),
            }

        return compute

    def failure(self, key, reason):
        return {"piece": key, "reason": reason}

    def path(self, key):
        return self.folder / f"{key}.json"

    def get(self, key):
        row = json.loads(self.path(key).read_text()) if self.path(key).exists() else None
        return None if row is None or "reason" in row else row

    def put(self, key, result):
        if key == 77:
            raise OSError("the disk is full")
        part = self.path(key).with_suffix(".part")
        part.write_text(
            json.dumps(
                {k: result.get(k) for k in ("piece", "value")}
                | ({"reason": result["reason"]} if "reason" in result else {})
            )
        )
        part.replace(self.path(key))


if __name__ == "__main__":
    Sums(Path(sys.argv[1])).run(WHOLE, int(sys.argv[2]))
