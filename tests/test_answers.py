"""What `choose`, `panel` and the lists of the command line say, word by word (`snapshots/`)."""

import dataclasses
import re

import numpy as np
import pandas as pd
import pytest
import typer
from scipy import special

import ardvark as av
from ardvark.cli.app import app
from ardvark.inference import Choice
from ardvark.inference.choosing.page import page
from ardvark.inference.panels.page import panel_page
from tests.inference.comparison.quick import registered
from tests.inference.panels.ridge import Ridge, fitted
from tests.spoken import spoken

# --- choose ---------------------------------------------------------------------------------------

ROWS, FOLDS = 41, 4
SURE, UNSURE = 0.011, 0.61
"""Noise of the log score from row to row."""


def choice(unconverged=0, error=0.0, failed="", ones=20, repeats=1, **leads):
    """Return a choice of candidates with a mean log score and its noise; shares are "share"."""
    g, log_p = np.random.default_rng(1), {}
    y = (np.arange(ROWS) % 41 < ones).astype(int)
    folds = np.stack([g.permutation(np.arange(ROWS) % FOLDS) for _ in range(repeats)], axis=1)
    for name, (mean, noise) in leads.items():
        own = mean + noise * g.normal(size=(ROWS, repeats))
        own = np.clip(own, -9.0, -1e-3)
        pair = np.stack([own, np.log1p(-np.exp(own))], axis=-1)
        log_p[name] = np.where((y == 0)[:, None, None], pair, pair[..., ::-1])
    plain = {name: name for name in ("l1", "ridge", "share")}
    asked = {name: plain.get(name, {"model": name}) for name in (*leads, *filter(None, [failed]))}
    first = next(iter(leads))
    fits = [
        {"candidate": name, "fold": fold, "status": "finished", "reason": "", "seconds": 1.3}
        | {"error": error * ROWS / 2.0 * (name == first)}
        for name in asked
        for fold in range(FOLDS * repeats)
    ]
    for row in fits[:unconverged]:
        row |= {"status": "not_converged", "reason": "too few draws"}
    for row in fits:
        if row["candidate"] == failed:
            row |= {"status": "failed", "reason": "FitFailed: it was told to"}
    return Choice("made", asked, y, folds, log_p, pd.DataFrame(fits))


CHOICES = {
    "clearly better": choice(
        rfvm=(-0.31, SURE), l1=(-0.52, SURE), ridge=(-0.63, SURE), share=(-0.69, 0)
    ),
    "cannot be told apart": choice(
        rfvm=(-0.5, UNSURE), jcfo=(-0.51, UNSURE), l1=(-0.52, UNSURE), share=(-2.9, SURE)
    ),
    "beaten": choice(rfvm=(-0.61, SURE), pfcvm=(-0.67, SURE), l1=(-0.33, SURE)),
    "no better than a guess": choice(rfvm=(-0.83, SURE), share=(-0.69, 0)),
    "hardly better than a guess": choice(rfvm=(-0.66, UNSURE), share=(-0.75, 0)),
    "alone": choice(rfvm=(-0.66, UNSURE)),
    "ended early": choice(3, 0.001, rfvm=(-0.5, UNSURE), l1=(-0.52, UNSURE)),
    "noisy": choice(3, 0.13, rfvm=(-0.5, UNSURE), l1=(-0.52, UNSURE)),
    "failed": choice(failed="jcfo", rfvm=(-0.5, UNSURE), share=(-0.7, SURE)),
    "few events, twice": choice(ones=9, repeats=2, l1=(-0.4, UNSURE), share=(-0.6, SURE)),
    "many": choice(
        **{f"candidate {k} with a long name": (-0.5 - k / 90, UNSURE) for k in range(12)}
    ),
}


def test_choices(snapshot):
    texts = [f"{name}\n\n{found.text()}" for name, found in CHOICES.items()]
    for text in texts:
        assert max(map(len, text.splitlines())) <= 80
    snapshot("choose", "\n\n\n".join(texts))


def test_the_page_of_a_choice(snapshot):
    found = CHOICES["cannot be told apart"]
    said = spoken(page(found, "ardvark choose own.csv"), pointed=True)
    plot = found.plot()
    snapshot("choose-page", f"{said}\n{found.plot().alt}\n{plot.figure.get_suptitle()}")


