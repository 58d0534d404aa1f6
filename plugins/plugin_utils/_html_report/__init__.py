# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Renders the page of the report as one HTML file, which loads nothing and runs no script.

Each value is escaped: names and log lines of nodes and pods are untrusted. The browser is allowed the styles of this file alone.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import typing as t
from datetime import UTC, datetime
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ansible_collections.gpu.kubernetes.plugins.module_utils._report import fleet_map, node_rows
from ansible_collections.gpu.kubernetes.plugins.module_utils._report.texts import get_texts
from ansible_collections.gpu.kubernetes.plugins.module_utils._text import make_printable

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
NAME = "gpu.kubernetes"


def _finalize(value: t.Any) -> t.Any:
    """Return the text of a value without control characters, and a dash for None; markup of the template itself is left alone."""
    if value is None:
        return "-"
    return value if hasattr(value, "__html__") else make_printable(value)


@functools.lru_cache(maxsize=1)
def _load() -> tuple[t.Any, str]:
    """Return the template and the style sheet."""
    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        finalize=_finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html.j2"), (HERE / "style.css").read_text(encoding="utf-8")


def read_version() -> str:
    """Return the version of the installed collection; empty in a checkout."""
    manifest = ROOT / "MANIFEST.json"
    if not manifest.is_file():
        return ""
    return str(json.loads(manifest.read_text(encoding="utf-8"))["collection_info"]["version"])


def render_html(page: t.Mapping[str, t.Any], language: str, title: str, source: str, written: float) -> str:
    """Return the page as HTML. *source* is the name of the JSON report, and *written* the time of that file in seconds; 0 if it is not known.

    The same page gives the same bytes. Raises ValueError for an unknown language.
    """
    template, style = _load()
    texts = get_texts(language)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    moment = datetime.fromtimestamp(written, UTC) if written else None
    return str(
        template.render(
            page=page,
            t=texts,
            language=language,
            title=title or texts["title"],
            source=source,
            written=moment.strftime("%Y-%m-%dT%H:%M:%SZ") if moment else "",
            made=f"{NAME} {read_version()}".strip(),
            style=style,
            policy=f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
            states=[(state, fleet_map.draw_cells([state])) for state in fleet_map.STATES],
            cell=fleet_map.CELL,
            most=node_rows.MAX_DETAILS,
            name=lambda kind, value: texts.get(f"{kind}_{value}", value),
        )
    )
