"""The pure parts of `lab.defects.mutation` and `lab.defects.mutants`."""

import ast
import os
import subprocess
import sys
from argparse import Namespace
from contextlib import suppress
from pathlib import Path

import pytest

from lab.defects import mutants as made
from lab.defects import mutation

ROOT = Path(__file__).parents[2]


def changes(source, operator):
    """Return what an operator makes of a source, one text a mutant."""
    found = made.mutants("a.py", source)
    return {m.applied(source) for m in found if m.operator == operator}


@pytest.mark.parametrize(
    ("operator", "source", "expected"),
    [
        ("arithmetic", "x = a + b", {"x = a - b"}),
        ("arithmetic", "x = a / b", {"x = a * b"}),
        ("arithmetic", "x = a**2", {"x = a * 2"}),
        ("arithmetic", "x += b", {"x -= b"}),
        ("arithmetic", "x = (a * b) ** c", {"x = (a / b) ** c", "x = a * b * c"}),
        ("arithmetic", "x = a ** (b + c)", {"x = a ** (b - c)", "x = a * (b + c)"}),
        ("arithmetic", "x = a ** 2 / b", {"x = a ** 2 * b", "x = (a * 2) / b"}),
        ("arithmetic", "x = 'a' + b", set()),
        ("dropped part", "return_ = a + b", {"return_ = a", "return_ = b"}),
        ("dropped part", "x = a - b", {"x = a"}),
        ("dropped part", "x = (a + b * c) / d", {
            "x = a + b * c", "x = (a) / d", "x = (b * c) / d", "x = (a + b) / d", "x = (a + c) / d",
        }),
        ("sign", "x = a ** -b", {"x = a ** b"}),
        ("comparison", "x = a == b", {"x = a != b"}),
        ("comparison", "x = a is None", {"x = a is not None"}),
        ("comparison", "x = len(a) < n", {"x = len(a) <= n"}),
        ("comparison", "x = a < 0.5", {"x = a > 0.5"}),
        ("comparison", "x = 0.5 < a < 3", {"x = 0.5 > a < 3", "x = 0.5 < a <= 3"}),
        ("constant", "x = a[0]", {"x = a[1]"}),
        ("constant", "x = 1", {"x = 2", "x = 0"}),
        ("constant", "x = 0.5", {"x = 1.5"}),
        ("constant", "x = max(a, 1e-12, 4096)", set()),
        ("truth", "f(a, lower=True)", {"f(a, lower=False)"}),
        ("condition", "if a > 1:\n    b = 2", {"if not a > 1:\n    b = 2"}),
        ("condition", "if not a:\n    b = 2", {"if a:\n    b = 2"}),
        ("condition", "if a > 1:\n    raise ValueError", set()),
        ("connective", "x = a and b or c", {"x = (a or b) or c", "x = (a and b) and c"}),
        ("swapped arguments", "f(a, b, 2)", {"f(b, a, 2)"}),
        ("swapped arguments", "x = max(a, b)", set()),
        ("function", "x = np.log(a)", {"x = np.log1p(a)"}),
        ("function", "x = min(a, b)", {"x = max(a, b)"}),
        ("axis", "x = np.sum(a, axis=1)", {"x = np.sum(a, axis=0)"}),
        ("axis", "x = a.sum(0)", {"x = a.sum(-1)"}),
        ("axis", "x = a.sum(-1)", {"x = a.sum(0)"}),
        ("transposition", "x = a.T @ b", {"x = a @ b"}),
        ("dropped statement", "a += b", {"pass"}),
        ("dropped statement", "self.a = b", {"pass"}),
        ("dropped statement", "a[0] = b", {"pass"}),
        ("dropped statement", "a.sort()", {"pass"}),
        ("dropped statement", "a = b", set()),
    ],
)  # fmt: skip
def test_an_operator(operator, source, expected):
    def meaning(texts):
        return {ast.dump(ast.parse(text)) for text in texts}

    assert meaning(changes(source, operator)) == meaning(expected)


SHOWN = '''
"""A docstring with 1 + 2 and True."""
from a import b
__all__ = ["a" + "b"]
if TYPE_CHECKING:
    import c


@compiled(cache=True)
def f(x: Sequence[2], y: Literal[1] = z) -> Annotated[int, 3]:
    """Return 1 + 1."""
    logger.warning("%d rows", len(x) - 1)
    if update is not None:
        update(t, f"{x + 1:.2f}")
    seconds = time.perf_counter() - started
    if x:
        raise InputError(f"{x - 1} rows", 1 + 1)
'''


def test_what_is_only_shown_gets_no_defect():
    assert made.mutants("a.py", SHOWN) == []


TWO_FILES = {
    "long.py": "".join(f"x{i} = a + {i}.5 * b\n" for i in range(60)),
    "short.py": "y = -a if b else c\n",
}


