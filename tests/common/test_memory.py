"""How much memory there is to take, under the limits of control groups too."""

from types import SimpleNamespace

import pytest

from ardvark.common import memory

GB = 10**9


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine with 10 GB free, whose control groups are files in a folder."""
    monkeypatch.setattr(memory.psutil, "virtual_memory", lambda: SimpleNamespace(available=10 * GB))
    monkeypatch.setattr(memory, "ROOT", tmp_path / "groups")
    monkeypatch.setattr(memory, "OWN", tmp_path / "own")
    monkeypatch.setattr(memory, "_part", float("inf"))

    def write(own, **files):
        (tmp_path / "own").write_text(own + "\n")
        for name, content in files.items():
            path = tmp_path / "groups" / name.replace("__", "/")
            path = path.with_name(path.name.replace("_dot_", "."))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(str(content) + "\n")

    return write


def test_without_control_groups_it_is_what_the_system_says(machine):
    assert memory.free() == 10 * GB
    assert memory.allowed() == 5 * GB


def test_a_group_of_version_two_limits_and_so_does_its_parent(machine):
    machine(
        "0::/a/b",
        **{
            "a__b__memory_dot_max": "max",
            "a__b__memory_dot_current": GB,
            "a__memory_dot_max": 6 * GB,
            "a__memory_dot_current": 3 * GB,
            "a__memory_dot_stat": f"anon {GB}\ninactive_file {2 * GB}",
        },
    )
    assert memory.free() == 5 * GB  # 6 - 3, and 2 of files that can be dropped
    machine("0::/a/b", a__b__memory_dot_max=2 * GB)
    assert memory.free() == GB


def test_a_group_of_version_one(machine):
    files = {
        "memory__c__memory_dot_limit_in_bytes": 4 * GB,
        "memory__c__memory_dot_usage_in_bytes": GB,
        "memory__c__memory_dot_stat": f"total_inactive_file {GB // 2}",
        "memory__memory_dot_limit_in_bytes": 2**63 - 4096,
        "memory__memory_dot_usage_in_bytes": 9 * GB,
    }
    machine("5:cpu,cpuacct:/c\n4:memory:/c\n0::/", **files)
    assert memory.free() == 3.5 * GB


def test_nothing_is_left_of_a_group_that_is_full(machine):
    machine("0::/", memory_dot_max=GB, memory_dot_current=2 * GB)
    assert memory.free() == memory.allowed() == 0.0


def test_a_process_of_several_has_its_part(machine):
    memory.limit(2 * GB)
    assert memory.allowed() == 2 * GB
    memory.limit(8 * GB)
    assert memory.allowed() == 5 * GB


def test_the_system_of_this_machine_is_read():
    assert 0.0 <= memory.allowed() <= memory.free() < 1e15
