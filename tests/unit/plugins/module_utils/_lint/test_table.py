# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each pod of manifests.yml has its findings and no others, in each kind of object and each form of a file."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml

pytest.importorskip("jsonschema")

import jsonschema

from ansible_collections.gpu.kubernetes.plugins.module_utils._lint.catalogue import RULES
from ansible_collections.gpu.kubernetes.plugins.module_utils._lint.lint import lint
from ansible_collections.gpu.kubernetes.plugins.module_utils._lint.manifests import (
    ReadError,
    find_files,
    read_file,
    read_text,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._lint.model import Context
from ansible_collections.gpu.kubernetes.plugins.module_utils._lint.writers import FORMATS

FOLDER = Path(__file__).parent
TABLE = yaml.safe_load((FOLDER / "manifests.yml").read_text(encoding="utf-8"))
ROWS = TABLE["rows"]
#: A folder with manifests of others, and the schema of SARIF 2.1.0 as OASIS publishes it, where they are at hand; neither is in this repository.
EXAMPLES, SCHEMA = os.environ.get("LINT_EXAMPLES"), os.environ.get("LINT_SARIF_SCHEMA")
# Found in objects that are no pods, or in a Deployment alone.
ELSEWHERE = {"GPU018", "GPU020"}


def make_node(name="gpu1", labels=None, taints=(), handlers=(), offers=(), kubelet="v1.34.1"):
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {"taints": list(taints)},
        "status": {
            "allocatable": {"cpu": "8", **{resource: str(units) for resource, units in dict(offers).items()}},
            "runtimeHandlers": [{"name": handler} for handler in handlers],
            "nodeInfo": {"kubeletVersion": kubelet},
        },
    }


def make_context(name):
    fields = dict(TABLE["contexts"][name]) if name else {}
    if "nodes" in fields:
        fields["nodes"] = [make_node(**each) for each in fields["nodes"]]
    return Context(**fields)


def make_template(row):
    """Metadata and spec of the pod of a row."""
    resources = {section: row[section] for section in ("limits", "requests") if section in row}
    env = [{"name": name, "value": value} for name, value in row.get("env", {}).items()]
    container = {
        "name": "main",
        "image": "busybox",
        **({"resources": resources} if resources else {}),
        **({"env": env} if env else {}),
        **row.get("container", {}),
    }
    spec = {"containers": row.get("containers") or [container], **row.get("spec", {})}
    return {"metadata": {"name": "train", **row.get("metadata", {})}, "spec": spec}


def make_workflow(template):
    """A workflow of Argo, whose template has one container; None for a pod with several."""
    spec = dict(template["spec"])
    (container, *more) = spec.pop("containers")
    step = {"name": "step", "metadata": template["metadata"], "container": container, **spec}
    return None if more else {"kind": "Workflow", "spec": {"entrypoint": "step", "templates": [step]}}


KINDS = {
    "Pod": lambda template: {"kind": "Pod", **template},
    "Deployment": lambda template: {"kind": "Deployment", "spec": {"replicas": 1, "template": template}},
    "Job": lambda template: {"kind": "Job", "spec": {"template": template}},
    "CronJob": lambda template: {"kind": "CronJob", "spec": {"jobTemplate": {"spec": {"template": template}}}},
    "PyTorchJob": lambda template: {
        "kind": "PyTorchJob",
        "spec": {"pytorchReplicaSpecs": {"Master": {"replicas": 1, "template": template}}},
    },
    "RayCluster": lambda template: {
        "kind": "RayCluster",
        "spec": {"workerGroupSpecs": [{"groupName": "gpu", "template": template}]},
    },
    "Workflow": make_workflow,
    # The predictor has the fields of a pod's spec itself, and the object its annotations.
    "InferenceService": lambda template: {
        "kind": "InferenceService",
        "metadata": template["metadata"],
        "spec": {"predictor": template["spec"]},
    },
}
SERVICE = {"kind": "Service", "metadata": {"name": "train"}, "spec": {"ports": [{"port": 80}]}}
FORMS = {
    "document": yaml.safe_dump,
    "documents": lambda obj: yaml.safe_dump_all([SERVICE, obj]),
    "List": lambda obj: yaml.safe_dump({"kind": "List", "items": [SERVICE, obj]}),
    "JSON": lambda obj: json.dumps({"apiVersion": "v1", "kind": "List", "items": [obj]}, indent=2),
}


def make_objects(row):
    """Name of the kind -> object."""
    made = {kind: make(make_template(row)) for kind, make in KINDS.items()}
    return {
        kind: {"apiVersion": "example.com/v1", **obj, "metadata": {"name": "train", **obj.get("metadata", {})}}
        for kind, obj in made.items()
        if obj
    }


@pytest.mark.parametrize("row", ROWS, ids=lambda row: "-".join(row["expect"]) or "good")
def test_manifest_has_its_findings_in_each_kind_and_form(row):
    context = make_context(row.get("context"))
    objects = make_objects(row)
    texts = {kind: FORMS["document"](obj) for kind, obj in objects.items()}
    texts.update({form: make(objects["Pod"]) for form, make in FORMS.items()})
    for name, text in texts.items():
        findings = lint(read_text(text, name), context).findings
        assert {each.rule: each.severity for each in findings} == row["expect"], name
        # A finding has the line of its place, which is in the text.
        assert all(0 < each.line <= len(text.splitlines()) for each in findings), name


def test_table_has_good_and_bad_manifests_and_each_rule():
    good = [row for row in ROWS if not row["expect"]]
    assert len(ROWS) >= 100
    assert 2 * min(len(good), len(ROWS) - len(good)) >= 100
    assert {rule for row in ROWS for rule in row["expect"]} == {rule.number for rule in RULES} - ELSEWHERE
    assert len({json.dumps({**row, "expect": None}, sort_keys=True) for row in ROWS}) == len(ROWS)


def test_sarif_of_all_manifests_has_the_shape_that_readers_require():
    text = "---\n".join(yaml.safe_dump(make_objects(row)["Job"]) for row in ROWS)
    report = json.loads(FORMATS["sarif"](lint(read_text(text, "deploy/train.yaml"), Context())))
    assert report["runs"][0]["results"]
    schema = json.loads((FOLDER / "sarif_subset.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(report, schema)
    if SCHEMA:
        jsonschema.validate(report, json.loads(Path(SCHEMA).read_text(encoding="utf-8")))
    rules = {rule["id"] for rule in report["runs"][0]["tool"]["driver"]["rules"]}
    assert {result["ruleId"] for result in report["runs"][0]["results"]} <= rules
    report["runs"][0]["results"][0]["level"] = "fatal"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(report, schema)


def test_manifests_of_others_are_read_and_well_formed(tmp_path):
    """Each file is read, or is a template. A field of a wrong type would be an error of the linter, because clusters have accepted these manifests."""
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(make_objects(ROWS[0])["Job"]))
    files, documents, refused = find_files(EXAMPLES or str(tmp_path)), [], []
    for path in files:
        try:
            documents += read_file(path)
        except ReadError as error:
            refused.append(str(error))
    result = lint(documents, Context())
    print(FORMATS["text"](result))
    assert result.workloads > 0
    assert [each.source for each in result.findings if each.rule == "GPU000"] == []
    assert all(each.line > 0 for each in result.findings)
    assert len(refused) < len(files)
