# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Renders dashboards as JSON of Grafana 10 to 13.

The data source is a variable. Nothing in the JSON is a template of Jinja or Helm: names of series are written ``${…}``, not with braces alone.
"""

from __future__ import annotations

import json
from typing import Any, Iterator, Mapping, NamedTuple, Sequence

from . import rows
from .fleet import FLEET, ONE_NODE
from .health import HEALTH
from .rows import Dashboard, Panel, Query, Variable
from .usage import ALLOCATION, build_cost

#: Of Grafana 10.1. Newer releases read it, and convert it when a person saves the dashboard.
SCHEMA_VERSION = 39
TAG = "gpu.kubernetes"
UID_PREFIX = "gpu-kubernetes"
GRID = 24

_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_TIME = "var-datasource=${datasource}&${__url_time_range}"
# Grafana's own source of annotations, which it adds to a dashboard without it.
_ANNOTATIONS = {
    "list": [
        {
            "builtIn": 1,
            "datasource": {"type": "grafana", "uid": "-- Grafana --"},
            "enable": True,
            "hide": True,
            "iconColor": "rgba(0, 211, 255, 1)",
            "name": "Annotations & Alerts",
            "type": "dashboard",
        }
    ]
}
_REDUCE = {"calcs": ["lastNotNull"], "fields": "", "values": False}
_LEGEND = {"calcs": ["lastNotNull", "max"], "displayMode": "table", "placement": "bottom", "showLegend": True}
_TOOLTIP = {"mode": "multi", "sort": "desc"}
#: Options of each kind of panel.
_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "stat": {
        "colorMode": "value",
        "graphMode": "none",
        "justifyMode": "auto",
        "orientation": "auto",
        "reduceOptions": _REDUCE,
        "textMode": "value",
    },
    "timeseries": {"legend": _LEGEND, "tooltip": _TOOLTIP},
    "bargauge": {
        "displayMode": "basic",
        "orientation": "horizontal",
        "reduceOptions": _REDUCE,
        "showUnfilled": True,
        "valueMode": "color",
    },
    "state-timeline": {
        "alignValue": "left",
        "legend": {**_LEGEND, "calcs": [], "displayMode": "list"},
        "mergeValues": True,
        "rowHeight": 0.9,
        "showValue": "auto",
        "tooltip": _TOOLTIP,
    },
    "table": {"cellHeight": "sm", "footer": {"show": False}, "showHeader": True},
}
_INSTANT = ("stat", "bargauge", "table")
#: Titles of the columns with labels in tables.
_COLUMNS = {
    "node": "Node",
    "gpu_uuid": "GPU",
    "gpu_expected": "Expected GPUs",
    "model": "Model",
    "namespace": "Namespace",
    "pod": "Pod",
    "resource": "Resource",
    "xid": "Xid",
}


class Options(NamedTuple):
    """Parameters: ``prices`` of a GPU hour by shell patterns of models, the ``currency`` and the ``runbook`` (a URL; empty for no link)."""

    prices: Mapping[str, float] = {}
    currency: str = ""
    runbook: str = ""


def build_dashboards(options: Options) -> Sequence[Mapping[str, Any]]:
    """Return the dashboards as Grafana takes them."""
    listed = (FLEET, ONE_NODE, ALLOCATION, HEALTH, build_cost(options.prices))
    return [_build_dashboard(dashboard, options) for dashboard in listed]


def render_json(dashboard: Mapping[str, Any]) -> str:
    """Return the text of a file with the dashboard; it ends with a line feed."""
    return json.dumps(dashboard, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _build_dashboard(dashboard: Dashboard, options: Options) -> dict[str, Any]:
    return {
        "annotations": _ANNOTATIONS,
        "description": dashboard.description,
        "editable": True,
        "graphTooltip": 1,
        "id": None,
        "links": _build_links(options.runbook),
        "panels": _build_panels(dashboard.panels, options),
        "refresh": "1m",
        "schemaVersion": SCHEMA_VERSION,
        "tags": [TAG],
        "templating": {"list": [_DATA_SOURCES, *map(_build_variable, dashboard.variables)]},
        "time": {"from": dashboard.begin, "to": "now"},
        "timezone": "browser",
        "title": dashboard.title,
        "uid": f"{UID_PREFIX}-{dashboard.name}",
    }


def _build_links(runbook: str) -> list[dict[str, Any]]:
    """Links to the other dashboards, and to the runbook."""
    common = {"icon": "external link", "targetBlank": False, "tooltip": ""}
    others = {"asDropdown": True, "includeVars": True, "keepTime": True, "tags": [TAG], "title": "GPU dashboards"}
    page = {"tags": [], "targetBlank": True, "title": "Runbook", "type": "link", "url": runbook}
    return [{**common, **others, "type": "dashboards", "url": ""}, *([{**common, **page}] if runbook else [])]


_DATA_SOURCES: dict[str, Any] = {
    "current": {},
    "hide": 0,
    "includeAll": False,
    "label": "Data source",
    "multi": False,
    "name": "datasource",
    "options": [],
    "query": "prometheus",
    "refresh": 1,
    "regex": "",
    "skipUrlSync": False,
    "type": "datasource",
}


def _build_variable(variable: Variable) -> dict[str, Any]:
    common = {"hide": 0, "label": variable.title, "name": variable.name, "skipUrlSync": False}
    if not variable.metric:
        chosen = {"text": variable.value, "value": variable.value}
        options = [{**chosen, "selected": True}]
        return {**common, "current": chosen, "options": options, "query": variable.value, "type": "textbox"}
    query = f"label_values({variable.metric}, {variable.name})"
    return {
        **common,
        # A pattern instead of the list of all values, which can be thousands of nodes.
        **(
            {"allValue": ".*", "current": {"text": ["All"], "value": ["$__all"]}} if variable.multi else {"current": {}}
        ),
        "datasource": _SOURCE,
        "definition": query,
        "includeAll": variable.multi,
        "multi": variable.multi,
        "options": [],
        "query": {"qryType": 1, "query": query, "refId": "PrometheusVariableQueryEditor-VariableQuery"},
        "refresh": 2,
        "regex": "",
        "sort": 1,
        "type": "query",
    }


def _build_panels(panels: Sequence[Panel], options: Options) -> list[dict[str, Any]]:
    """Panels with their places: from left to right, and below the highest of a line."""
    built, x, y, line_height = [], 0, 0, 0
    for number, panel in enumerate(panels, 1):
        if x + panel.width > GRID:
            x, y, line_height = 0, y + line_height, 0
        place = {"h": panel.height, "w": panel.width, "x": x, "y": y}
        built.append({"id": number, "gridPos": place, **_build_panel(panel, options)})
        x, line_height = x + panel.width, max(line_height, panel.height)
    return built


def _build_panel(panel: Panel, options: Options) -> dict[str, Any]:
    queries = list(zip("ABCDEFGHIJ", panel.queries))
    built: dict[str, Any] = {
        "datasource": _SOURCE,
        "description": panel.description,
        "fieldConfig": {
            "defaults": {**_build_field(panel.unit, panel.state, options), "custom": _build_custom(panel)},
            "overrides": list(_build_overrides(panel, queries, options)),
        },
        "options": _OPTIONS[panel.kind],
        "targets": [_build_target(panel.kind, letter, query) for letter, query in queries],
        "title": panel.title,
        "type": panel.kind,
    }
    if panel.kind == "table":
        built["transformations"] = [{"id": "merge", "options": {}}, _organize(queries)]
    if any(rows.BY_NODE in query.name for query in panel.queries):
        built["fieldConfig"]["defaults"]["links"] = [_build_node_link(rows.BY_NODE)]
    return built


def _build_target(kind: str, letter: str, query: Query) -> dict[str, Any]:
    instant = kind in _INSTANT
    return {
        "datasource": _SOURCE,
        "editorMode": "code",
        "expr": query.expression,
        "format": "table" if kind == "table" else "time_series",
        "instant": instant,
        "legendFormat": "__auto",
        "range": not instant,
        "refId": letter,
    }


def _build_field(unit: str, state: str, options: Options) -> dict[str, Any]:
    """Unit, thresholds and texts of values."""
    judged = rows.STATES[state]
    steps = [{"color": color, "value": value if number else None} for number, (value, color) in enumerate(judged.steps)]
    texts = {
        each.value: {"color": each.color, "index": index, "text": each.text}
        for index, each in enumerate(judged.mappings)
    }
    money = f"suffix: {options.currency}" if options.currency else "none"
    return {
        "color": {"mode": "thresholds" if state else "palette-classic"},
        "mappings": [{"options": texts, "type": "value"}] if texts else [],
        "thresholds": {"mode": "absolute", "steps": steps},
        "unit": money if unit == rows.MONEY else unit,
        **({"max": 1, "min": 0} if unit == rows.RATIO else {}),
        **({"decimals": 2} if unit == rows.MONEY else {}),
    }


def _build_custom(panel: Panel) -> dict[str, Any]:
    """How a kind of panel draws its values."""
    if panel.kind == "timeseries":
        return {
            "drawStyle": "line",
            "fillOpacity": 25 if panel.stacked else 0,
            "lineWidth": 1,
            "showPoints": "auto",
            "spanNulls": False,
            "stacking": {"group": "A", "mode": "normal" if panel.stacked else "none"},
            "thresholdsStyle": {"mode": "dashed" if panel.state else "off"},
        }
    if panel.kind == "state-timeline":
        return {"fillOpacity": 70, "lineWidth": 0}
    return {}


def _build_overrides(panel: Panel, queries: Sequence[tuple[str, Query]], options: Options) -> Iterator[dict[str, Any]]:
    """What columns of a table, or series of a query, have other than the panel."""
    if panel.kind != "table":
        for letter, query in queries:
            if query.name:
                properties = [{"id": "displayName", "value": query.name}]
                yield {"matcher": {"id": "byFrameRefID", "options": letter}, "properties": properties}
        return
    for _letter, query in queries:
        if query.unit:
            field = _build_field(query.unit, query.state, options)
            if query.state:
                # Text and colour in the cell; without a state it has no colour.
                field["custom.cellOptions"] = {"type": "color-text"}
            properties = [{"id": key, "value": value} for key, value in field.items()]
            yield {"matcher": {"id": "byName", "options": query.name}, "properties": properties}
    links = [{"id": "links", "value": [_build_node_link("${__value.raw}")]}]
    yield {"matcher": {"id": "byName", "options": _COLUMNS["node"]}, "properties": links}


def _build_node_link(value: str) -> dict[str, Any]:
    url = f"/d/{UID_PREFIX}-{ONE_NODE.name}?var-node={value}&{_TIME}"
    return {"targetBlank": False, "title": "Show the node", "url": url}


def _organize(queries: Sequence[tuple[str, Query]]) -> dict[str, Any]:
    """Columns of a table: no time, no value of a query without a name, titles instead of labels."""
    # Grafana names the column of a single query without its letter.
    names = {f"Value #{letter}" if len(queries) > 1 else "Value": query.name for letter, query in queries}
    hidden = ["Time", *(column for column, name in names.items() if not name)]
    titles = {**_COLUMNS, **{column: name for column, name in names.items() if name}}
    return {
        "id": "organize",
        "options": {"excludeByName": dict.fromkeys(hidden, True), "indexByName": {}, "renameByName": titles},
    }
