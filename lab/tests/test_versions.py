"""Pages say of which version a figure is; records that are older than the code are listed."""

import subprocess
from types import SimpleNamespace

import pytest

from lab import check_records, origin, pages, records
from lab.defects import test_suite
from lab.records import Goal, Record

FILE = "models/parts/kernels/linear.py"
NOW = origin.code([FILE])
CODE = b'"""Said."""\nN = 2\n\n\ndef f(x, *, y=None):\n    return f"{x:.2f}" + ""\n'


@pytest.mark.parametrize(
    ("now", "same"),
    [
        (CODE.replace(b"Said", b"Said again"), True),
        (CODE.replace(b"N = 2", b"N = (2)  # two\n'''Of it.'''"), True),
        (CODE.replace(b"y=None", b"y=0"), False),
        (CODE.replace(b"N = 2", b"N = 3"), False),
        (CODE.replace(b' + ""', b""), False),
    ],
)
def test_a_hash_is_of_code_alone(now, same):
    assert (origin.hash_of(now) == origin.hash_of(CODE)) == same


def test_a_hash_is_the_same_on_each_python():
    assert origin.hash_of(CODE) == "b924a141"
    assert origin.hash_of(b"a", ".stan") != origin.hash_of(b"a ", ".stan")


def test_a_folder_stands_for_its_python_files():
    found = origin.code(["models/parts/kernels", "models/rvm.py"])
    assert {FILE, "models/rvm.py", "models/parts/kernels/__init__.py"} < set(found)
    assert found[FILE] == NOW[FILE]
    assert not origin.changed(found)


def test_a_version_has_a_plus_where_code_has_changed_and_not_where_a_record_has(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(origin, "ROOT", tmp_path)
    assert origin.version() == "unknown"  # an installed package has no checkout

    def git(*words):
        who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        command = ["git", "-C", str(tmp_path), *who, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    names = ("models/rvm.py", "lab/script.py", "lab/results/some.json", "README.md")
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "first")
    commit = git("rev-parse", "HEAD")[:8]
    assert origin.version() == commit
    for name in names:
        (tmp_path / name).write_text("2")
        assert origin.version() == commit + "+" * name.endswith(".py"), name
        (tmp_path / name).write_text("1")


def of(code, **more):
    return Record(
        name="some", title="Some", date="2026-01-02", command="a --stored --b", commit="abc",
        machine={}, versions={}, goals=[Goal("a", "2 s", True)], measured=[], code=code, **more,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("code", "version", "since"),
    [
        (NOW, "", ""),
        ({}, " (version unknown)", " (version unknown)"),
        (
            NOW | {"models/gone.py": "1a2b3c4d"},
            " (older version)",
            " (older version; files changed since: 1)",
        ),
    ],
)
def test_only_what_this_code_met_is_met_without_a_word(code, version, since):
    goals, section = records.goals_table([of(code)]), records.render(of(code))
    assert goals.endswith(f"| 2 s | yes{version} |")
    assert f"commit abc{since}; " in section
    changed_nothing = goals.replace(version, ""), section.replace(since, "")
    if code:  # what is known of a record without files does not depend on the code
        assert (records.unmarked(goals), records.unmarked(section)) == changed_nothing
    else:
        assert records.unmarked(goals) == goals


def test_the_index_counts_what_is_met_in_another_version():
    marks = pages.marks(["", records.version(of({"gone": ""})), records.version(of({}))])
    assert marks == " (older version: 1) (version unknown: 1)"
    assert records.unmarked(marks) == " (version unknown: 1)"


def test_what_was_not_measured_is_of_no_version():
    assert records.met(Goal("a", "", None), of({})) == "not measured"


def test_the_records_that_are_older_are_listed(monkeypatch, capsys):
    found = {"now": of(NOW), "older": of({FILE: "0"}), "unknown": of({})}
    monkeypatch.setattr(records, "everything", lambda: found)
    assert check_records.main([]) == 0
    said = capsys.readouterr().out
    assert said.startswith("1 of 3 records are older")
    assert f"older: 2026-01-02, commit abc\n  changed: {FILE}\n  anew: a --b\n\n1 say" in said
    assert said.endswith("\n\nunknown: 2026-01-02, a --b\n")
    assert "now: " not in said
    for left, code in (("unknown", 1), ("older", 1), ("now", 0)):
        monkeypatch.setattr(records, "everything", lambda left=left: {left: found[left]})
        assert check_records.main(["--strict"]) == code


def test_the_default_run_is_that_of_the_makefile(tmp_path):
    assert test_suite.makefile_options()[:2] == ["-n", "auto"]
    outcomes = tmp_path / "outcomes.xml"
    outcomes.write_text(
        '<testsuites><testsuite tests="9" failures="1" errors="2" skipped="3"/></testsuites>'
    )
    assert test_suite.counted(outcomes) == {"passed": 3, "failed": 3, "skipped": 3}


def test_only_a_commit_is_tested(monkeypatch):
    """Else the record would name a version that was not tested."""
    monkeypatch.setattr(test_suite, "once", lambda _: pytest.fail("the tests were started"))
    monkeypatch.setattr(test_suite.subprocess, "run", lambda *_: SimpleNamespace(returncode=1))
    with pytest.raises(SystemExit, match="Commit your changes first"):
        test_suite.measure(SimpleNamespace(quick=False, times=1))
