"""Settings of Sphinx for the slides: one page, `docs/talk.md`, a slide for each heading.

`make docs` builds them with `docs` as the source; the site itself has `docs/conf.py`.
"""

project = "ardvark"
author = "The ardvark developers"
extensions = ["myst_parser", "sphinx_revealjs"]
root_doc = "talk"
include_patterns = ["talk.md"]

revealjs_style_theme = "white"
revealjs_static_path = ["../static"]
revealjs_css_files = ["slides.css"]
revealjs_script_conf = {"slideNumber": "c/t", "hash": True, "transition": "none", "center": False}