def test_a_sample_is_the_seeds_and_its_start_is_the_shorter_one():
    sample = made.draw(TWO_FILES, 40, seed=1)
    assert sample == made.draw(TWO_FILES, 40, seed=1)
    assert sample[:15] == made.draw(TWO_FILES, 15, seed=1)
    assert sample != made.draw(TWO_FILES, 40, seed=2)
    assert len({m.key(TWO_FILES[m.path]) for m in sample}) == 40
    assert made.draw({}, 5, seed=1) == []


def test_neither_a_long_file_nor_a_common_operator_fills_a_sample():
    """360 mutants against 2: the short file's share is sqrt(2 / 360), not 2 / 362."""
    total = [len(made.mutants(path, text)) for path, text in TWO_FILES.items()]
    assert total[0] > 100 * total[1] > 100
    sample = made.draw(TWO_FILES, 40, seed=1)
    assert {m.path for m in sample} == set(TWO_FILES)
    counts = [sum(m.operator == o for m in sample) for o in ("arithmetic", "constant")]
    assert max(counts) - min(counts) <= 1


def test_a_mutant_of_a_real_file_is_one_change_that_parses():
    path = "models/rfvm.py"
    source = (ROOT / path).read_text()
    for mutant in made.draw({path: source}, 25, seed=1):
        assert ast.dump(ast.parse(mutant.applied(source))) != ast.dump(ast.parse(source))


# --- the run --------------------------------------------------------------------------------------


def test_files_that_only_show_something_are_left_out():
    names = set(mutation.sources())
    assert {
        "models/rfvm.py",
        "inference/papers/rfvm/vb.py",
        "inference/fits/diagnostics.py",
    } <= names
    assert not any(name.endswith(("plots.py", "progress.py")) for name in names)
    assert set(mutation.sources("models/")) == {n for n in names if n.startswith("models/")}


def test_the_nearest_tests():
    tests = [
        "tests/inference/papers/pfcvm/test_lp.py",
        "tests/inference/papers/rfvm/test_vb.py",
        "tests/inference/test_contract.py",
        "tests/models/test_contract.py",
        "tests/models/test_jcfo.py",
        "tests/test_cli.py",
    ]
    assert mutation.nearest("inference/papers/rfvm/factors.py", tests) == tests[1:3]
    assert mutation.nearest("inference/papers/optimality.py", tests) == tests[:3]
    assert mutation.nearest("models/rfvm.py", tests) == tests[3:5]
    assert mutation.nearest("inference/approximations/advi.py", tests) == tests[2:3]


def test_a_defect_is_in_the_copy_and_goes_again(tmp_path):
    source = "x = a + b\n"
    (tmp_path / "a.py").write_text(source)
    mutant = made.mutants("a.py", source)[0]
    with suppress(KeyboardInterrupt), mutation.defect(tmp_path, mutant):
        assert (tmp_path / "a.py").read_text() == "x = a - b\n"
        raise KeyboardInterrupt
    assert (tmp_path / "a.py").read_text() == source


def test_links_are_copied_as_links(tmp_path):
    """The packages of `ardvark` are links to folders at the top."""
    root = tmp_path / "project"
    (root / "models").mkdir(parents=True)
    (root / "models" / "a.py").write_text("x = 1\n")
    (root / "package").mkdir()
    (root / "package" / "models").symlink_to("../models")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    copy = mutation.copy_of_the_project(tmp_path / "copy", root)
    assert (copy / "package" / "models").is_symlink()
    assert (copy / "package" / "models" / "a.py").read_text() == "x = 1\n"


def test_the_copy_is_what_is_imported(tmp_path):
    """Also where an editable install finds the packages elsewhere."""
    hook = tmp_path / "lab" / "defects" / "mutation_site" / "sitecustomize.py"
    packages = [tmp_path / name / "__init__.py" for name in ("ardvark", "models")]
    for file in (hook, *packages):
        file.parent.mkdir(parents=True)
        file.touch()
    hook.write_text((ROOT / hook.relative_to(tmp_path)).read_text())
    code = "import ardvark, ardvark.models as m; print(ardvark.__file__); print(m.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(hook.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [str(file) for file in packages]


def test_a_survivor_of_the_nearest_tests_has_still_to_meet_the_rest(tmp_path):
    def found(outcome, stages):
        return {"outcome": outcome, "stages": stages}

    whole = Namespace(again=None, nearest=False)
    assert not mutation.settled(None, whole)
    assert mutation.settled(found("killed", 1), whole)
    assert not mutation.settled(found("survived", 1), whole)
    assert mutation.settled(found("survived", 2), whole)
    assert mutation.settled(found("survived", 1), Namespace(again=None, nearest=True))
    assert not mutation.settled(found("survived", 2), Namespace(again="survived", nearest=False))
