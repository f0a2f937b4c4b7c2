"""Settings of Sphinx for the site, which `make docs` builds.

Nothing is asked of another host: MathJax comes from a package, search is a local index, notebooks
are shown with their stored outputs.
"""

import sys
from importlib.metadata import distribution
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import ardvark  # noqa: E402  the path is set first
from docs import generate  # noqa: E402
from docs.generate import files  # noqa: E402

MATHJAX = "sphinx-mathjax-offline/static/mathjax/tex-svg.js"

project = "ardvark"
author = "The ardvark developers"
release = version = ardvark.__version__
extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["parts", "generate", "jupyter_execute", "**.ipynb_checkpoints"]
default_role = "code"
nitpicky = False
suppress_warnings = ["myst.header"]

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4
nb_execution_mode = "off"
nb_ipywidgets_js = {}  # the default asks two other hosts
numpydoc_show_class_members = False
autodoc_typehints = "none"  # numpydoc's sections say the types
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "ardvark"
html_static_path = ["static", str(distribution("sphinx-mathjax-offline").locate_file(MATHJAX))]
html_css_files = ["site.css"]
mathjax_path = Path(MATHJAX).name
html_sidebars = {"index": [], "which": [], "glossary": []}
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "icon_links": [],
    "navbar_end": ["theme-switcher"],
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_context = {"default_mode": "auto"}
copyright = "the ardvark developers, under Apache 2.0"


def setup(app: Sphinx) -> None:
    """Write the pages that follow from code before the builder reads any."""
    app.connect("builder-inited", lambda app: generate.write())
    app.connect("include-read", files.on_include)
