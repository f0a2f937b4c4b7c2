"""FS-SKLR's own search beside the exact posterior: inclusion probabilities, masks, test scores.

    python -m benchmarks.fsklr_masks > benchmarks/FSKLR_MASKS.md       (ARDVARK_DATA for sonar)

70 % of the rows are fitted, 30 % are held out. `gibbs` runs four chains of 4000 sweeps; the search
is repeated with ten seeds, because it is one: how often a feature is in its result says how far
two runs agree. The share of visited states is that of the first search's feature stage.
"""

import numpy as np
import pandas as pd

import ardvark as av
from ardvark.inference.fits import diagnostics
from ardvark.inference.fits.datatree import group
from ardvark.inference.scoring.columns import table_text
from ardvark.inference.scoring.measures import score

SEEDS = 10
LEAST = 0.3  # inclusion probability from which a feature is listed


def markdown(frame: pd.DataFrame) -> str:
    """Return the frame as a table in Markdown."""
    rows = [["", *map(str, frame.columns)], ["---"] * (len(frame.columns) + 1)]
    rows += [
        [str(name), *map(str, values)]
        for name, values in zip(frame.index, frame.values, strict=True)
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def compare(name: str) -> None:
    train, test = av.load(name).split(test=0.3, random_seed=0)
    problem = av.problem("fsklr", train)
    quiet = {"progressbar": False}
    exact = av.fit(problem, "gibbs", draws=4000, random_seed=0, **quiet)
    searches = [av.fit(problem, "fsklr_savb", random_seed=s, **quiet) for s in range(SEEDS)]
    fits = {"gibbs": exact, "fsklr_savb": searches[0]}
    comparison = av.compare(fits, problem=problem, test=test)
    h = problem.hypers
    print(f"\n## {name}: {train.N} rows fitted, {test.N} held out, D = {train.D}\n")
    print(f"delta {h.delta:.4g}, xi {h.xi:g}, a_zeta {h.a_zeta:g}, a_z {h.a_z:g}\n")
    print(markdown(table_text(comparison.table)))

    scores = pd.DataFrame([score(problem, s, test) for s in searches])
    selected = np.array([group(s, "fit")["selected_feature"].values for s in searches], dtype=bool)
    samples = np.array([group(s, "fit")["selected_sample"].values for s in searches], dtype=bool)
    means, spread = scores.mean(), scores.std(ddof=1)
    print(
        f"\nThe search over {SEEDS} seeds (mean, sd): accuracy {means['accuracy']:.3f}, "
        f"{spread['accuracy']:.3f}; log score {means['log_score']:.3f}, "
        f"{spread['log_score']:.3f}; features {selected.sum(1).mean():.1f}, "
        f"{selected.sum(1).std(ddof=1):.1f}; samples {samples.sum(1).mean():.1f}, "
        f"{samples.sum(1).std(ddof=1):.1f}."
    )
    overlap = [
        (a & b).sum() / max((a | b).sum(), 1) for i, a in enumerate(selected) for b in selected[:i]
    ]
    found = diagnostics.inclusion(group(exact, "posterior")["feature_weight"])
    p = found["probability"].values
    median_mask = p > 0.5
    agree = [(a & median_mask).sum() / max((a | median_mask).sum(), 1) for a in selected]
    posterior = group(exact, "posterior")
    features = posterior["feature_weight"].sum("feature").values
    on = (posterior["sample_weight"] != 0).sum("basis").values
    print(
        f"Jaccard index of two searches' features: {np.mean(overlap):.2f}; of a search's and those "
        f"with an inclusion probability above 0.5: {np.mean(agree):.2f}. Number of features under "
        f"the posterior {features.mean():.1f}, sd {features.std():.1f}; of samples "
        f"{on.mean():.1f}, sd {on.std():.1f}.\n"
    )
    first = group(searches[0], "fit")
    visited = first["visited_zeta"].values[first["stage"].values == 1].mean(0)
    listed = np.flatnonzero((p >= LEAST) | selected[0])
    listed = listed[np.argsort(-p[listed])]
    names = np.array(train.feature_names)
    frame = pd.DataFrame(
        {
            "gibbs": [f"{p[k]:.3f}" for k in listed],
            "MC error": [f"{found['mcse'].values[k]:.3f}" for k in listed],
            "chain spread": [f"{found['spread'].values[k]:.3f}" for k in listed],
            "share of visited": [f"{visited[k]:.2f}" for k in listed],
            "selected": ["yes" if selected[0, k] else "" for k in listed],
            f"selected, of {SEEDS}": [str(selected[:, k].sum()) for k in listed],
        },
        index=names[listed],
    )
    print(markdown(frame))
    rest = np.setdiff1d(np.arange(train.D), listed)
    if len(rest):
        print(
            f"\nThe other {len(rest)} features: inclusion probability {p[rest].mean():.3f} on "
            f"average, at most {p[rest].max():.3f}."
        )


def main() -> None:
    print("# FS-SKLR: the paper's search beside the exact posterior\n")
    print("Made by `python -m benchmarks.fsklr_masks > benchmarks/FSKLR_MASKS.md`. The search is")
    print("no sample of the posterior: its visited states are shown for what they are.")
    for name in ("digits38_noisy", "sonar"):
        compare(name)


if __name__ == "__main__":
    main()
