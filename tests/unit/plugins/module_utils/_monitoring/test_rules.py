# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules under promtool of Debian: what they normalise, when alerts fire, and that faults of the rules are found."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

# The rules are made on the controller.
pytest.importorskip("ruamel.yaml")

from fakes import prometheus_cases as cases
from gates import runbooks
from lab import prometheus

from ansible_collections.gpu.kubernetes.plugins.module_utils._checks.registry import BY_ID
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._monitoring import alerts, rules, series, xid
from ansible_collections.gpu.kubernetes.tests.unit import prometheus_server

#: Of Debian's releases that the gate has found; without a gate, that of this host's.
PROMTOOLS = [f"{folder}/promtool" for folder in prometheus_server.FOLDERS] or [""]
ALL = {name: {"enabled": True} for name in alerts.NAMES}


def build_text(annotations: bool = False) -> str:
    """The file of rules with all alerts, without texts for people: promtool compares them, too."""
    groups = rules.build_groups(ALL)
    for rule in groups[-1]["rules"]:
        if not annotations:
            del rule["annotations"]
    return json.dumps({"groups": groups})


def minutes(text: str) -> int:
    """A duration of the rules, in minutes."""
    number, unit = re.fullmatch(r"(\d+)([smh])", text).groups()
    return int(number) * {"s": 0, "m": 1, "h": 60}[unit]


def build_test(raw, **checks) -> dict[str, object]:
    found = [{"series": name, "values": values} for name, values in raw]
    return {"interval": "1m", "input_series": found, **checks}


def isolate(value, number: int):
    """A text, or texts in lists and mappings, with a node and a namespace of its own, so that many cases share one test of promtool."""
    if isinstance(value, str):
        text = re.sub(r'(?<=")n1(?=[":])|^n1(?=$|:)', f"n{number}", value)
        return re.sub(r'(?<=")ml(?=")|^ml$', f"ml{number}", text)
    if isinstance(value, dict):
        return {key: isolate(each, number) for key, each in value.items()}
    return [isolate(each, number) for each in value]


def build_alert_test(name: str, chosen) -> dict[str, object]:
    """The test of the cases of an alert: when it has held long enough, and one minute before."""
    rows = [row for row in alerts.ALERTS if row.name == name]
    raw, fires = [], []
    for number, case in enumerate(chosen):
        raw += isolate(case.raw, number)
        for labels in case.fires:
            row = next(row for row in rows if row.labels.items() <= labels.items())
            fires.append({"exp_labels": {"severity": row.severity, **isolate(labels, number)}})
    hold = minutes(rows[0].hold)
    minute = cases.MINUTES.get(name, hold + 2)
    checks = [{"eval_time": f"{minute}m", "alertname": name, "exp_alerts": fires}]
    if hold:
        checks.append({"eval_time": f"{hold - 1}m", "alertname": name, "exp_alerts": []})
    return build_test(raw, alert_rule_test=checks)


def build_record_test(rows) -> dict[str, object]:
    """The test of rows of (name, series, labels, value) at the second minute."""
    raw, checks = [], []
    for number, (name, series_of_row, labels, value) in enumerate(rows):
        raw += isolate(series_of_row, number)
        found = isolate(dict(labels), number)
        own = next(f'{key}="{found[key]}"' for key in ("namespace", "node") if key in found)
        text = ",".join(f'{key}="{found[key]}"' for key in sorted(found))
        samples = [{"labels": f"{name}{{{text}}}", "value": value}]
        checks.append({"expr": f"{name}{{{own}}} > 0", "eval_time": "2m", "exp_samples": samples})
    return build_test(raw, promql_expr_test=checks)


def build_tests(name: str = "") -> list[dict[str, object]]:
    """The tests of all cases, or of those of one alert or series."""
    groups = {each: [case for case in cases.CASES if case.alert == each] for each in alerts.NAMES if name in ("", each)}
    tests = []
    for alert, chosen in groups.items():
        parts = [[case] for case in chosen] if alert in cases.GLOBAL else [chosen]
        tests += [build_alert_test(alert, part) for part in parts]
    rows = [
        (row.name, row.raw, {**cases.OTHERS.get(row.exporter, cases.NVIDIA), **row.more}, row.value)
        for row in cases.NORMALISED
    ]
    rows += cases.RECORDED
    chosen = [row for row in rows if name in ("", row[0])]
    tests += [build_record_test(chosen)] if chosen else []
    nothing = [{"expr": "gpu:requested:by_pod", "eval_time": "2m", "exp_samples": []}]
    return [*tests, *([] if name else [build_test(cases.ENDED, promql_expr_test=nothing)])]


@pytest.mark.parametrize("promtool", PROMTOOLS)
def test_rules_with_the_series_of_all_exporters_fire_as_described(tmp_path: Path, promtool: str) -> None:
    status, output = prometheus.run_tests(tmp_path, build_text(), build_tests(), promtool)
    assert status == 0, output


@pytest.mark.parametrize(("found", "replacement", "name"), cases.MUTANTS)
def test_rules_with_a_fault_fail_their_tests(tmp_path: Path, found: str, replacement: str, name: str) -> None:
    text = build_text()
    assert found in text
    status, output = prometheus.run_tests(tmp_path, text.replace(found, replacement), build_tests(name))
    assert status == 1, output
    assert "got:" in output


