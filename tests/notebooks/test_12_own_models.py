"""Models of your own, judged: three that are not the zoo's."""

import numpy as np
import pytest

from tests.notebooks.running import SIZES, values


@SIZES
@pytest.mark.usefixtures("size")
def test_own_models(full, tmp_path):
    plant, pumps, schools, better, factors, labels, refused, unchecked = values(
        "12_own_models", tmp_path,
        *(f"{{m: v.words['parameters'] for m, v in {name}_judged.verdict.items()}}"
          for name in ("plant", "pumps", "schools", "better")),
        "factors", "labels['predictions']['y'].shape", "refused", "unchecked",
    )  # fmt: skip
    # facts of the posteriors, far outside Monte Carlo error: sds of a half and of a quarter
    assert pumps["advi"] == pumps["laplace"] == schools["laplace"] == "bad"
    assert labels[-1] == 2
    assert refused
    assert unchecked
    assert factors.loc["air"].max() < 0.8
    if full:
        assert plant["exact"] == pumps["exact"] == better["exact"] == "good"
        assert plant["advi"] == "bad"
        assert plant["laplace"] == "rough"
        assert schools["advi"] == "bad"
        np.testing.assert_allclose(*factors.to_numpy().T, atol=0.2)
