"""One command at a time writes to a folder."""

import pytest

from ardvark.common.validate import InputError
from ardvark.common.writer import one_writer


def test_one_command_at_a_time_writes_to_a_folder(tmp_path):
    out = tmp_path / "out"
    with (
        one_writer(out),
        pytest.raises(InputError, match=f"another command writes to {out}[.]"),
        one_writer(out),
    ):
        pass
    with one_writer(out):  # the file of an earlier one is in nobody's way
        pass