def test_texts_of_an_alert_are_filled_in(tmp_path: Path) -> None:
    case = next(case for case in cases.CASES if case.alert == "GpuMissing" and case.fires)
    texts = {
        "summary": "Node n1 reports 1 of 2 GPUs",
        "description": next(row.cause for row in alerts.ALERTS if row.name == "GpuMissing"),
        "remedy": next(row.remedy for row in alerts.ALERTS if row.name == "GpuMissing"),
    }
    fires = [{"exp_labels": {"severity": "critical", **case.fires[0]}, "exp_annotations": texts}]
    check = {"eval_time": "7m", "alertname": "GpuMissing", "exp_alerts": fires}
    status, output = prometheus.run_tests(tmp_path, build_text(True), [build_test(case.raw, alert_rule_test=[check])])
    assert status == 0, output


def test_texts_of_each_alert_are_complete_and_name_labels_that_it_has() -> None:
    for row in alerts.ALERTS:
        assert all(text.strip(" .") for text in (row.summary, row.cause, row.remedy)), row.name
        names = set(re.findall(r"\$labels\.(\w+)", f"{row.summary} {row.cause} {row.remedy}"))
        fires = [labels for case in cases.CASES if case.alert == row.name for labels in case.fires]
        chosen = [labels for labels in fires if row.labels.items() <= labels.items()]
        assert chosen, row.name
        for labels in chosen:
            assert names <= set(labels), (row.name, labels)


def test_cases_cover_each_alert_and_each_source_of_a_series() -> None:
    assert {case.alert for case in cases.CASES if case.fires} == set(alerts.NAMES)
    assert {case.alert for case in cases.CASES if not case.fires} == set(alerts.NAMES)
    buckets = {labels["remedy"] for case in cases.CASES for labels in case.fires if "remedy" in labels}
    assert buckets == {bucket.name for bucket in xid.BUCKETS if bucket.severity}
    sources = {(exporter, row.name) for row in series.GPU_SERIES for exporter, _expression in row.sources if exporter}
    # One expression reads both generations of dcgm-exporter where the name is the same.
    assert sources == {(row.exporter, row.name) for row in cases.NORMALISED}


def test_alerts_read_normalised_series_alone() -> None:
    recorded = {row.name for row in series.SERIES}
    for row in alerts.ALERTS:
        names = set(re.findall(r"\b[a-z_]+(?::[a-z_]+)+", row.expression))
        assert names <= recorded, row.name
        assert not re.search(r"nvidia_smi|DCGM|kube_", row.expression), row.name
        assert names or "up{" in row.expression, row.name


def test_each_xid_has_at_most_one_bucket() -> None:
    numbers = [number for bucket in xid.BUCKETS for number in bucket.xids]
    assert len(numbers) == len(set(numbers))
    chosen = (13, 43, 48, 63, 79, 94, 95, 119, 149, 172)
    found = {number: bucket.name for number in chosen for bucket in xid.BUCKETS if number in bucket.xids}
    assert found == {
        13: "restart_application",
        43: "ignore",
        48: "inspect",
        63: "reset_when_idle",
        79: "reboot",
        94: "reset_when_idle",
        95: "reset_gpu",
        119: "reset_gpu",
        149: "inspect",
        172: "unknown",
    }


def test_groups_with_other_values_of_alerts_have_these() -> None:
    overrides = {"GpuXid": {"severity": "info"}, "GpuThrottled": {"for": "1h30m"}, "GpuPodPending": {"enabled": False}}
    found = rules.build_groups(overrides, "https://example.com/page")[-1]["rules"]
    assert {rule["labels"]["severity"] for rule in found if rule["alert"] == "GpuXid"} == {"info"}
    assert [rule["for"] for rule in found if rule["alert"] == "GpuThrottled"] == ["1h30m"]
    names = {rule["alert"] for rule in found}
    optional = {row.name for row in alerts.ALERTS if not row.enabled}
    assert optional > {"GpuMemoryNearlyFull", "GpuUtilizationHigh", "GpuDriverVersionsDiffer"}
    assert set(alerts.NAMES) - names == {"GpuPodPending", *optional}
    assert found[0]["annotations"]["runbook_url"] == "https://example.com/page#gpuexporterabsent"
    assert all("runbook_url" not in rule["annotations"] for rule in rules.build_groups()[-1]["rules"])


@pytest.mark.parametrize(
    "overrides",
    [
        {"GpuXID": {"enabled": False}},
        {"GpuXid": {"enabled": "no"}},
        {"GpuXid": {"hold": "5m"}},
        {"GpuXid": {"for": "5 minutes"}},
        {"GpuXid": {"severity": "page"}},
        {"GpuXid": False},
    ],
)
def test_groups_with_unusable_values_are_refused(overrides) -> None:
    with pytest.raises(ConfigError, match=r"gpu_prometheus_alerts: .*Gpu"):
        rules.build_groups(overrides)


def test_alerts_name_checks_of_the_doctor() -> None:
    named = {row.name: row.check for row in alerts.ALERTS if row.check}
    assert set(named.values()) <= set(BY_ID)
    # What the doctor does not observe: a margin, a threshold, and how GPUs are used.
    unnamed = {"GpuSramThresholdExceeded", "GpuTemperatureMarginLow", "GpuIdleButAllocated"}
    assert {row.name for row in alerts.ALERTS if row.enabled} - set(named) == unnamed


def test_page_of_runbooks_is_that_of_the_alerts() -> None:
    text = runbooks.PAGE.read_text()
    assert text == runbooks.render()
    for name in alerts.NAMES:
        assert f"\n{name}\n~" in text
    assert "docsite.doctor-hw-ecc>` of the doctor, by ``ansible-playbook gpu.kubernetes.diagnose_gpu_nodes" in text
