# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sphinx configuration; `make docs` copies it beside the generated sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from docutils.nodes import Element
    from sphinx.addnodes import pending_xref
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

project = "gpu.kubernetes"
copyright = "2026, the gpu.kubernetes authors"  # noqa: A001 - Sphinx requires this name
title = "gpu.kubernetes: GPUs for the nodes of a Kubernetes cluster"
html_short_title = "gpu.kubernetes"
extensions = ["sphinx_antsibull_ext"]
highlight_language = "YAML+Jinja"
html_theme = "alabaster"
# The sidebar lists the guides; the index lists the reference too.
html_theme_options = {
    "page_width": "1200px",
    "sidebar_width": "300px",
    "fixed_sidebar": True,
    "sidebar_includehidden": False,
}
html_static_path = ["_static"]
smartquotes = False  # they turn --check into a dash and a word
html_show_sphinx = False
default_role = "any"
OWN = "ansible_collections.gpu.kubernetes."


def foreign(_app: Sphinx, _env: BuildEnvironment, node: pending_xref, shown: Element) -> Element | None:
    """Show a reference into the documentation of ansible-core or kubernetes.core as text: the build has no network to look it up.

    References into our own documentation stay errors where they lead nowhere.
    """
    return None if node["reftarget"].startswith(OWN) else shown


def set_language(_app: Sphinx, page: str, _template: str, context: dict[str, Any], _tree: Element | None) -> None:
    """Set the language of a Chinese page."""
    context["language"] = "zh-CN" if page.endswith("_zh") else "en"


def setup(app: Sphinx) -> None:
    """Hook into Sphinx."""
    app.connect("missing-reference", foreign)
    app.connect("html-page-context", set_language)
