"""A text search for an equation ends at one place: the docstring of the function it is in."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = ("models", "inference")
FILES = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
TAG = re.compile(r"(?:PFCVM|JCFO|FS-SKLR|RFVM) (?:\(\d+\)|[A-E]\.\d+|sec\. \d\.\d)")

EQUATIONS = {
    # PFCVM: Jiang et al. (2019)
    "PFCVM (3)": "models/parts/kernels/kernel.py:Kernel.gram",
    "PFCVM (4)": "models/pfcvm.py:decision",
    "PFCVM (8)": "models/parts/ard.py:logp",
    "PFCVM sec. 3.1": "models/parts/kernels/kernel.py:Kernel.gradient",
    "PFCVM (9)": "inference/papers/pfcvm/engine.py:Engine.Q",
    "PFCVM (10)": "inference/papers/pfcvm/engine.py:Engine.climb",
    "PFCVM (13)": "inference/papers/pfcvm/engine.py:Engine.curvatures",
    "PFCVM (14)": "inference/papers/pfcvm/engine.py:Engine.evidence",
    "PFCVM (15)": "inference/papers/pfcvm/lp.py:update_precisions",
    "PFCVM sec. 3.3": "inference/papers/pfcvm/lp.py:predict_paper",  # kappa
    # JCFO: Krishnapuram et al. (2004)
    "JCFO (3)": "models/parts/probit.py:probit_logp",
    "JCFO (12)": "models/jcfo.py:laplace_logp",
    "JCFO (16)": "inference/samplers/gibbs/probit_steps.py:draw_latent",
    "JCFO (19)": "inference/papers/jcfo/em_steps.py:maximise",
    "JCFO (23)": "inference/papers/jcfo/em_steps.py:latent_mean",
    "JCFO (24)": "inference/papers/jcfo/em_steps.py:profiled",
    "JCFO (28)": "inference/papers/jcfo/em_steps.py:profiled",
    "JCFO (29)": "inference/papers/jcfo/em_steps.py:profile",
    # FS-SKLR: Kojima and Tanaka (2017)
    "FS-SKLR (7)": "models/fsklr.py:decision",
    "FS-SKLR (19)": "models/parts/masks.py:log_mask_prior",
    "FS-SKLR (21)": "models/parts/masks.py:_log_counts",
    "FS-SKLR (28)": "inference/papers/fsklr/variational.py:_value",
    "FS-SKLR (33)": "inference/papers/fsklr/variational.py:precision_root",
    "FS-SKLR (34)": "inference/papers/fsklr/variational.py:jaakkola_jordan",
    "FS-SKLR (35)": "inference/papers/fsklr/variational.py:logistic",
    # RFVM: Belenguer-Llorens et al. (2024)
    "RFVM (3)": "models/rfvm.py:decision",
    "RFVM (20)": "inference/papers/rfvm/factors.py:Factors.elbo",
    "RFVM (24)": "inference/papers/rfvm/vb.py:predict_paper",
    "RFVM C.17": "inference/papers/rfvm/factors.py:Factors.update_a",
    "RFVM C.25": "inference/papers/rfvm/factors.py:Factors.update_v",
    "RFVM C.27": "inference/papers/truncated_normal.py:folded",
    "RFVM C.44": "inference/papers/rfvm/factors.py:Factors.update_tau",
}


def docstrings(node, inside=""):
    """Yield the qualified name and the docstring of each function below a node."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{inside}{child.name}"
            if not isinstance(child, ast.ClassDef):
                yield name, ast.get_docstring(child) or ""
            yield from docstrings(child, f"{name}.")
        else:
            yield from docstrings(child, inside)


def places():
    """Return where each tag is: `file:function` for a docstring, `file` for any other text."""
    found = {}
    for path in FILES:
        text, name = path.read_text(), path.relative_to(ROOT).as_posix()
        rest = TAG.findall(text)
        for function, words in docstrings(ast.parse(text)):
            for tag in TAG.findall(words):
                found.setdefault(tag, []).append(f"{name}:{function}")
                rest.remove(tag)
        for tag in rest:
            found.setdefault(tag, []).append(name)
    return found


def test_every_tag_is_in_the_docstring_of_one_function():
    found = places()
    assert {tag: at for tag, at in found.items() if len(at) > 1 or ":" not in at[0]} == {}
    assert {tag: found.get(tag) for tag in EQUATIONS} == {
        tag: [at] for tag, at in EQUATIONS.items()
    }
    assert len(found) > 60
