"""Joint tests of Markov kernels: on a toy, right and wrong, killed and resumed."""

import json

import numpy as np
import pytest

from ardvark.inference.checks.joint import joint_test
from tests.inference.checks.toy import Gibbs, gibbs, make_toy
from tests.support import ALARM, seed


@pytest.fixture
def toy():
    return make_toy()


@pytest.mark.statistical
@pytest.mark.parametrize("wrong", [{}, {"factor": 3.0}, {"deaf": True}, {"seeded": False}], ids=str)
def test_joint_test_of_a_known_kernel(toy, wrong):
    """Over twelve seeds -log10 of a wrong kernel's p-value is 70, 100 and 21 on average.

    The last has a standard deviation of 3, and the limit is at 5.5.
    """
    settings = {"replicates": 800, "sweeps": 3, "references": 19, "random_seed": seed()}
    found = joint_test(toy, gibbs(**wrong), **settings)
    assert found.failed == 0
    assert (found.p_value > ALARM) == (not wrong)
    if "deaf" in wrong:
        assert found.table.loc[["theta", "bit"], "p_value"].min() > ALARM / 2


@pytest.mark.statistical
def test_a_kernel_that_never_moves_is_invariant(toy):
    """What the joint test cannot see: slowness. Simulation-based calibration can."""
    settings = {"replicates": 300, "random_seed": seed(), "called": "a still chain"}
    found = joint_test(toy, gibbs(still=True), **settings)
    assert found.text().startswith("joint-toy-a still chain: 300 replicates\n")
    assert found.p_value > ALARM


# --- killed and resumed ---------------------------------------------------------------------------


def test_a_killed_run_goes_on_where_it_was(toy, tmp_path):
    settings = {"sweeps": 2, "references": 9}
    whole = joint_test(toy, gibbs(), replicates=9, **settings)

    done = []

    class Killed(Gibbs):
        def set_labels(self, y):
            done.append(1)
            if len(done) == 5:
                raise KeyboardInterrupt
            super().set_labels(y)

    kernels = [Killed, Gibbs]

    def make_kernel(problem):
        return kernels.pop(0)(problem)

    with pytest.raises(KeyboardInterrupt):
        joint_test(toy, make_kernel, replicates=9, folder=tmp_path, **settings)
    (path,) = tmp_path.iterdir()
    assert path.name.startswith("joint-toy-make_kernel-")
    lines = path.read_text().split("\n")[1:]
    assert [json.loads(line)["replicate"] for line in lines] == [0, 1, 2, 3]
    path.write_text("\n" + "\n".join(lines)[:-20])  # killed in the middle of a line
    resumed = joint_test(toy, make_kernel, replicates=9, folder=tmp_path, **settings)
    np.testing.assert_array_equal(resumed.ranks, whole.ranks)
    found = [json.loads(line) for line in path.read_text().splitlines() if line[-1:] == "}"]
    assert [r["replicate"] for r in found] == list(range(9))  # 3 was done again, nothing else

    # nothing is left to do; a shorter run reads the same file, other settings do not
    def refuse(problem):
        raise AssertionError("must not be made")

    refuse.__qualname__ = refuse.__name__ = make_kernel.__name__
    refuse.__qualname__ = make_kernel.__qualname__
    for n in (9, 4):
        again = joint_test(toy, refuse, replicates=n, folder=tmp_path, **settings)
        np.testing.assert_array_equal(again.ranks, whole.ranks[:n])
    for other in ({"sweeps": 3}, {"references": 8}, {"random_seed": 1}):
        with pytest.raises(AssertionError):
            joint_test(toy, refuse, replicates=4, folder=tmp_path, **settings | other)


def test_one_failure_loses_nothing_and_is_tried_again(toy, tmp_path):
    broken = [True]

    def make_kernel(problem):
        class Fragile(Gibbs):
            def sweep(self, state, generator):
                if broken[0] and self.y[0] < 0:
                    raise ZeroDivisionError("a bug")
                super().sweep(state, generator)

        return Fragile(problem)

    settings = {"replicates": 12, "sweeps": 1, "references": 9, "folder": tmp_path}
    found = joint_test(toy, make_kernel, **settings)
    assert 0 < found.failed < 12
    assert found.reasons == ("ZeroDivisionError: a bug",) * found.failed
    assert len(found.ranks) == 12 - found.failed
    broken[0] = False
    found = joint_test(toy, make_kernel, **settings)
    assert found.failed == 0
    whole = joint_test(toy, make_kernel, **settings | {"folder": None})
    np.testing.assert_array_equal(found.ranks, whole.ranks)
