# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of codes has each problem that the report can have, and the guide on troubleshooting each check of the doctor."""

from __future__ import annotations

import re

import pytest
from gates import _support, _symptoms, codes, release

from ansible_collections.gpu.kubernetes.plugins.module_utils._checks.registry import BY_ID, CHECKS
from ansible_collections.gpu.kubernetes.plugins.module_utils._distributions.rows import DISTRIBUTIONS
from ansible_collections.gpu.kubernetes.plugins.module_utils._report import checks

# As checks.py writes them: of a check of a host, and of a problem of the cluster.
WRITTEN = re.compile(r'yield \(?\s*"([a-z_]+)",|_build_problem\(\s*"",\s*\(\s*"([a-z_]+)",|finding = \("([a-z_]+)",')


def test_table_has_each_code_of_the_report() -> None:
    text = (codes.ROOT / "plugins" / "module_utils" / "_report" / "checks.py").read_text(encoding="utf-8")
    written = {code for groups in WRITTEN.findall(text) for code in groups if code}
    assert {"driver_missing", "api", "unreachable", "runtime_class"} <= written
    assert written <= {row[0].strip("`") for row in codes.list_problems()}
    assert checks.HOST_CHECKS


def test_cells_cannot_end_a_cell() -> None:
    assert codes.render_table("T", "", ["A"], [["a|b"]]).splitlines()[-1] == "| a\\|b |"


def test_each_check_is_under_exactly_one_symptom() -> None:
    assert _symptoms.find_misplaced(BY_ID) == []


@pytest.mark.parametrize(
    ("ids", "sentence"),
    [
        ([*BY_ID, "hw.new"], "The check hw.new is under 0 symptoms and 1 times in the registry."),
        (
            [name for name in BY_ID if name != "sc.free"],
            "The check sc.free is under 1 symptoms and 0 times in the registry.",
        ),
        ([*BY_ID, "sc.free"], "The check sc.free is under 1 symptoms and 2 times in the registry."),
    ],
)
def test_find_misplaced_of_another_registry_names_the_check(ids: list[str], sentence: str) -> None:
    assert _symptoms.find_misplaced(ids) == [sentence]


def test_find_misplaced_of_a_check_under_two_symptoms_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    twice = _symptoms.Symptom("A second one", "", (), ("sc.free",))
    monkeypatch.setattr(_symptoms, "SYMPTOMS", (*_symptoms.SYMPTOMS, twice))
    assert _symptoms.find_misplaced(BY_ID) == ["The check sc.free is under 2 symptoms and 1 times in the registry."]


def test_troubleshooting_has_words_cause_and_remedy_of_each_check() -> None:
    text = _symptoms.render(CHECKS)
    for check in CHECKS:
        assert f"- {check.cause}\n      - {check.remedy}\n      - :ref:{check.id} " in text.replace("`", "")
        assert all(f"``{words}``" in text for words in check.words)
    assert "run the playbook ``label_gpu_nodes`` and the playbook ``share_gpus``, and check" in text


def test_remedies_name_playbooks_that_exist() -> None:
    named = {name for check in CHECKS for name in _symptoms.PLAYBOOK.findall(check.remedy)}
    assert {"label_gpu_nodes", "show_gpu_allocation"} <= named
    assert named <= {path.stem for path in (codes.ROOT / "playbooks").glob("*.yml")}


def test_platforms_take_from_their_family_what_they_leave_out() -> None:
    rows = {row[0]: row[1:] for row in _support.list_platforms()}
    assert rows["Debian"][:3] == ("12", "11, 13", "``apt``")
    assert rows["Ubuntu"][2] == "``apt``"
    assert rows["Fedora"][1:3] == ("all", "``dnf``")


def test_distributions_say_what_is_edited_written_or_refused() -> None:
    rows = {row[0]: row[1:] for row in _support.list_distributions(DISTRIBUTIONS)}
    assert rows["kubeadm"] == ("Edited", "Edited", "Edited")
    assert rows["k3s"][0] == "It adds the runtime itself"
    assert rows["k0s"][0] == "Written to ``/etc/k0s/containerd.d/50-gpu-kubernetes.toml``"
    assert rows["k0s"][2] == "Refused, with the reason"
    assert "kube_scheduler_extenders" in rows["kubespray"][2]


def test_images_are_those_of_all_roles_and_have_no_template() -> None:
    rows = list(_support.list_images(codes.load))
    images = {row[1].strip("`") for row in rows}
    assert {component["name"] for component in release.list_images(codes.ROOT)} <= images
    # Those of catalogues, of variables that a role computes, and of a chart.
    assert images >= {
        "docker.io/nanogpu/nano-gpu-agent",
        "ccr.ccs.tencentyun.com/elasticai/elastic-gpu-scheduler",
        "ghcr.io/intel/xpumanager/xpumd",
        "docker.io/rocm/dev-ubuntu-24.04",
        "registry.k8s.io/nfd/node-feature-discovery",
    }
    starts = {row[3].strip("`").removesuffix("_*") for row in rows}
    assert {start for start, *_parts in release.read_images(codes.ROOT)} <= starts
    assert [row for row in rows if "{{" in "".join(row[:3]) or not all(row)] == []


def test_pages_on_disk_are_those_of_the_catalogues() -> None:
    for path, text in codes.render_pages().items():
        assert path.read_text(encoding="utf-8") == text
