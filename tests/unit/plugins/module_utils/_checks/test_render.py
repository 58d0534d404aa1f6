# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import io
import json
import tarfile
from typing import Any
from xml.etree import ElementTree

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._checks.bundle import build_bundle
from ansible_collections.gpu.kubernetes.plugins.module_utils._checks.judge import judge
from ansible_collections.gpu.kubernetes.plugins.module_utils._checks.registry import CHECKS
from ansible_collections.gpu.kubernetes.plugins.module_utils._checks.render import (
    render_guide,
    render_junit,
    render_symptoms,
    render_text,
)
from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._checks.healthy import build, put
from ansible_collections.gpu.kubernetes.tests.unit.schemas import forbid_other_fields, read_schema

HOSTILE = "</failure>\x1b[2J\x00\u202e]]>"


def report(**changes: Any) -> dict[str, Any]:
    host, cluster = build()
    for path, value in changes.items():
        put(host, path.replace("__", "/"), value)
    return judge([host], cluster, errors=["The list of Leases cannot be read."])


BROKEN = {"pci__0__alive": False, "nvml__gpus__1__pcie__width": 8, "nvml__gpus__0__persistence_mode": "disabled"}


def test_render_text_puts_root_causes_first() -> None:
    texts = [text for text, _tone in render_text(report(**BROKEN), ["/tmp/r.json"])]
    assert texts[0].startswith("GPU doctor: 1 host, faults were found (")
    causes = [text for text in texts if text.startswith(("FAIL", "WARN"))]
    assert causes == ["FAIL hw.pci_alive: GPUs answer on the PCI bus on gpu1"]
    assert "  the GPU at 0000:3b:00.0 does not answer on the PCI bus" in texts
    assert any(text.startswith("  - hw.bar, hw.pci_link, ") or ": because hw.pci_alive" in text for text in texts)
    remark = "GPU 0 at 0000:3b:00.0 has no persistence mode, so that the driver starts it for each program"
    assert f"  - lib.persistence: {remark} on gpu1" in texts
    assert "  - The list of Leases cannot be read." in texts
    assert texts[-1] == "Written: /tmp/r.json"


def test_render_text_of_healthy_node_has_no_causes() -> None:
    texts = [text for text, _tone in render_text(report())]
    assert "no fault was found" in texts[0]
    assert not any(text.startswith(("FAIL", "WARN")) for text in texts)


def test_render_junit_has_a_case_for_each_check() -> None:
    root = ElementTree.fromstring(render_junit(report(**BROKEN)).encode())  # noqa: S314 - our own
    suites = {suite.get("name"): suite for suite in root}
    assert set(suites) == {"cluster", "gpu1"}
    cases = {case.get("name"): case for suite in root for case in suite}
    assert set(cases) == {check.id for check in CHECKS}
    assert sum(int(suite.get("tests", 0)) for suite in root) == len(CHECKS)
    assert suites["gpu1"].get("failures") == "1"
    assert [child.tag for child in cases["hw.pci_alive"]] == ["failure"]
    assert [child.tag for child in cases["hw.bar"]] == ["skipped"]
    assert [child.tag for child in cases["tk.binary"]] == []


def test_render_junit_of_hostile_text_is_well_formed() -> None:
    text = render_junit(report(runtime__error=HOSTILE))
    failure = ElementTree.fromstring(text.encode()).find(".//failure")  # noqa: S314 - our own
    assert failure is not None
    assert failure.get("message") == "</failure>\\x1b[2J\\x00\\u202e]]>"


@pytest.mark.parametrize("changes", [{}, BROKEN, {"runtime__error": HOSTILE}])
def test_report_matches_the_published_schema(changes: dict[str, Any]) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = read_schema("doctor")
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(forbid_other_fields(schema))
    found = report(**changes)
    validator.validate(json.loads(json.dumps(found)))
    assert found["schema"] == schema["$id"]
    assert not validator.is_valid({**found, "status": "well"})
    assert not validator.is_valid({**found, "further": 1})


def test_guide_has_what_the_registry_renders() -> None:
    page = (ROOT / "docs" / "docsite" / "rst" / "guide_doctor.rst").read_text(encoding="utf-8")
    marker = "a test compares both.\n\n"
    assert page.partition(marker)[2] == render_guide()


def test_render_symptoms_without_a_cause_names_the_playbook() -> None:
    assert "diagnose_gpu_nodes" in render_symptoms([])[0][0]


def test_build_bundle_has_no_credentials_and_is_reproducible() -> None:
    host, cluster = build()
    host["host"] = "../../etc/gpu 1"
    host["runtime"]["error"] = "https://me:hunter22@registry.invalid/"
    host["kubelet"]["token"] = "hunter22"
    cluster["nodes"]["gpu1"]["reason"] = "Authorization: Bearer hunter22"
    data = build_bundle({"report.txt": "text\n"}, [host, host], cluster)
    assert data == build_bundle({"report.txt": "text\n"}, [host, host], cluster)
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
        members = archive.getmembers()
        texts = {member.name: archive.extractfile(member).read().decode() for member in members}  # type: ignore[union-attr]
    assert sorted(texts) == [
        "gpu-doctor/cluster.json",
        "gpu-doctor/hosts/0000-.._.._etc_gpu_1.json",
        "gpu-doctor/hosts/0001-.._.._etc_gpu_1.json",
        "gpu-doctor/report.txt",
    ]
    assert {member.mode for member in members} == {0o600}
    assert not any("hunter22" in text for text in texts.values())
    assert json.loads(texts["gpu-doctor/cluster.json"])["runtime_classes"] == {"nvidia": "nvidia"}
