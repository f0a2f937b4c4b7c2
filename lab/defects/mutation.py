"""Do the tests see a defect? Small ones are put into the code one at a time, and the tests are run.

    python -m lab mutation --sample 150 --seed 1                            (make mutants)
    python -m lab mutation --only models/rfvm.py --nearest --out FOLDER    (minutes)
    python -m lab mutation --again survived                  (after a test has been added)

Each mutant meets the nearest tests first: those of its own file or room, and the contracts. Only
if they pass, the rest of the default run follows. What ends is stored in WORK at once, so a stopped
run goes on where it was; an outcome holds until its source file changes. At the end come the counts
by room and the survivors, for a person to judge: some change nothing that can be seen. The quick
form puts two defects into a project of one file.

The work is done in copies of the working tree, which is never touched. First the tests pass there
without a defect, and say how long they take: a mutant that takes four times as long, and three
minutes, counts as a timeout. Compiled functions get an empty Numba cache for every mutant, for its
key is a file and not what that file imports; PyTensor's cache is keyed by the graph and stays.

Why not a maintained tool: Cosmic Ray 8 has one test command for all files, swaps operators mostly
in ways that fail on floats at once, drops no term or statement and draws no sample by file.
mutmut 3 reaches a mutant through a Python wrapper, which a compiled function cannot call.
"""

import argparse
import asyncio
import dataclasses
import difflib
import hashlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any
from xml.etree import ElementTree

from lab.defects.mutants import Mutant, draw
from lab.records import Table, at_least, table
from lab.script import Measured, Part

ROOT = Path(__file__).parents[2]
SHOWN = ("docs", "figures", "judging_plots", "look", "plots", "progress", "report", "summary")
LEFT_OUT = {f"{name}.py" for name in SHOWN}  # what is only shown
KILLED, TIMEOUT, SURVIVED = OUTCOMES = ("killed", "timeout", "survived")
TARGET = 0.95  # of the defects
NO_TESTS = 5  # pytest's exit code where all tests of these files are slow ones


def sources(only: str = "", root: Path = ROOT) -> dict[str, str]:
    """Return the files that get defects, by their path."""
    files = [p for top in ("models", "inference") for p in sorted((root / top).rglob("*.py"))]
    named = {p.relative_to(root).as_posix(): p for p in files if p.name not in LEFT_OUT}
    return {name: p.read_text() for name, p in named.items() if name.startswith(only)}


def nearest(path: str, tests: list[str]) -> list[str]:
    """Return the test files of a source file: its own or else its room's, and the contracts.

    `em_steps.py` is tested in `test_em*.py`: the first word counts.
    """
    source = PurePosixPath(path)
    room = [t for t in tests if PurePosixPath(t).is_relative_to("tests" / source.parent)]
    word = source.stem.split("_")[0]
    own = [t for t in room if PurePosixPath(t).name.startswith(f"test_{word}")]
    contract = f"tests/{source.parts[0]}/test_contract.py"
    return [t for t in tests if t in (own or room) or t == contract]


# --- a copy of the project, and its tests ---------------------------------------------------------


