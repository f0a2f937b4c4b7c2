"""Write what `11_case` reads: what the commands say of a messy table that is made of colon.

    ARDVARK_DATA=... python notebooks/data/case.py [FOLDER]

(twenty minutes). The genes are real (Alon et al. 1999). Age, sex, batch and the gaps are simulated,
and so is what the batch does: it shifts some genes, and most tumours are measured in spring, after
it. The table and all results stay in FOLDER (results/case if none is given), where a run that was
stopped goes on. These files are written beside this one, and have no values of the data:

    case_NAME.txt           the screen of each of the commands in `COMMANDS`
    case_tissues.csv        how many tissues of each kind are in each batch
    case_genes.csv          the leading genes of the fits without and with covariates: P(active)
                            (of an effect above 0.1), effect with its 90 % interval, and whether
                            the batch shifts the gene
    case_shifted.csv        P(some shifted gene is active), how many are, and the same under the
                            prior
    case_odds.csv           odds ratios of the covariates
    case_choice.csv         the table of `ardvark choose`
    case_sizes.csv, case_folds.csv, case_panel.csv    the files of `ardvark panel`
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

import ardvark as av
from ardvark.cli.studies import problem_of, settings_of
from ardvark.data import Dataset
from ardvark.inference.comparison import study
from ardvark.inference.fits.activity import activity
from ardvark.inference.fits.prior_activity import prior_activity
from ardvark.inference.fits.selection import select_at, weights_of
from ardvark.models import Problem
from ardvark.models.parts.effects import VISIBLE

HERE = Path(__file__).parent
SHIFTED, SHIFT = 40, 1.5  # genes, and standard deviations of each
LEADING = 16  # genes of each fit

TABLE = ["patients.csv", "--target", "tissue"]
MENDED = [*TABLE, "--encode", "onehot", "--impute", "median", "--row-names", "patient"]
MENDED += ["--na", "n.d.,?"]
ADJUSTED = [*MENDED, "--drop", "received", "--always", "age,sex,batch"]
SIZE = ["--effect", f"{VISIBLE:g}"]  # P(active) is that of an effect above it
COMMANDS = {
    "report": ["compare", "rfvm", *TABLE],
    "plain": [
        *["compare", "rfvm", *MENDED, "--drop", "received,age,sex,batch", "--methods", "exact"],
        *[*SIZE, "--out", "results/plain"],
    ],
    "adjusted": ["compare", "rfvm", *ADJUSTED, *SIZE, "--out", "results/adjusted"],
    "choose": [
        *["choose", *ADJUSTED, "--candidates", "rfvm,horseshoe,l1,elastic_net,ridge,share"],
        *["--out", "results/choose"],
    ],
    "panel": ["panel", "results/adjusted", "--sizes", "10"],
}
COPIED = {
    "choice": "choose/choice.csv",
    "sizes": "adjusted/panel-sizes.csv",
    "folds": "adjusted/panel-folds.csv",
    "panel": "adjusted/panel.csv",
}


def patients(data: Dataset) -> tuple[pd.DataFrame, list[str]]:
    """Return the messy table, and the names of the genes that its batch shifts."""
    rng = np.random.default_rng(11)
    N, D, ill = data.N, data.D, data.y == 1
    spring = rng.random(N) < np.where(ill, 0.8, 0.2)
    genes = pd.DataFrame(data.X, columns=data.feature_names)
    shifted = np.sort(rng.choice(D, min(SHIFTED, D // 3), replace=False))
    size = SHIFT * rng.choice([-1, 1], len(shifted)) * data.X[:, shifted].std(axis=0)
    genes.iloc[:, shifted] += np.outer(spring, size)
    genes = genes.round(3)
    for j in rng.choice(D, 12, replace=False):
        genes.iloc[rng.choice(N, 2, replace=False), j] = np.nan
    genes = genes.astype({genes.columns[7]: object})
    genes.iloc[rng.choice(N, 3, replace=False), 7] = "n.d."  # not detected
    received = pd.date_range("2024-01-08", periods=N, freq="3D").strftime("%d.%m.%Y")
    frame = pd.DataFrame(
        {
            "patient": [f"P{k:02d}" for k in range(1, N + 1)],
            "received": received,
            "age": rng.normal(np.where(ill, 66.0, 60.0), 8.0).round(),
            "sex": rng.choice(["f", "m"], N),
            "batch": np.where(spring, "spring", "autumn"),
            "tissue": np.array(data.class_names)[data.y],
        }
    )
    frame.loc[rng.choice(N, 3, replace=False), "age"] = np.nan
    frame.loc[rng.choice(N, 2, replace=False), "sex"] = "?"
    return pd.concat([frame, genes], axis=1), list(genes.columns[shifted])


def say(words: list[str], folder: Path) -> str:
    """Run a command in a folder, and return what it prints; of an error, the error."""
    command = [sys.executable, "-m", "ardvark", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else done.stderr


def write(name: str, table: pd.DataFrame) -> None:
    """Write a table of results, with the command that makes it on its first line."""
    header = f"# ARDVARK_DATA=... python notebooks/data/case.py; ardvark {av.__version__}\n"
    (HERE / f"case_{name}.csv").write_text(header + table.round(4).to_csv())


def exact(folder: Path) -> tuple[Problem, xr.DataTree]:
    """Return the problem and the exact fit of a study."""
    problem, _ = problem_of(settings_of(folder))
    return problem, study.load_fits(folder, problem)["exact"]


def beside(
    fits: dict[str, tuple[Problem, xr.DataTree]], shifted: list[str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return what each fit says of the leading genes, and of the shifted ones together."""
    found, together = {}, {}
    for name, (problem, fit) in fits.items():
        table = av.effects(select_at(problem, fit, VISIBLE))
        found[name] = table[["p_active", "effect", "low", "high"]]
        weights = weights_of(problem, fit["posterior"].to_dataset())
        active = activity(problem, weights, VISIBLE)["feature"].active
        here = active[..., np.isin(problem.feature_names, shifted)]
        before = prior_activity(problem, VISIBLE).active["feature"]
        before = before[:, np.isin(problem.feature_names, shifted)]
        together[name] = {
            "p_any": here.any(axis=-1).mean(),
            "prior_any": before.any(axis=-1).mean(),
            "active": here.sum(axis=-1).mean(),
            "prior_active": before.sum(axis=-1).mean(),
        }
    leading = [f["p_active"].sort_values(ascending=False).index[:LEADING] for f in found.values()]
    genes = pd.concat(found, axis=1).loc[list(dict.fromkeys(np.concatenate(leading)))]
    genes.columns = [f"{name}_{column}" for name, column in genes.columns]
    genes["shifted"] = genes.index.isin(shifted)
    return genes.rename_axis("gene"), pd.DataFrame(together).T.rename_axis("fit")


def main(folder: Path, data: Dataset) -> None:
    """Run the commands in a folder, and write the files."""
    folder.mkdir(parents=True, exist_ok=True)
    frame, shifted = patients(data)
    frame.to_csv(folder / "patients.csv", index=False)
    write("tissues", pd.crosstab(frame["batch"], frame["tissue"]))
    for name, words in COMMANDS.items():
        (HERE / f"case_{name}.txt").write_text(say(words, folder))
    results = folder / "results"
    fits = {name: exact(results / name) for name in ("plain", "adjusted")}
    genes, together = beside(fits, shifted)
    write("genes", genes)
    write("shifted", together)
    write("odds", av.effects(fits["adjusted"][1], "covariate"))
    for name, path in COPIED.items():
        if (results / path).exists():
            write(name, pd.read_csv(results / path, index_col=0))


if __name__ == "__main__":
    main(Path(sys.argv[1] if sys.argv[1:] else "results/case"), av.load("colon"))