# --- panel ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def panel():
    """A panel of a table with text, missing values and two columns always in."""
    g = np.random.default_rng(6)
    X = g.normal(size=(83, 9))
    score = 2.5 * X[:, 0] - 2.5 * X[:, 1] + 1.2 * X[:, 2]
    y = np.where(g.uniform(size=83) < special.expit(score), "well", "ill")
    X[:, 5] = X[:, 0] + 0.3 * X[:, 5]
    names = [f"gene {k}" for k in range(9)]
    names[5] += ", whose name is longer than a line has room for"
    frame = pd.DataFrame(X * 10.0 ** np.arange(-4, 5), columns=names)
    frame["gene 8"] = np.where(X[:, 8] > 0, "high", "low")
    frame.insert(0, "sex", np.resize(["m", "f", "f"], 83))
    frame.insert(0, "age", np.resize([41.0, 50.0, 92.0], 83))
    frame.loc[3, ["age", "gene 2"]] = np.nan
    with pytest.MonkeyPatch.context() as patch:
        registered(patch, Ridge)
        data = av.table(frame.assign(status=y), "status", encode="onehot", impute="median")
        train, test = data.split(0.25, random_seed=1)
        problem, fit = fitted(train, None, always=["age", "sex"])
        return av.panel(problem, fit, test=test, folds=3, progressbar=False)


def test_panels(snapshot, panel):
    doubted = {"not_converged": ("fold 1", "fold 3"), "few_events": ("fold 2",)}
    several = {
        "as it was found": panel,
        "three of them": panel.at(3),
        "none is needed": dataclasses.replace(panel, suggested=0, size=0),
        "none is enough": dataclasses.replace(panel, suggested=None, size=None, **doubted),
        "without P(effect)": dataclasses.replace(panel.at(1), selected_by_p_active=None),
        "none has an effect": dataclasses.replace(panel, selected_by_p_active=()),
    }
    texts = []
    for name, found in several.items():
        lines = found.text().splitlines()
        assert len(lines) <= 32
        assert max(map(len, lines)) <= 80
        texts.append(f"{name}\n\n{found.text()}\n\n{found.plot().get_suptitle()}")
    for wrong in (lambda: panel.at(10), lambda: several["none is enough"].coefficients):
        with pytest.raises(av.InputError) as raised:
            wrong()
        texts.append(str(raised.value))
    snapshot("panel", "\n\n\n".join(texts))


def test_the_page_and_the_file_of_a_panel(snapshot, panel, tmp_path):
    panel.at(3).to_csv(tmp_path / "panel.csv")
    told = pd.read_csv(tmp_path / "panel.csv", index_col="name").round(6)
    said = spoken(panel_page(panel.at(3), "ardvark panel out --size 3"))
    none = panel_page(dataclasses.replace(panel, suggested=None, size=None), "ardvark panel out")
    snapshot("panel-page", f"{said}\n\n{told.to_string()}\n\n{spoken(none)[:400]}")


# --- lists ----------------------------------------------------------------------------------------


def test_every_option_of_a_command(snapshot):
    """What `--help` says, without its frame: words, defaults and ranges."""

    def options(command, name):
        about = " ".join((command.help or "").split())
        lines = [f"$ {name}", about]
        for p in sorted(command.params, key=lambda p: p.name):
            words = " ".join(p.opts + p.secondary_opts)
            ends = " to ".join(str(getattr(p, end, None)) for end in ("min", "max"))
            told = f"{ends}, default {p.default}, {'several' if p.multiple else 'one'}"
            if "completion" not in p.name:  # Typer's own
                lines.append(f"  {words}: {p.help} [{told}]")
        for sub, one in getattr(command, "commands", {}).items():
            lines += options(one, f"{name} {sub}")
        return lines

    snapshot("options", "\n".join(options(typer.main.get_command(app), "ardvark")))


def test_lists_of_the_command_line(snapshot, command):
    lines = []
    for words in ("models", "methods", "data", "data Digits38", "data fetch Digits38",
                  *(f"models {name}" for name in av.ZOO), "methods nuts", "methods pfcvm_lp",
                  "data digits38_noisy",
                  "methods --for fsklr digits38",
                  *(f"models {name} --bibtex" for name in av.ZOO)):  # fmt: skip
        done = command(*words.split())
        assert done.returncode == 0, done.stderr
        assert "--bibtex" in words or max(map(len, done.stdout.splitlines())) <= 80
        lines += [f"$ ardvark {words}", done.stdout]
    # what was measured is measured again
    snapshot("lists", re.sub(r"\d+(\.\d)? (s|GB)\b", r"NUMBER \2", "\n".join(lines)))
