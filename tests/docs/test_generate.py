"""What the generated pages are made by: links, equations, notebooks, docstrings as Markdown."""

import re

import pytest

from ardvark.inference import BACKENDS
from ardvark.inference.scoring.columns import COLUMNS
from ardvark.models import ZOO, docs
from docs.generate import files, methods, models, notebooks, reading, text
from docs.generate.tex import tex

pytestmark = pytest.mark.docs


@pytest.mark.parametrize(
    ("plain", "shown"),
    [
        ("psi_j", r"\psi_{j}"),
        ("~ Gamma(a0, b0)", r"\sim \mathrm{Gamma}(a_{0}, b_{0})"),
        ("tau_0^1/2", r"\tau_{0}^{1/2}"),
        ("delta_d^-1/2", r"\delta_{d}^{-1/2}"),
        ("sum_d x_nd v_d", r"\sum_d x_{nd} v_{d}"),
        ("N+(0, rho_k)", r"\mathrm{N}^{+}(0, \rho_{k})"),
        ("C+(0, 1)", r"\mathrm{C}^{+}(0, 1)"),
        ("abs(beta_k)", r"|\beta_{k}|"),
        ("1(z_i > 0)", r"\mathbf{1}(z_{i} > 0)"),
        ("K_theta(x_i, z_j)", r"K_{\theta}(x_{i}, z_{j})"),
        ("noise_shape", r"\mathrm{noise\_shape}"),
        ("tau lambda~_k", r"\tau  \tilde\lambda _{k}"),
    ],
)
def test_a_formula_in_tex(plain, shown):
    assert tex(plain) == shown


@pytest.mark.parametrize("name", ZOO)
def test_every_line_of_a_program_is_an_equation_of_its_page(name):
    page = models.model(ZOO[name])
    [equations] = re.findall(r"\$\$\n(.*?)\$\$", page, re.DOTALL)
    found = docs.symbols(ZOO[name])
    assert equations.count("&\\sim") + equations.count("&=") == len(found) > 5
    for hyper in ZOO[name].Hypers.declared():
        assert f"| `{hyper.name}` |" in page


@pytest.mark.parametrize("name", BACKENDS)
def test_a_method_has_its_options_and_models(name):
    page = methods.method(name, BACKENDS[name])
    for option in BACKENDS[name].Options.declared():
        assert f"| `{option.name}` |" in page
    assert "/models/" in page
    assert BACKENDS[name].ABOUT.cost in page


def test_every_column_is_explained():
    page = reading.columns()
    assert not [column.name for column in COLUMNS if f"`{column.name}`" not in page]


@pytest.mark.parametrize(
    ("link", "folder", "on_the_site"),
    [
        ("[a](ERRATA.md)", "", "[a](/results/errata.md)"),
        ("[a](SPEED.md#memory)", "lab/speed", "[a](/results/speed.md#memory)"),
        ("[a](../ERRATA.md)", "notebooks", "[a](/results/errata.md)"),
        ("[a](00_tour.ipynb)", "notebooks", "[a](/tutorials/00_tour.ipynb)"),
        ("[a](docs/which.md)", "", "[a](/which.md)"),
        ("![a](judge.png)", "lab/judge", "![a](/../lab/judge/judge.png)"),
        ("[a](models/rfvm.py)", "", "a"),
        ("[a](b.csv)", "lab/speed", "{download}`a </../lab/speed/b.csv>`"),
        ("[a](https://example.org/b)", "", "[a](https://example.org/b)"),
        ("[a](#here)", "", "[a](#here)"),
    ],
)
def test_a_relative_link_leads_to_the_page_that_shows_the_file(link, folder, on_the_site):
    assert text.relinked(f"See {link}.", folder) == f"See {on_the_site}."


def test_every_included_file_is_there():
    assert not [file for file in text.INCLUDED if not (text.ROOT / file).is_file()]
    content = ["[a](speed/SPEED.md)"]
    files.on_include(None, "../lab/README.md", "laboratory", content)
    assert content == ["[a](/results/speed.md)"]


def test_a_page_that_is_read_as_a_file_says_where_its_tables_are():
    """In a comment, which the site does not show; the files that it names are there."""
    found = 0
    for page in (text.ROOT / "docs").rglob("*.md"):
        before = ["", ""]
        for line in page.read_text().splitlines():
            if re.fullmatch(r"```\{include\} (\.\./)?parts/\w+\.md", line):
                found += 1
                assert before[0].startswith("% Only the site has "), f"{page}: {line}"
                assert before[1] == ""
                links = re.findall(r"\]\((.+?)\)", before[0])
                assert links or "`ardvark " in before[0] or "report" in before[0]
                assert all((page.parent / link).is_file() for link in links)
            before = [before[1], line]
    assert found == len({"cite", "columns", "judge", "purposes", "samplers", "times"})


def test_indented_text_stays_as_typed():
    shown = text.markdown("One::\n\n    a_j = 2 < 3\n\n    b\n\nTwo < three `x < y`.\n")
    block = "```text\na_j = 2 < 3\n\nb\n```"
    assert shown == f"One:\n\n{block}\n\nTwo \\< three `x < y`."


def test_a_notebook_has_its_alt_texts_and_folded_answers():
    cells = [
        {
            "cell_type": "markdown",
            "metadata": {},
            "source": ["# Title\n", "[x](00_tour.ipynb)"],
        },
        {"cell_type": "code", "metadata": {"alt": "A line\nthat rises"}, "source": "plot()"},
        {"cell_type": "code", "metadata": {"tags": ["solution"]}, "source": "answer()"},
    ]
    shown = notebooks.prepared({"cells": cells})["cells"]
    assert shown[0]["source"].endswith("[x](/tutorials/00_tour.ipynb)")
    assert shown[1]["metadata"]["mystnb"]["image"]["alt"] == "A line that rises"
    assert shown[2]["metadata"]["mystnb"]["image"]["alt"] == "Figure: Title"
    assert shown[2]["metadata"]["tags"] == ["solution", "hide-cell"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("One [idea](a.md). Then another? And a third.", "One idea. Then another?"),
        ("**Question.** Why (J. Comput. B. 1) this? So. No.", "Why (J. Comput. B. 1) this? So."),
    ],
)
def test_a_card_has_the_opening_of_its_notebook(text, said):
    assert notebooks.opening(f"# Title\n\n{text}\n\nMore.") == said
