"""What a method returns."""

import pytest

from ardvark.common.validate import InputError
from ardvark.inference.target.backend import STATUSES, Result


@pytest.mark.parametrize("status", STATUSES)
def test_a_result_has_one_of_three_statuses(status):
    assert Result({}, status=status).status == status


def test_a_word_of_ones_own_is_no_status():
    with pytest.raises(InputError, match="status must be one of 'finished', 'not_converged'"):
        Result({}, status="ok")
