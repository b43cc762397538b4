# ruff: noqa: INP001 - Sphinx reads it as a file
"""How the pages are built: ``make docs``."""

import importlib.metadata

project = "tune_guard"
release = importlib.metadata.version("tune-guard")
copyright = "2026, the tune_guard developers"  # noqa: A001 - Sphinx's name for it

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"tune_guard {release}"

myst_heading_anchors = 3

autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
