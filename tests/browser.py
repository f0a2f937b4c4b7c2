"""A headless Chromium for tests, driven through its debugging pipe: nothing to install beside it.

The protocol is that of the developer tools: JSON messages that end with a NUL byte, read by the
browser from file descriptor 3 and written by it to 4.
"""

import base64
import json
import os
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
LIMIT = 60.0
"""Seconds to wait for an answer."""


def found() -> str | None:
    """Return the path of a Chromium, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Page:
    """One page in one browser; use it with `with`.

    Attributes
    ----------
    requests : list of str
        Addresses asked for, by the page and by what it loads.
    complaints : list of str
        Errors and warnings of the console, and exceptions.
    """

    def __init__(self, profile: Path, width: int = 400, height: int = 800, dark: bool = False):
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self._events: list[dict[str, Any]] = []
        self._count, self._rest = 0, b""
        path = found()
        assert path is not None
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        # a shell moves the descriptors to 3 and 4: the child of Popen cannot choose their numbers
        words = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]
        words += ["--disable-dev-shm-usage", f"--user-data-dir={profile}", "about:blank"]
        moved = f'exec 3<&{to_browser} 4>&{from_browser}; exec "$@"'
        self._process = subprocess.Popen(
            ["bash", "-c", moved, "bash", path, *words],
            pass_fds=(to_browser, from_browser),
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        targets = self.ask("Target.getTargets")["targetInfos"]
        target = next(t["targetId"] for t in targets if t["type"] == "page")
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=True,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])

    _session: str | None = None

    def __enter__(self) -> "Page":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._out)
        os.close(self._in)

    def open(self, page: Path | str) -> None:
        """Open a file or an address, and wait until all of it is loaded."""
        self._events.clear()
        self.ask("Page.navigate", url=page if isinstance(page, str) else page.resolve().as_uri())
        until = time.monotonic() + LIMIT
        while not any(e["method"] == "Page.loadEventFired" for e in self._events):
            self._read(until)

    def value(self, script: str) -> Any:
        """Return the value of an expression of JavaScript."""
        found = self.ask("Runtime.evaluate", expression=script, returnByValue=True)
        return found["result"].get("value")

    def until(self, script: str) -> Any:
        """Return the value of an expression as soon as it is true in JavaScript's sense."""
        until = time.monotonic() + LIMIT
        while not (value := self.value(script)):
            if time.monotonic() > until:
                raise TimeoutError(f"Not true after {LIMIT:.0f} s: {script}")
            time.sleep(0.05)
        return value

    def picture(self, path: Path) -> None:
        """Write what the window shows, as a PNG file."""
        data = self.ask("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        path.write_bytes(base64.b64decode(data))

    def pdf(self, path: Path) -> None:
        """Write the page as it is printed."""
        printed = self.ask("Page.printToPDF", preferCSSPageSize=True, printBackground=True)
        path.write_bytes(base64.b64decode(printed["data"]))

    def pages(self, path: Path) -> int:
        """Write the page as it is printed, and return the number of its pages."""
        self.pdf(path)
        return len(re.findall(rb"/Type\s*/Page\b", path.read_bytes()))

    def ask(self, method: str, **settings: Any) -> dict[str, Any]:
        """Send a command and return its answer; what happens meanwhile is noted."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": settings}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + LIMIT
        while True:
            answer = self._read(until)
            if answer.get("id") == self._count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return dict(answer["result"])

    def _read(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._in], [], [], max(until - time.monotonic(), 0.0))
            part = os.read(self._in, 1 << 16) if ready else b""
            if not part:
                raise TimeoutError(f"Chromium did not answer (exit {self._process.poll()}).")
            self._rest += part
        text, _, self._rest = self._rest.partition(b"\0")
        message = dict(json.loads(text))
        if "method" in message:
            self._note(message)
        return message

    def _note(self, event: dict[str, Any]) -> None:
        self._events.append(event)
        settings = event.get("params", {})
        if event["method"] == "Network.requestWillBeSent":
            self.requests.append(settings["request"]["url"])
        elif event["method"] == "Runtime.exceptionThrown":
            self.complaints.append(str(settings["exceptionDetails"]))
        elif event["method"] == "Log.entryAdded" and settings["entry"]["level"] != "info":
            self.complaints.append(settings["entry"]["text"])
        elif event["method"] == "Runtime.consoleAPICalled" and settings["type"] != "log":
            self.complaints.append(str(settings["args"]))


if __name__ == "__main__":  # python -m tests.browser PAGE FOLDER: what a page looks like
    source, folder = map(Path, sys.argv[1:])
    for name, wide, night in (("wide", 1200, False), ("phone", 400, False), ("dark", 1200, True)):
        with Page(folder / f"profile-{name}", wide, 900, night) as page:
            page.open(source)
            page.picture(folder / f"{name}.png")
            if name == "wide":
                page.pdf(folder / "page.pdf")
