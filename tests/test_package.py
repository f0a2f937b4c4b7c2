"""What holds for the package as a whole: imports, what is in the wheel, the citation."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def python(code, **variables):
    command, env = [sys.executable, "-c", code], os.environ | variables
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env)


def test_import_and_help_do_not_load_pymc():
    heavy = "{'pymc', 'pytensor', 'arviz', 'sklearn', 'scipy', 'numba', 'xarray'}"
    code = f"import sys, ardvark, ardvark.data, ardvark.cli.app; print({heavy} & {{*sys.modules}})"
    done = python(code)
    assert done.stdout == "set()\n", done.stderr


def test_a_fit_imports_its_own_model_and_method_and_leaves_no_temporary_file(tmp_path):
    """The sources that PyTensor generates are where they can be read, once each."""
    code = """
import sys
import ardvark as av
problem = av.problem("rvm", [[0.0], [1.0], [2.0]], [0, 0, 1])
av.fit(problem, "pfcvm_lp", draws=2, progressbar=False)
print(*sys.modules)
import inspect
import pymc as pm
from pytensor.link.utils import compile_function_src
with pm.Model() as model:
    pm.Normal("x")
av.fit(model, "laplace", draws=2, progressbar=False)
made = [compile_function_src("def f():\\n    return 1", "f") for _ in range(2)]
print(inspect.getsource(made[0]), len({inspect.getfile(f) for f in made}))
"""
    done = python(code, TMPDIR=str(tmp_path))
    modules, *source = done.stdout.splitlines()
    loaded = {name for name in modules.split() if name.startswith("ardvark.")}
    assert "ardvark.inference.papers.pfcvm.lp" in loaded, done.stderr
    others = r"models\.(rfvm|jcfo|fsklr|horseshoe)|inference\.(papers\.(rfvm|jcfo|fsklr)|gibbs|"
    others += r"generic|scoring|verdicts|refits|report|comparison|calibration|references)"
    assert not [name for name in loaded if re.match(rf"ardvark\.({others})", name)]
    assert " ".join(source).split() == ["def", "f():", "return", "1", "1"], done.stderr
    assert not list(tmp_path.iterdir())


def test_there_is_one_copy_of_each_module():
    import ardvark.data
    import ardvark.inference
    import ardvark.models

    assert not {"models", "inference", "data"} & set(sys.modules)
    assert ardvark.models.ZOO is ardvark.ZOO


def test_every_public_name_is_there():
    import ardvark

    assert {"fit", "models", "data", "inference", "InputError", "__version__"} < set(
        ardvark.__all__
    )
    assert set(ardvark.__all__) - set(dir(ardvark)) == {"__version__"}
    for name in ardvark.__all__:
        assert getattr(ardvark, name) is not None
    with pytest.raises(AttributeError, match="ardvark attribute nothing"):
        _ = ardvark.nothing


def test_every_file_of_code_is_in_the_wheel():
    """Setuptools finds the folders of `ardvark` that have an `__init__.py`, links included."""
    found = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert found["packages"]["find"] == {"include": ["ardvark*"]}
    assert found["package-data"]["*"] == ["*.pyi"]  # read at import
    folders = {
        Path(folder).relative_to(ROOT / "ardvark"): set(names)
        for folder, _, names in os.walk(ROOT / "ardvark", followlinks=True)
        if any(name.endswith(".py") for name in names)
    }
    assert [folder for folder, names in folders.items() if "__init__.py" not in names] == []
    tops = {folder.parts[0] for folder in folders if folder.parts}
    assert tops == {"models", "inference", "data", "common", "cli"}


def test_the_citation_file_is_of_this_version_and_these_papers():
    import ardvark
    from ardvark.models import docs

    text = " ".join((ROOT / "CITATION.cff").read_text().split())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"version: {ardvark.__version__} license: {project['license']}" in text
    for name in ("rfvm", "pfcvm", "jcfo", "fsklr"):
        fields = dict(re.findall(r"  (\w+) = \{(.+)\},", docs.bibtex(ardvark.ZOO[name])))
        people = fields["author"].replace("{", "").replace("}", "").split(" and ")
        families = " ".join(f"- family-names: {person}" for person in people)
        title = fields["title"].strip("{}")
        assert re.search(f'{re.escape(title)}"? authors: {families} year: {fields["year"]}', text)


def test_the_changelog_has_this_version_first():
    import ardvark

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "ardvark.__version__"}
    first = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert first is not None
    assert first[1] == ardvark.__version__
