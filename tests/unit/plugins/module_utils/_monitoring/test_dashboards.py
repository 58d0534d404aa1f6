# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The dashboards as data: what Grafana requires of their JSON, and what they may read."""

from __future__ import annotations

import itertools
import json
import re

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._monitoring import grafana, series
from ansible_collections.gpu.kubernetes.plugins.module_utils._monitoring.dashboards.render import (
    Options,
    build_dashboards,
    render_json,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._monitoring.dashboards.rows import STATES
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._monitoring import dashboard_samples

OPTIONS = Options({"*A100*": 2.5}, "EUR", "https://docs.example.com/runbook")
DASHBOARDS = {each["uid"]: each for each in build_dashboards(OPTIONS)}
PANELS = [(uid, panel) for uid, each in DASHBOARDS.items() for panel in each["panels"]]
#: Grafana's own source of annotations.
BUILT_IN = {"type": "grafana", "uid": "-- Grafana --"}
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def find_values(value, key):
    """All values of a key, at any depth."""
    if isinstance(value, dict):
        for name, each in value.items():
            if name == key:
                yield each
            yield from find_values(each, key)
    elif isinstance(value, list):
        for each in value:
            yield from find_values(each, key)


def find_panel(uid, title):
    return next(panel for name, panel in PANELS if (name, panel["title"]) == (f"gpu-kubernetes-{uid}", title))


def test_dashboards_have_stable_uids_and_distinct_titles():
    names = ("fleet", "node", "allocation", "health", "cost")
    assert list(DASHBOARDS) == [f"gpu-kubernetes-{name}" for name in names]
    assert len({each["title"] for each in DASHBOARDS.values()}) == len(DASHBOARDS)
    for each in DASHBOARDS.values():
        assert each["description"]
        assert (each["id"], each["tags"], each["schemaVersion"]) == (None, ["gpu.kubernetes"], 39)
        assert len(each["uid"]) <= 40


@pytest.mark.parametrize("uid", DASHBOARDS)
def test_panels_have_ids_and_places_of_their_own(uid):
    panels = DASHBOARDS[uid]["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert len({panel["title"] for panel in panels}) == len(panels)
    for one, other in itertools.combinations([panel["gridPos"] for panel in panels], 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or below, (one, other)
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in panels)


@pytest.mark.parametrize(
    ("uid", "panel"), PANELS, ids=lambda value: value if isinstance(value, str) else value["title"]
)
def test_panel_has_what_people_and_grafana_need(uid, panel):
    assert panel["title"]
    assert panel["description"].endswith(".")
    defaults = panel["fieldConfig"]["defaults"]
    assert defaults["unit"]
    assert panel["targets"]
    assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
    # The first step has no value: it holds for all lower values.
    steps = [step["value"] for step in defaults["thresholds"]["steps"]]
    assert steps[0] is None
    assert steps[1:] == sorted(steps[1:])
    assert all(target["instant"] is not target["range"] for target in panel["targets"])


def test_source_of_data_is_the_variable_alone():
    for dashboard in DASHBOARDS.values():
        sources = list(find_values(dashboard, "datasource"))
        assert all(source in (SOURCE, BUILT_IN) for source in sources), dashboard["uid"]
        first = dashboard["templating"]["list"][0]
        assert (first["name"], first["type"], first["query"]) == ("datasource", "datasource", "prometheus")
        assert "__inputs" not in dashboard


def test_each_variable_is_defined_and_used():
    for dashboard in DASHBOARDS.values():
        expressions = " ".join(find_values(dashboard, "expr"))
        defined = {variable["name"] for variable in dashboard["templating"]["list"]} - {"datasource"}
        assert set(re.findall(r"\$([a-z]\w*)", expressions)) == defined, dashboard["uid"]


def test_text_is_neither_a_template_of_jinja_nor_of_helm():
    """Ansible and charts would replace what is in double braces."""
    for dashboard in DASHBOARDS.values():
        text = render_json(dashboard)
        assert not re.search(r"\{[{%#]", text)
        assert json.loads(text) == dashboard


def test_expressions_read_normalised_series_alone():
    known = set(dashboard_samples.list_series())
    words = {
        word
        for _uid, panel in PANELS
        for each in find_values(panel, "expr")
        for word in re.findall(r"[\w:]+(?=\{)|gpu:[\w:]+", each)
    }
    assert words <= known, words - known


def test_samples_are_of_series_that_the_rules_record():
    assert set(dashboard_samples.list_series()) <= {each.name for each in series.SERIES}


def test_states_are_shown_by_text_and_not_by_colour_alone():
    for name, state in STATES.items():
        symbols = [mapping.text[0] for mapping in state.mappings]
        assert all(symbol in "✔▲■" for symbol in symbols), name
        for one, other in itertools.combinations(state.mappings, 2):
            assert one.color == other.color or one.text[0] != other.text[0], name
    # A value with steps and without texts is a number with a line at each step.
    margin = find_panel("node", "Temperature margin of each GPU")
    assert margin["fieldConfig"]["defaults"]["custom"]["thresholdsStyle"] == {"mode": "dashed"}


def test_dashboards_have_links_to_each_other_and_to_the_runbook():
    for dashboard in DASHBOARDS.values():
        others, runbook = dashboard["links"]
        assert (others["type"], others["tags"]) == ("dashboards", dashboard["tags"])
        assert runbook["url"] == OPTIONS.runbook
    urls = [link["url"] for links in find_values(DASHBOARDS["gpu-kubernetes-fleet"], "links") for link in links if link]
    assert any(url.startswith("/d/gpu-kubernetes-node?var-node=${__field.labels.node}&") for url in urls)
    columns = [each for each in find_values(find_panel("fleet", "Nodes and models"), "value") if isinstance(each, list)]
    assert any(
        "var-node=${__value.raw}&" in link["url"]
        for links in columns
        for link in links
        if isinstance(link, dict) and "url" in link
    )
    assert all(len(each["links"]) == 1 for each in build_dashboards(Options()))


@pytest.mark.parametrize(
    ("pattern", "model", "matches"),
    [
        ("*A100*", "NVIDIA A100-SXM4-80GB", True),
        ("nvidia-a100-sxm4-80gb", "NVIDIA A100-SXM4-80GB", True),
        ("NVIDIA A100*", "NVIDIA-A100-PCIE-40GB", True),
        ("Tesla-T?", "Tesla T4", True),
        ("Tesla-T4", "Tesla T40", False),
        ("1.5", "125", False),
    ],
)
def test_price_is_found_by_shell_pattern(pattern, model, matches):
    cost = build_dashboards(Options({pattern: 3.0}))[-1]
    written = re.search(r'model=~"([^"]*)"', " ".join(find_values(cost, "expr"))).group(1)
    assert bool(re.fullmatch(json.loads(f'"{written}"'), model)) is matches


def test_more_exact_price_comes_first():
    cost = build_dashboards(Options({"*": 1, "*A100*": 2, "A100": 3}, "EUR"))[-1]
    expression = next(each for each in find_values(cost, "expr") if "$price" in each)
    assert re.findall(r"\* (\d|\$price)", expression) == ["3", "2", "1", "$price"]
    assert "suffix: EUR" in find_values(cost, "unit")
    assert "suffix: EUR" not in find_values(build_dashboards(Options())[-1], "unit")


@pytest.mark.parametrize(
    ("change", "current"),
    [
        ({}, True),
        ({"id": 7, "version": 3, "schemaVersion": 42, "added": {"by": "Grafana"}}, True),
        ({"title": "changed by a person"}, False),
        ({"editable": 1}, False),
        ({"panels": []}, False),
    ],
    ids=["equal", "set by Grafana", "title", "type", "panels"],
)
def test_dashboard_of_grafana_is_current_with_more_and_not_with_less(change, current):
    desired = DASHBOARDS["gpu-kubernetes-fleet"]
    observed = {"dashboard": {**desired, **change}, "meta": {"folderUid": "f"}}
    assert grafana.is_current(desired, observed, "f") is current
    assert not grafana.is_current(desired, observed, "other")


def test_empty_value_that_grafana_leaves_out_is_no_difference():
    assert grafana.is_included({"hide": 0, "options": [], "a": {"b": False}}, {"a": {}})
    assert not grafana.is_included({"hide": 1}, {})
    assert not grafana.is_included([1, 2], [1])
