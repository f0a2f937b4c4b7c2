"""What a stored notebook must not have, and the form that its exercises have."""

import ast
import importlib
import re
import sys

import nbformat

LARGEST = 1_000_000  # bytes
# an absolute path of two names or more (an address has a colon or a slash before it), or a drive
MACHINE = re.compile(r"(?<![\w/:.<])/[\w.-]+/[\w.-]|[A-Z]:\\|site-packages")

PACKAGES = {"ardvark", "arviz", "matplotlib", "numpy", "pandas", "pymc", "xarray"}
ALSO = {
    "01_sparsity": {"scipy"},  # densities, beside which the priors of the models are held
    "03_when_approximations_lie": {"scipy"},  # the distributions whose moments are formulas
    "04_your_data": {"sklearn"},  # its subject: the model as a part of scikit-learn
}
OBJECT = re.compile(r"<[^<>\n]* at 0x|<class '|<xarray\.")
"""An object that shows itself."""
PRINTED = re.compile(r"^[A-Z]\w*\(\w+=", re.MULTILINE)
"""Picture(figure=...) at the start of a line; inside a line it may be code that is printed."""
RESULT = re.compile(r"^[\[({]*(array|[A-Z]\w*)\(|np\.\w+\(|[A-Z]\w*\(\w+=")
"""Text(0.5, 1.0, ''), array([...]), (Dataset(...), Dataset(...)), np.float64(1.0)."""
LINES = 3  # of an output that is plain text and not printed
LEVELS = ("### Exercise 1 (easy)", "### Exercise 2 (medium)", "### Exercise 3 (hard)")
SOLUTION = re.compile(r"\s*<details>\s*<summary>Solution\s*</summary>.*</details>\s*", re.DOTALL)


def texts(output):
    """Every text of an output; pictures are not text."""
    if output.output_type == "stream":
        return [output.text]
    data = output.get("data", {})
    return [str(v) for k, v in data.items() if not k.startswith("image/")]


def pictures(cell):
    """How many pictures a cell shows."""
    shown = (o.get("data", {}) for o in cell.get("outputs", ()))
    return sum(any(kind.startswith("image/") for kind in data) for data in shown)


def flaws(notebook, also=frozenset()):
    """Return what a stored notebook must not have; `also` are packages that this one may import."""
    cells = [c for c in notebook.cells if c.cell_type == "code"]
    outputs = [o for c in cells for o in c.outputs]
    text = "\n".join(t for o in outputs for t in texts(o))
    found = {
        "not executed from top to bottom": [c.execution_count for c in cells]
        != list(range(1, len(cells) + 1)),
        "an error": any(o.output_type == "error" for o in outputs),
        "a warning or a log": any(o.get("name") == "stderr" for o in outputs)
        or re.search(r"\b[A-Z]\w*Warning:", text) is not None,
        "a progress bar": "\r" in text,
        "a figure without its picture": any(
            t.startswith("<Figure") and "image/png" not in o.get("data", {})
            for o in outputs
            for t in texts(o)
        ),
        "a path of this machine": MACHINE.search(text) is not None,
        "the state of a widget": "widgets" in notebook.metadata
        or any("widget" in kind for o in outputs for kind in o.get("data", {})),
        "times of execution": any("execution" in c.metadata for c in cells),
        "an assert": any(re.search(r"^\s*assert\b", c.source, re.MULTILINE) for c in cells),
        "too large": len(nbformat.writes(notebook).encode()) > LARGEST,
        "a raw repr": any(map(raw, outputs)),
        "a picture without alt text": any(
            pictures(c) and len(c.metadata.get("alt", "").split()) < 5 for c in cells
        ),
        "two pictures in a cell, which has one alt text": any(pictures(c) > 1 for c in cells),
        "alt text without a picture": any("alt" in c.metadata and not pictures(c) for c in cells),
        "something private": any(private(c.source, PACKAGES | also) for c in cells),
    }
    return [what for what, there in found.items() if there]


def raw(output):
    """Whether an output is what an object prints of itself, and not a table, text or picture."""
    data = output.get("data", {})
    if "xr-wrap" in data.get("text/html", ""):  # xarray's tree, of hundreds of lines
        return True
    if output.output_type != "stream" and len(data) > 1:  # its text stands for something better
        return False
    text = "\n".join(texts(output))
    if output.output_type == "stream":
        return bool(OBJECT.search(text) or PRINTED.search(text))
    return bool(OBJECT.search(text) or RESULT.search(text) or text.count("\n") >= LINES)


def private(source, packages):
    """Return what a cell imports or reads that is not public."""
    tree = ast.parse(source)
    found = [n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and own(n.attr)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if not allowed(alias.name, packages)]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found += [name for name in names if not allowed(name, packages)]
        elif isinstance(node, ast.Attribute) and (name := dotted(node)).startswith("av."):
            found += [] if allowed(f"ardvark{name[2:]}", packages) else [name]
    return found


def own(name):
    """Whether a name is private by its underscore."""
    return name.startswith("_") and not name.endswith("__")


def dotted(node):
    """Return a.b.c of an attribute of an attribute of a name, and nothing of anything else."""
    if isinstance(node, ast.Name):
        return node.id
    inside = dotted(node.value) if isinstance(node, ast.Attribute) else ""
    return f"{inside}.{node.attr}" if inside else ""


def allowed(name, packages):
    """Whether a lesson may use a name: a listed package's, and of ardvark's a public one."""
    package, *rest = name.split(".")
    if package != "ardvark":
        return package in packages or package in sys.stdlib_module_names
    room = importlib.import_module("ardvark")
    for part in rest:
        if part == "sklearn" and room.__name__ == "ardvark":
            room = importlib.import_module("ardvark.sklearn")
        elif part in getattr(room, "__all__", ()):
            room = getattr(room, part)
        else:  # an attribute of a public object is for that object to hide
            return not hasattr(room, "__path__")
    return True


def exercises(notebook):
    """Return what the exercises of a notebook lack."""
    cells = notebook.cells
    heads = [line for c in cells if c.cell_type == "markdown" for line in c.source.split("\n")]
    found = []
    if "## Summary" not in heads or "## Exercises" not in heads:
        return ["a summary, then exercises"]
    if heads.index("## Summary") > heads.index("## Exercises"):
        found.append("a summary, then exercises")
    at = [i for i, c in enumerate(cells) if re.search(r"^### Exercise", c.source, re.MULTILINE)]
    if tuple(line for line in heads if line.startswith("### Exercise")) != LEVELS:
        found.append("three exercises: easy, medium, hard")
    for start, end in zip(at, [*at[1:], len(cells)], strict=True):
        here = cells[start:end]
        folded = [i for i, c in enumerate(here) if SOLUTION.fullmatch(c.source)]
        if len(folded) != 1 or not executed(here[folded[0] + 1 :]):
            found.append("one folded solution, and its executed cell below it")
    return found


def executed(cells):
    """Whether the cells after a solution's text are its code: tagged, folded and run."""
    return bool(cells) and all(
        c.cell_type == "code"
        and "solution" in c.metadata.get("tags", ())
        and c.metadata.get("jupyter", {}).get("source_hidden") is True
        and c.execution_count is not None
        and c.outputs
        for c in cells
    )
