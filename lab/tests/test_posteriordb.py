"""The judge on posteriordb: the check sees a wrong twin, and the page says what is stored."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from scipy import stats

from ardvark.common.validate import InputError
from lab import tables
from lab.posteriordb import identities, trial, twins
from lab.posteriordb.database import Database
from tests.support import rng

HERE = Path(trial.__file__).parent
N = 40


@pytest.fixture
def database(tmp_path):
    """One posterior in the layout of posteriordb: a normal mean with its exact draws."""
    root = tmp_path / "posterior_database"
    draws = root / "reference_posteriors" / "draws" / "draws"
    for folder in (root / "posteriors", root / "data" / "data", draws):
        folder.mkdir(parents=True)
    about = {"data_name": "d", "reference_posterior_name": "toy"}
    (root / "posteriors" / "toy.json").write_text(json.dumps(about))
    chains = [{"beta[1]": [0.0, 1.0], "beta[2]": [2.0, 3.0], "sigma": [1.0, 2.0]}] * 3
    for path, content in (
        (root / "data" / "data" / "d.json", {"N": 2}),
        (draws / "toy.json", chains),
    ):
        with zipfile.ZipFile(f"{path}.zip", "w") as archive:
            archive.writestr(path.name, json.dumps(content))
    return Database(tmp_path)


def test_a_clone_is_read(database, tmp_path):
    assert database.data("toy") == {"N": 2}
    draws = database.draws("toy")
    assert draws["sigma"].shape == (3, 2)
    together = identities.collected(draws)
    assert together["beta"].shape == (6, 2)
    assert together["beta"][1].tolist() == [1.0, 3.0]
    assert together["sigma"].tolist() == [1.0, 2.0] * 3
    with pytest.raises(InputError, match="no clone of posteriordb"):
        Database(tmp_path / "posterior_database" / "data").data("toy")


def regression(scale=0.0):
    """A twin of a line with known data; `scale` gives sigma a prior that the draws do not have."""
    x = np.linspace(-1.0, 2.0, N)
    data = {"x": x, "y": 1.0 + x + np.random.default_rng(3).normal(size=N)}
    return twins.line(twins.response("y"), twins.given("x"), cauchy=scale)(data), data


def exact_draws(data, count=2000):
    """Draws of a line under flat priors: sigma^2 is scaled inverse chi^2, beta normal given it.

    Under p(beta, sigma) = 1 the marginal law of sigma^2 has N - k - 1 degrees of freedom.
    """
    X = np.column_stack([np.ones(N), data["x"]])
    inverse = np.linalg.inv(X.T @ X)
    mean = inverse @ X.T @ data["y"]
    rest = float(((data["y"] - X @ mean) ** 2).sum())
    sigma = np.sqrt(rest / stats.chi2.rvs(N - 3, size=count, random_state=rng(1)))
    noise = rng(2).normal(size=(count, 2)) @ np.linalg.cholesky(inverse).T
    return {"beta": mean + sigma[:, None] * noise, "sigma": sigma}


@pytest.mark.statistical
def test_the_identities_hold_for_a_right_twin_and_fail_for_a_wrong_one():
    """The wrong one has a half-Cauchy(0.3) prior of a sigma near 1: its slope there is -1.8.

    A mean slope of that size is 2000^1/2 x 0.1 x 1.8 = 8 standard errors, for log sigma has an sd
    of 0.11 and its own slope one of 9.
    """
    model, data = regression()
    draws = exact_draws(data)
    limit = stats.norm.isf(3e-6 / (2 * 12))
    z, count = identities.largest_z(model, identities.unconstrained(model, draws))
    assert count == 12
    assert z < limit
    other, _ = regression(scale=0.1)
    assert identities.largest_z(other, identities.unconstrained(other, draws))[0] > limit


def test_the_truth_of_a_fit_by_hand():
    """A shift of half an sd in one component, three fifths of the sd in the other."""
    generator = rng(4)
    known = {f"beta[{k}]": generator.normal(size=(4, 500)) for k in (1, 2)}
    mine = np.stack([known["beta[1]"] + 0.5 * known["beta[1]"].std(ddof=1),
                     0.6 * known["beta[2]"]], axis=-1)  # fmt: skip
    import xarray as xr

    tree = xr.DataTree.from_dict(
        {"/posterior": xr.Dataset({"beta": (("chain", "draw", "k"), mine)})}
    )
    found = trial.truth(tree, known)
    assert found["mean off by"] == pytest.approx(0.5)
    assert (found["of"], found["its"]) == ("beta[1]", "beta[2]")
    assert found["smallest sd ratio"] == pytest.approx(0.6)
    assert found["z"] > 5.0


def test_every_twin_has_an_expectation_and_the_density_of_posteriordb():
    """As stored: the largest z of a right twin passes its limit once in a thousand."""
    names = [*twins.TWINS, *twins.UNSEEN]
    assert len(names) >= 15
    assert tables.read(HERE / "expected.csv")["posterior"].tolist() == names
    checked = tables.read(HERE / "identities.csv").set_index("posterior")
    assert checked.index.tolist() == names
    assert (checked["largest z"] < checked["limit"]).all()


@pytest.mark.parametrize("which", ["trial", "unseen"])
def test_no_verdict_is_wrong_by_the_rules_that_were_fixed(which):
    fits = tables.read(HERE / f"{which}.csv")
    names = list(twins.TWINS if which == "trial" else twins.UNSEEN)
    assert list(dict.fromkeys(fits["posterior"])) == names
    exact = fits[(fits["method"] == "exact") & (fits["level"] == "converged")]
    assert (exact["z"] < 4.0).all()
    assert len(exact) >= 0.8 * len(names)
    assert not (trial.wrong(fits) & (fits["level"] == "trust")).any()
    assert not (trial.right(fits) & (fits["level"] == "do not use")).any()


def test_centred_eight_schools_are_condemned_for_tau():
    fits = tables.read(HERE / "trial.csv").set_index(["posterior", "method"])
    row = fits.loc["eight_schools-eight_schools_centered", "advi"]
    assert row["level"] == "do not use"
    assert row["why"].startswith("tau:")


def test_the_page_has_the_stored_tables(tmp_path):
    page, copied = HERE / "POSTERIORDB.md", tmp_path / "POSTERIORDB.md"
    before = page.read_text()
    trial.publish()
    assert page.read_text() == before
    assert "<!-- table: trial_counts -->" in before
    copied.write_text(before)


def test_levels_are_counted_beside_the_truth():
    fits = pd.DataFrame(
        {
            "posterior": ["a", "b", "c"], "method": ["advi"] * 3,
            "level": ["trust", "trust", "do not use"], "mean off by": [0.0, 0.6, 0.05],
            "smallest sd ratio": [1.0, 1.0, 0.95], "largest sd ratio": [1.0, 1.0, 1.05],
        }
    )  # fmt: skip
    ahead = pd.DataFrame({"posterior": ["a", "b", "c"], "advi": ["trust", "not", "not"]})
    row = trial.counted(fits, ahead).set_index("method").loc["advi"]
    assert (row["trust"], row["do not use"]) == (2, 1)
    assert (row["wrong and trusted"], row["of wrong"]) == (1, 1)
    assert (row["right and condemned"], row["of right"]) == (1, 2)
    assert row["as expected"] == 2


@pytest.mark.parametrize("centred", [True, False])
def test_twins_are_models_with_the_names_of_the_reference(centred):
    model = twins.schools(centred)({"J": 2, "y": [1.0, 2.0], "sigma": [1.0, 1.0]})
    assert isinstance(model, pm.Model)
    assert {"mu", "tau", "theta"} <= {v.name for v in model.unobserved_RVs}
