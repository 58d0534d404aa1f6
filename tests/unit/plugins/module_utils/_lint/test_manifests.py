# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manifests are read with their lines, wherever a pod is in them; what cannot be read says why."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpu.kubernetes.plugins.module_utils._lint import command
from ansible_collections.gpu.kubernetes.plugins.module_utils._lint.manifests import ReadError, read_text
from ansible_collections.gpu.kubernetes.plugins.module_utils._lint.model import Document
from ansible_collections.gpu.kubernetes.plugins.module_utils._lint.walker import find_workloads

ALIASES = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(8)
)
BAD = """\
apiVersion: v1
kind: List
items:
  - kind: Service
  - kind: Pod
    metadata: {name: train}
    spec:
      containers:
        - name: main
          image: busybox
          resources:
            limits:
              nvidia.com/gpu: 500m
---
kind: ConfigMap
"""
SPEC = {"containers": [{"name": "a", "image": "b"}]}


def test_list_and_several_documents_keep_their_lines():
    documents = read_text(BAD, "x.yaml")
    assert [each.kind for each in documents] == ["Service", "Pod", "ConfigMap"]
    assert documents[1].find_line("/spec/containers/0/resources/limits/nvidia.com~1gpu") == 13
    assert documents[1].find_line("/spec/containers/0/nothing") == 9


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kind: {{ .Values.kind }}\n  x: [", "render it first"),
        ("a: [1", "x.yaml, line 2"),
        ("- 1\n- 2\n", "is not a Kubernetes object"),
        ("- {op: test, path: /a}\n- {op: test}\n", "is not a Kubernetes object"),
        (ALIASES, "more than"),
    ],
)
def test_unreadable_texts_say_why(text, words):
    with pytest.raises(ReadError, match=words):
        read_text(text, "x.yaml")


@given(
    st.recursive(
        st.just(SPEC),
        lambda inner: st.one_of(
            st.lists(inner, min_size=1, max_size=3), st.dictionaries(st.text(max_size=4), inner, min_size=1, max_size=3)
        ),
        max_leaves=6,
    )
)
def test_every_pod_is_found_at_any_depth(value):
    text = json.dumps(value)
    found = list(find_workloads([Document("-", {"kind": "X", "spec": value})]))
    assert len(found) == text.count('"containers"')


def test_documents_that_are_no_objects_are_left_out_beside_others():
    text = "kind: A\nspec: {enum: [=]}\n---\n- 1\n---\nplain\n---\n"
    assert [each.kind for each in read_text(text, "x.yaml")] == ["A"]


def test_json_patches_are_left_out():
    assert read_text("- op: replace\n  path: /spec/replicas\n  value: 2\n- {op: remove, path: /a}\n", "x.yaml") == []


def test_metadata_of_a_template_is_found():
    obj = {
        "kind": "CronJob",
        "metadata": {"name": "outer"},
        "spec": {"jobTemplate": {"spec": {"template": {"metadata": {"name": "inner"}, "spec": SPEC}}}},
    }
    (found,) = find_workloads([Document("-", obj)])
    assert (found.metadata["name"], found.pointer) == ("inner", "/spec/jobTemplate/spec/template/spec")


def run(capsys, *arguments):
    status = command.main(list(map(str, arguments)))
    output = capsys.readouterr()
    return status, output.out, output.err


def test_command_reports_in_four_formats(capsys, tmp_path):
    path = tmp_path / "job.yaml"
    path.write_text(BAD.replace("train", '"train\\e[31m"'))
    status, text, _errors = run(capsys, tmp_path)
    assert status == 1
    assert f"{path}:13: error GPU003 Pod/train" in text
    assert "\x1b" not in text
    assert "skipped GPU013: nodes not known" in text
    status, text, _errors = run(capsys, path, "--format", "json", "--fail-on", "never")
    report = json.loads(text)
    assert (status, report["schema"], report["summary"]["error"]) == (0, "gpu.kubernetes/lint/v1", 1)
    status, text, _errors = run(capsys, path, "--format", "sarif")
    (result,) = json.loads(text)["runs"][0]["results"]
    assert (result["ruleId"], result["locations"][0]["physicalLocation"]["region"]) == ("GPU003", {"startLine": 13})
    status, text, _errors = run(capsys, path, "--format", "junit")
    suite = ElementTree.fromstring(text)  # noqa: S314 - our own output
    assert (suite.get("failures"), [case.get("name")[:6] for case in suite if case.find("failure") is not None]) == (
        "1",
        ["GPU003"],
    )
    [failure] = [case.find("failure") for case in suite if case.find("failure") is not None]
    [finding] = report["findings"]
    assert finding["message"] in failure.text
    assert finding["fix"] in failure.text
    baseline = tmp_path / "baseline.txt"
    baseline.write_text(json.dumps(report))
    assert run(capsys, path, "--baseline", baseline)[0] == 0


def test_command_reads_the_cluster_from_a_file(capsys, tmp_path):
    cluster, pod = tmp_path / "cluster.json", tmp_path / "pod.yaml"
    node = {"kind": "Node", "metadata": {"name": "a"}, "status": {"allocatable": {"nvidia.com/gpu": "1"}}}
    cluster.write_text(json.dumps({"kind": "NodeList", "items": [node]}))
    pod.write_text(BAD.replace("500m", "2"))
    status, text, _errors = run(capsys, pod, "--context", cluster)
    assert (
        status,
        "GPU014 Pod/train asks for 2 of nvidia.com/gpu, and no node that it selects has more than 1" in text,
    ) == (1, True)


def test_command_without_path_and_cluster_is_refused(capsys):
    with pytest.raises(SystemExit) as ended:
        command.main([])
    assert (ended.value.code, "name a PATH, or set --live" in capsys.readouterr().err) == (2, True)


@pytest.mark.parametrize("name", ["missing.yaml", "empty"])
def test_command_refuses_input_that_is_not_there(capsys, tmp_path, name):
    (tmp_path / "empty").mkdir()
    status, text, errors = run(capsys, tmp_path / name)
    assert (status, text, errors.startswith("error: ")) == (2, "", True)


def test_command_checks_the_other_files_of_a_folder_with_an_unreadable_one(capsys, tmp_path):
    (tmp_path / "a.yaml").write_text("image: {{ .Values.image }}\n  x: [")
    (tmp_path / "b.yaml").write_text(BAD)
    status, text, errors = run(capsys, tmp_path, "--fail-on", "never")
    assert (status, errors.startswith(f"error: {tmp_path}/a.yaml, line "), errors.count("\n")) == (2, True, 1)
    assert f"{tmp_path}/b.yaml:13: error GPU003 Pod/train" in text
    # Nodes that are missing in the facts would be findings, so that those have to be complete.
    status, text, errors = run(capsys, tmp_path / "b.yaml", "--context", tmp_path)
    assert (status, text, "a.yaml" in errors) == (2, "", True)
