"""One command at a time writes to a folder."""

import pytest

from ardvark.common.validate import InputError
from ardvark.common.writer import one_writer


def test_one_command_at_a_time_writes_to_a_folder(command, tmp_path):
    out = tmp_path / "matrix"
    for words, folder in (
        (["fsklr-2", "--only", "l1_logistic"], tmp_path / "paper_check" / "folds"),
        (["matrix", "--only", "rfvm/allaml/flat"], out),
    ):
        where = ["--out", out if words[0] == "matrix" else tmp_path]
        with one_writer(folder):
            refused = command("reproduce", *words, *where)
        assert refused.returncode == 2
        assert refused.stderr == (
            f"ardvark: another command writes to {folder}. Wait until it has ended, or choose "
            "another folder with --out.\n"
        )
        assert [path.name for path in folder.iterdir()] == [".lock"]
    with one_writer(out), pytest.raises(InputError, match="another command"), one_writer(out):
        pass
    with one_writer(out):  # the file of an earlier one is in nobody's way
        pass
