# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of the report as HTML; tests/browser reads it in a browser."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from html.parser import HTMLParser
from typing import Any

import pytest

pytest.importorskip("jinja2")

from ansible_collections.gpu.kubernetes.plugins.module_utils._report.page import build_page
from ansible_collections.gpu.kubernetes.plugins.module_utils._report.texts import LANGUAGES, get_texts
from ansible_collections.gpu.kubernetes.plugins.plugin_utils._html_report import render_html
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._report.fleet import (
    HOSTILE,
    make_allocation,
    make_cost,
    make_earlier,
    make_healthy,
    make_report,
)

MEGABYTES = 1_000_000
SECTIONS = ["problems", "changes", "map", "versions", "allocation", "drift", "cost", "nodes", "about"]


def render(*given: Any, language: str = "en", title: str = "") -> str:
    return render_html(build_page(*given), language, title, "gpu-report.json", 1_700_000_000.5)


@pytest.fixture(scope="module")
def full() -> str:
    return render(make_report(), make_allocation(findings=[{"message": HOSTILE}]), make_cost(), make_earlier())


class Elements(HTMLParser):
    """The start tags of a page, and its text outside of style sheets."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_hostile_texts_stay_text_without_control_characters(full: str) -> None:
    assert {tag for tag, _attributes in Elements(full).tags} & {"script", "img", "iframe", "link", "object"} == set()
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e]", full)
    shown = Elements(full).text
    # pod, namespace, log line, drift, note and finding
    assert shown.count('<script>alert("x")</script>{{ 7 * 191 }}\\x1b[31m\\u202e') >= 6
    assert "1337" not in full


def test_hostile_names_of_nodes_stay_text() -> None:
    report = make_report()
    for node in report["nodes"]:
        node["host"] = node["node"] = f'{node["host"]}" onclick="x" {HOSTILE}'
    elements = Elements(render(report))
    assert {name for _tag, attributes in elements.tags for name in attributes if name.startswith("on")} == set()
    assert "script" not in {tag for tag, _attributes in elements.tags}
    assert 'gpu1" onclick="x" <script>' in elements.text


def test_policy_allows_the_styles_of_the_page_alone(full: str) -> None:
    [style] = re.findall(r"<style>(.*?)</style>", full, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    [policy] = re.findall(r'Content-Security-Policy content="([^"]*)"', full)
    assert (
        html.unescape(policy) == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    # the policy would ignore them
    assert not [attributes for _tag, attributes in Elements(full).tags if "style" in attributes]


def test_page_refers_to_nothing_outside_of_it(full: str) -> None:
    places = [
        value or ""
        for _tag, attributes in Elements(full).tags
        for name, value in attributes.items()
        if name in ("href", "src", "srcset", "action", "data", "xlink:href")
    ]
    assert places
    assert [place for place in places if not place.startswith("#")] == []
    assert "url(" not in full
    assert "@import" not in full


def test_links_lead_to_elements(full: str) -> None:
    identifiers = [attributes["id"] for _tag, attributes in Elements(full).tags if "id" in attributes]
    assert len(identifiers) == len(set(identifiers))
    links = {str(attributes["href"])[1:] for tag, attributes in Elements(full).tags if tag == "a"}
    assert links - set(identifiers) == set()


def test_tables_have_headers_of_columns_and_rows(full: str) -> None:
    tables = full.split("<table")[1:]
    assert len(tables) > 8
    for table in tables:
        rows = table.partition("</table>")[0].split("<tr>")[1:]
        assert rows[0].startswith("<th scope=col")
        assert [row for row in rows[1:] if "<th scope=row>" not in row] == []


def test_sections_are_in_their_order(full: str) -> None:
    assert re.findall(r"<h2 id=(\w+)>", full) == SECTIONS


def test_sections_without_data_are_left_out() -> None:
    assert set(SECTIONS) - set(re.findall(r"<h2 id=(\w+)>", render(make_report()))) == {"changes", "cost"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_page_is_in_its_language(language: str) -> None:
    page = render(make_healthy(1), language=language)
    texts = get_texts(language)
    assert f'<html lang="{language}">' in page
    assert texts["verdict_ok"].format(nodes=1, gpus=8) in page
    assert texts["drift_none"] in page
    assert not re.search(r"\{\w+\}", Elements(page).text.partition("}\n}")[2])


def test_results_of_smoke_tests_are_in_the_language_of_the_page() -> None:
    page = render(make_report(), None, None, make_earlier(), language="zh-CN")
    assert "<td>冒烟测试</td><td>未运行</td><td>通过</td>" in page


def test_unknown_costs_are_dashes_and_idle_hours_have_no_namespace() -> None:
    row = {
        "namespace": None,
        "product": "T4",
        "allocated_hours": 0,
        "idle_hours": 6,
        "wasted_hours": None,
        "cost": None,
    }
    page = render(make_report(), None, {"currency": "", "rows": [row]})
    numbers = "".join(f"<td class=number>{value}</td>" for value in ("0.0", "6.0", "-", "-"))
    assert f"<tr><th scope=row>not allocated</th><td>T4</td>{numbers}</tr>" in page
    assert "<th scope=col class=number>Cost</th>" in page


def test_title_is_escaped() -> None:
    assert "<h1>A &amp; B &lt;i&gt;</h1>" in render(make_healthy(1), title="A & B <i>")


def test_time_is_that_of_the_report(full: str) -> None:
    assert '<time datetime="2023-11-14T22:13:20Z">' in full
    assert "<time" not in render_html(build_page(make_report()), "en", "", "", 0)


def test_same_input_gives_the_same_bytes(full: str) -> None:
    given = make_report(), make_allocation(findings=[{"message": HOSTILE}]), make_cost(), make_earlier()
    assert render(*given) == full


def make_sick(number: int) -> dict[str, Any]:
    """Nodes that all have problems and drift, each with a cause, a remedy and a difference of its own."""
    report = make_healthy(number)
    report["ok"] = False
    for node in report["nodes"]:
        cause = f"the smoke test failed on {node['host']} with a long message of the runtime"
        report["problems"].append(
            {
                "host": node["host"],
                "code": "smoke_test",
                "cause": cause,
                "remedy": f"read {node['host']}",
                "sentence": "",
            }
        )
        node["runtime"]["drift"] = [f"+{node['host']} {'x' * 60}"] * 20
        node["smoke_test"] = {"result": "failed", "reason": cause, "log_tail": ["x" * 80] * 20}
    return report


@pytest.mark.parametrize("make", [make_healthy, make_sick])
def test_page_of_5000_nodes_is_below_5_megabytes(make: Any) -> None:
    page = render(make(5000))
    assert len(page.encode()) < 5 * MEGABYTES
    assert page.count("<tr><th scope=row>") >= 5000
    assert get_texts("en")["details_some"].format(part=500 if make is make_sick else 0, whole=5000, most=500) in page
