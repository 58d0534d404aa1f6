# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The queries of dashboards, with values in place of their variables, and their results from a Prometheus. On Python 3.8, too."""

from __future__ import annotations

import json
import typing as t
import urllib.error
import urllib.parse
import urllib.request


class Query(t.NamedTuple):
    """An expression of a panel: dashboard, title and letter as its name, and whether the panel shows the present value alone."""

    name: str
    expression: str
    instant: bool


def list_queries(dashboards: t.Iterable[t.Mapping[str, t.Any]], chosen: t.Mapping[str, str]) -> list[Query]:
    """Return the queries of all panels.

    A variable with several values has all; *chosen* has values of the others by name, with that of ``__range``. They are replaced in its order.
    """
    return [
        Query(
            f"{dashboard['uid']} {panel['title']} {target['refId']}",
            _replace(target["expr"], dashboard["templating"]["list"], chosen),
            target["instant"],
        )
        for dashboard in dashboards
        for panel in dashboard["panels"]
        for target in panel["targets"]
    ]


def _replace(expression: str, variables: t.Iterable[t.Mapping[str, t.Any]], chosen: t.Mapping[str, str]) -> str:
    texts = {each["name"]: each["query"] for each in variables if each["type"] == "textbox"}
    multiple = {each["name"]: each["allValue"] for each in variables if "allValue" in each}
    for name, value in {**texts, **chosen, **multiple}.items():
        expression = expression.replace(f"${name}", value)
    assert "$" not in expression, expression
    return expression


def read(address: str, path: str, **parameters: object) -> list[dict[str, t.Any]]:
    """Return the result of a query of the API at *address*. Fails with its answer if it refuses the query."""
    url = f"{address}{path}?{urllib.parse.urlencode(parameters)}"
    try:
        with urllib.request.urlopen(url, timeout=60) as reply:  # noqa: S310 - of the loopback
            answer = json.load(reply)
    except urllib.error.HTTPError as error:
        answer = json.load(error)
    assert answer["status"] == "success", answer
    return answer["data"]["result"]


def run(address: str, query: Query, begin: float, end: float, step: float) -> list[dict[str, t.Any]]:
    """Return the series of a query: those at *end*, or those from *begin* to *end*, as its panel shows them."""
    if query.instant:
        return read(address, "/api/v1/query", query=query.expression, time=end)
    return read(address, "/api/v1/query_range", query=query.expression, start=begin, end=end, step=step)
