# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The example for ansible-rulebook, by its schema and on what Alertmanager sends.

tests/rulebook runs it, which needs Java, in `make test-all`. records/alertmanager-webhook.json is what Debian's Alertmanager 0.25 has sent for
alerts by the route of the guide, with ``send_resolved: true``. Conditions and templates are evaluated by Jinja, which has the operators in use in common with
ansible-rulebook's engine; a test refuses others.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import ansiblelint
import jinja2
import jsonschema
import yaml

from ansible_collections.gpu.kubernetes.plugins.module_utils._monitoring.alerts import ALERTS

ROOT = Path(__file__).resolve().parents[3]
RULEBOOK = ROOT / "extensions" / "eda" / "rulebooks" / "gpu_alerts.yml"
GUIDE = ROOT / "docs" / "docsite" / "rst" / "guide_monitoring.rst"
BODIES = json.loads((Path(__file__).parent / "records" / "alertmanager-webhook.json").read_text(encoding="utf-8"))
CONDITION = re.compile(r'event(?:\.\w+)+ (?:== "\w+"|is defined)(?: and event(?:\.\w+)+ (?:== "\w+"|is defined))*')
JINJA = jinja2.Environment(undefined=jinja2.ChainableUndefined)  # noqa: S701 - no page is made


def test_rulebook_fits_its_schema_and_runs_a_playbook_of_this_collection() -> None:
    content = yaml.safe_load(RULEBOOK.read_text())
    schema = Path(ansiblelint.__file__).parent / "schemas" / "rulebook.json"
    jsonschema.validate(content, json.loads(schema.read_text()))
    [action] = content[0]["rules"][0]["actions"]
    name = action["run_playbook"]["name"]
    assert name.startswith("gpu.kubernetes.")
    plays = yaml.safe_load((ROOT / "playbooks" / f"{name.rpartition('.')[2]}.yml").read_text())
    # The limit of the playbook, which has plays on this machine as well.
    assert content[0]["hosts"].split(",") == ["all", "localhost"]
    # What the alert passes is what the playbook reads.
    [variable] = action["run_playbook"]["extra_vars"]
    assert variable in json.dumps(plays)


def read_rule() -> dict[str, Any]:
    [rule] = yaml.safe_load(RULEBOOK.read_text())[0]["rules"]
    return dict(rule)


def make_event(body: dict[str, Any]) -> dict[str, Any]:
    """The event that the source eda.builtin.webhook makes of a body."""
    return {"event": {"payload": body, "meta": {"endpoint": "endpoint"}}}


def test_condition_has_operators_that_jinja_has_as_well() -> None:
    assert CONDITION.fullmatch(read_rule()["condition"])


def test_condition_selects_firing_alerts_of_a_node() -> None:
    matches = JINJA.compile_expression(read_rule()["condition"])
    found = [(body["status"], body["groupLabels"].get("node"), bool(matches(make_event(body)))) for body in BODIES]
    # An alert without a node forms a group without labels.
    assert found == [
        ("firing", None, False),
        ("firing", "gpu1", True),
        ("resolved", "gpu1", False),
        ("resolved", None, False),
    ]


def test_action_gets_the_node_of_the_alerts_once() -> None:
    rule = read_rule()
    [event] = [make_event(body) for body in BODIES if body["status"] == "firing" and body["groupLabels"]]
    template = rule["actions"][0]["run_playbook"]["extra_vars"]["gpu_alert_node"]
    assert JINJA.from_string(template).render(event) == "gpu1"
    # Both alerts of the node come in one body, and what throttles further ones is the node.
    assert {alert["labels"]["node"] for alert in event["event"]["payload"]["alerts"]} == {"gpu1"}
    [attribute] = rule["throttle"]["group_by_attributes"]
    assert JINJA.compile_expression(attribute)(event) == "gpu1"


def test_route_of_the_guide_leads_critical_alerts_of_nodes_to_the_source() -> None:
    text = GUIDE.read_text(encoding="utf-8").partition("    # alertmanager.yml\n")[2].partition("\n.. code-block")[0]
    guide = yaml.safe_load(text)
    [route] = guide["route"]["routes"]
    names, severity = route["matchers"]
    pattern = re.fullmatch(r'alertname =~ "(.+)"', names)
    assert pattern is not None
    routed = {row.name for row in ALERTS if re.fullmatch(pattern.group(1), row.name)}
    assert routed == {
        "GpuMissing",
        "GpuXid",
        "GpuRecoveryActionNeeded",
        "GpuRowRemapFailed",
        "GpuSramThresholdExceeded",
    }
    assert all("critical" in {row.severity for row in ALERTS if row.name == name} for name in routed)
    assert (severity, route["group_by"]) == ('severity = "critical"', ["node"])
    [webhook] = next(each for each in guide["receivers"] if each["name"] == route["receiver"])["webhook_configs"]
    source = yaml.safe_load(RULEBOOK.read_text())[0]["sources"][0]["eda.builtin.webhook"]
    assert webhook["url"] == f"http://{source['host']}:{source['port']}/endpoint"