def copy_of_the_project(to: Path, root: Path = ROOT) -> Path:
    """Copy what git knows or would add, as it is in the working tree."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=root, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        if (root / name).is_file() or (root / name).is_symlink():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, to / name, follow_symlinks=False)
    return to


@contextmanager
def defect(tree: Path, mutant: Mutant) -> Iterator[None]:
    """The copy has the defect inside the block."""
    file = tree / mutant.path
    source = file.read_text()
    # an interpreter knows an old file by its second and its size
    bytecode = Path(importlib.util.cache_from_source(str(file)))
    try:
        file.write_text(mutant.applied(source))
        bytecode.unlink(missing_ok=True)
        yield
    finally:
        file.write_text(source)
        bytecode.unlink(missing_ok=True)


async def run_tests(tree: Path, options: list[str], scratch: str, limit: float | None) -> Any:
    """Return pytest's exit code (None past the limit) and what it wrote.

    `scratch` holds the Numba cache and temporary files: PyTensor leaves a file for each function.
    """
    environment = dict(os.environ)
    site = [str(tree / "lab" / "defects" / "mutation_site"), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, site))
    environment |= {"NUMBA_CACHE_DIR": scratch, "TMPDIR": scratch}
    environment.setdefault("OMP_NUM_THREADS", "1")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *options]
    with tempfile.TemporaryFile("w+") as log:
        process = await asyncio.create_subprocess_exec(
            *command, cwd=tree, env=environment, stdout=log, stderr=log, start_new_session=True
        )
        try:
            code = await asyncio.wait_for(process.wait(), limit)
        except TimeoutError:
            code = None
        finally:
            if process.returncode is None:  # past the limit, or this program is being stopped
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        log.seek(0)
        return code, log.read()


async def seconds_without_a_defect(tree: Path, tests: list[str], out: Path, jobs: int) -> dict:
    """Run tests as they are; return the seconds of each file, from OUT where nothing changed."""
    files = [p for p in sorted(tree.rglob("*.py")) if "lab" not in p.parts]
    state = hashlib.sha256(b"".join(p.read_bytes() for p in files)).hexdigest()
    stored = out / "without_a_defect.json"
    known = json.loads(stored.read_text()) if stored.exists() else {}
    if known.get("state") == state and set(tests) <= set(known["seconds"]):
        return known["seconds"]
    print(f"{len(tests)} test files without a defect ...", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        xml = Path(folder) / "junit.xml"
        options = ["-o", "junit_family=xunit1", f"--junitxml={xml}", f"-n{jobs}", "--dist=loadfile"]
        code, output = await run_tests(tree, [*options, *tests], folder, None)
        if code != 0:
            sys.exit(f"{output[-4000:]}\nThe tests fail without any defect: mend them first.")
        cases = list(ElementTree.parse(xml).iter("testcase"))
    seconds = dict.fromkeys(tests, 0.0)
    for case in cases:
        seconds[case.attrib["file"]] += float(case.attrib["time"])
    stored.write_text(json.dumps({"state": state, "seconds": seconds}, indent=1))
    return seconds


# --- mutants --------------------------------------------------------------------------------------


async def judge(tree: Path, mutant: Mutant, seconds: dict, all_of_them: bool) -> dict:
    """Return the outcome of one mutant, and which test saw it."""
    source = (tree / mutant.path).read_text()
    tests = sorted(seconds, key=seconds.get)  # quick ones first
    near = nearest(mutant.path, tests)
    stages = [near, [t for t in tests if t not in near]] if all_of_them else [near]
    started, outcome, by = time.perf_counter(), SURVIVED, ""
    with defect(tree, mutant), tempfile.TemporaryDirectory() as scratch:
        for stage in stages:
            limit = 180.0 + 4.0 * sum(seconds[t] for t in stage)
            code, output = await run_tests(tree, stage, scratch, limit)
            if code not in (0, NO_TESTS):
                outcome = TIMEOUT if code is None else KILLED
                seen = [s for s in output.splitlines() if s.startswith(("FAILED ", "ERROR "))]
                by = seen[-1].split(" - ")[0] if seen else f"exit code {code}"
                break
    lines = source.splitlines(keepends=True), mutant.applied(source).splitlines(keepends=True)
    return {
        "key": mutant.key(source),
        **dataclasses.asdict(mutant),
        "outcome": outcome,
        "by": by,
        "stages": stages.index(stage) + 1,
        "seconds": round(time.perf_counter() - started, 1),
        "diff": "".join(difflib.unified_diff(*lines, mutant.path, mutant.operator, n=2)),
    }


async def run(
    todo: list[Mutant], out: Path, jobs: int, all_of_them: bool, root: Path = ROOT
) -> None:
    """Judge these mutants, `jobs` at a time, and store each outcome as it ends."""
    waiting, ended = iter(todo), 0

    async def work(tree: Path) -> None:
        nonlocal ended
        for mutant in waiting:
            found = await judge(tree, mutant, seconds, all_of_them)
            ended += 1
            with (out / "outcomes.jsonl").open("a") as file:
                file.write(json.dumps(found) + "\n")
            print(f"{ended}/{len(todo)} {line(found)}", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        trees = [copy_of_the_project(Path(folder) / str(i), root) for i in range(jobs)]
        tests = [p.relative_to(trees[0]) for p in (trees[0] / "tests").rglob("test_*.py")]
        names = sorted(t.as_posix() for t in tests)
        if not all_of_them:
            names = sorted({t for m in todo for t in nearest(m.path, names)})
        seconds = await seconds_without_a_defect(trees[0], names, out, jobs)
        await asyncio.gather(*map(work, trees))


def stored(out: Path) -> dict[str, dict]:
    """Return the outcomes so far by key; the last one counts."""
    file = out / "outcomes.jsonl"
    found = map(json.loads, file.read_text().splitlines()) if file.exists() else ()
    return {f["key"]: f for f in found}


def settled(found: dict | None, arguments: argparse.Namespace) -> bool:
    """Whether an outcome stands: what passed the nearest tests alone has still to meet the rest."""
    if found is None or found["outcome"] == arguments.again:
        return False
    return found["outcome"] != SURVIVED or found["stages"] == 2 or arguments.nearest


# --- what is shown --------------------------------------------------------------------------------


def line(found: dict) -> str:
    """Return one outcome as one line."""
    what = f"{found['path']}:{found['line']} {found['operator']}"
    change = f"{found['before'][:50]} -> {found['after'][:50]}"
    return f"{found['outcome']:<8} {found['seconds']:6.0f} s  {what}: {change}  {found['by']}"


def rooms_table(found: list[dict]) -> Table:
    """Return the counts by room."""
    counts = Counter((str(PurePosixPath(f["path"]).parent), f["outcome"]) for f in found)
    rooms = sorted({room for room, _ in counts})
    rows = [{"room": room} | {o: counts[room, o] for o in OUTCOMES} for room in rooms]
    rows.append({"room": "all"} | {o: sum(f["outcome"] == o for f in found) for o in OUTCOMES})
    for row in rows:
        row["seen"] = seen(row[SURVIVED], sum(row[o] for o in OUTCOMES))
    return table("Outcomes by room", rows, {"seen": ".0%"})


def seen(survived: int, count: int) -> float:
    """Return the share of defects that a test sees."""
    return 1.0 - survived / max(count, 1)


def survivors(found: list[dict]) -> Iterator[str]:
    """Yield what no test saw, and what took too long, with its diff."""
    for outcome in (TIMEOUT, SURVIVED):
        for f in sorted((f for f in found if f["outcome"] == outcome), key=lambda f: f["path"]):
            yield f"{outcome}: `{f['path']}`, {f['operator']}\n\n```diff\n{f['diff'].rstrip()}\n```"


@contextmanager
def toy_project() -> Iterator[Path]:
    """Make a project of one file; its one test looks at one of two functions."""
    files = {
        "models/area.py": "def area(a, b):\n    return a * b\n\n\n"
        "def edge(a, b):\n    return a + b\n",
        "tests/models/test_area.py": "from pathlib import Path\nfrom runpy import run_path\n\n"
        "MODULE = run_path(str(Path(__file__).parents[2] / 'models' / 'area.py'))\n\n\n"
        "def test_area():\n    assert MODULE['area'](3, 4) == 12\n",
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / name).write_text(text)
        subprocess.run(["git", "init", "-q", folder], check=True)
        yield Path(folder)


def measure(given: argparse.Namespace) -> Measured:
    """Judge a sample, and return the counts and the survivors."""
    if not given.quick:
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # leave no test running behind
        return judged(given, ROOT)
    given.jobs, given.sample, given.nearest = 1, 2, True
    with toy_project() as root:
        return judged(given, root)


def judged(given: argparse.Namespace, root: Path) -> Measured:
    """Judge what has no outcome yet."""
    texts = sources(given.only, root)
    sample = draw(texts, given.sample, given.seed)
    given.work.mkdir(parents=True, exist_ok=True)
    known = stored(given.work)
    keys = {m.key(texts[m.path]): m for m in sample}
    todo = [m for k, m in keys.items() if not settled(known.get(k), given)]
    if todo:
        try:
            asyncio.run(run(todo, given.work, given.jobs, not given.nearest, root))
        except KeyboardInterrupt:
            sys.exit("stopped: the same command goes on from here")
    known = stored(given.work)
    found = [known[k] for k in keys]
    share = seen(sum(f["outcome"] == SURVIVED for f in found), len(found))
    goal = at_least(f"share of {len(found)} defects that a test sees", share, TARGET)
    return Measured([goal], [rooms_table(found)], list(survivors(found)))


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sample", type=int, default=150, help="mutants (default 150)")
    parser.add_argument("--seed", type=int, default=1, help="of the sample (default 1)")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time (default 2)")
    parser.add_argument("--only", default="", help="files whose path starts so: inference/papers")
    parser.add_argument("--nearest", action="store_true", help="leave out the rest of the tests")
    parser.add_argument("--again", choices=OUTCOMES, help="judge those once more")


MEASURES = ("models", "inference", "tests")
PARTS = [Part("Defects that the tests see", measure)]
