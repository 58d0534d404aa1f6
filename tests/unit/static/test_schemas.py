# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the collection writes for programs fits the published JSON Schemas. The doctor's report has its test beside its code."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._lint.lint import lint
from ansible_collections.gpu.kubernetes.plugins.module_utils._lint.model import Document
from ansible_collections.gpu.kubernetes.plugins.module_utils._lint.writers import write_json
from ansible_collections.gpu.kubernetes.plugins.module_utils._report.build import build_report
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.catalogue import STRATEGIES
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._lint.test_table import (
    ROWS,
    make_context,
    make_objects,
)
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._report.observations import (
    MISMATCH,
    cluster,
    gpu,
    host,
)
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._sharing.operated_nodes import operated
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._sharing.sharing_nodes import (
    host as shared_host,
)
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._sharing.sharing_nodes import node, plan
from ansible_collections.gpu.kubernetes.tests.unit.schemas import forbid_other_fields, read_schema

FAILED = {"node": "worker-1", "passed": False, "reason": "no CUDA; read its log", "log_tail": ["x"], "image": "a/b:1"}
REPORTS = {
    "healthy": build_report([host()], cluster()),
    "no API server": build_report([], cluster(error="The API is away; check it.", nodes=[], hosts=["worker-1"])),
    "no driver": build_report([host(nvml=MISMATCH)], cluster(left_out=["worker-2"])),
    "failed test": build_report([host()], cluster(smoke=[FAILED])),
    "no cluster entry": build_report([host()], cluster(nodes=[], smoke=[])),
    "MIG": build_report([host(gpus=[gpu(mig_mode="enabled", mig_devices=[{"name": "MIG 1g.10gb"}])])], cluster()),
    "no RuntimeClass": build_report([host(toolkit={})], cluster(runtime_class={"name": "nvidia", "found": False})),
}
PLANS = {
    "none": plan([], []),
    **{name: plan([shared_host(name)], [node()]) for name in STRATEGIES},
    "leaves": plan([shared_host("exclusive", migrate=True)], [node("gpushare", allocated=1)]),
    "operator": plan([shared_host("time_slicing")], [operated()]),
}
LINTS = {
    str(number): json.loads(
        write_json(lint([Document("-", make_objects(row)["Pod"])], make_context(row.get("context"))))
    )
    for number, row in enumerate(ROWS)
}


@pytest.mark.parametrize(("name", "documents"), [("report", REPORTS), ("plan", PLANS), ("lint", LINTS)])
def test_output_fits_the_published_schema(name: str, documents: dict[str, Any]) -> None:
    schema = read_schema(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(forbid_other_fields(schema))
    for title, document in documents.items():
        plain = json.loads(json.dumps(document))
        problems = [f"{title}: {error.json_path}: {error.message}" for error in validator.iter_errors(plain)]
        assert problems == []
        assert plain["schema"] == schema["$id"] == f"gpu.kubernetes/{name}/v1"
        assert not validator.is_valid({**plain, "further": 1})


@pytest.mark.parametrize("name", ["report", "plan", "doctor", "lint"])
def test_published_schema_accepts_fields_that_a_later_version_adds(name: str) -> None:
    assert '"additionalProperties": false' not in json.dumps(read_schema(name))


def test_strict_schema_rejects_a_further_field_at_each_depth_that_the_published_one_accepts() -> None:
    published = read_schema("report")
    strict = forbid_other_fields(published)
    report = json.loads(json.dumps(REPORTS["healthy"]))
    [entry] = report["nodes"]
    jsonschema.validate(report, strict)
    for place in (report, report["summary"], entry, entry["smoke_test"]):
        place["further"] = 1
        jsonschema.validate(report, published)
        with pytest.raises(jsonschema.ValidationError, match="'further' was unexpected"):
            jsonschema.validate(report, strict)
        del place["further"]


def test_documents_have_what_the_schemas_describe() -> None:
    results = {entry["smoke_test"]["result"] for report in REPORTS.values() for entry in report["nodes"]}
    assert results == {"passed", "failed", "not run"}
    assert any(report["problems"] for report in REPORTS.values())
    assert {row["to"] for planned in PLANS.values() for row in planned["nodes"]} >= set(STRATEGIES)
    assert {finding["rule"] for found in LINTS.values() for finding in found["findings"]} >= {"GPU001", "GPU010"}
