# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The published JSON Schemas, and strict copies of them, so that a field that no schema describes fails a test."""

from __future__ import annotations

import json
from typing import Any

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT


def read_schema(name: str) -> dict[str, Any]:
    """The published schema of a document: report, plan, doctor or lint. It accepts fields that a later version adds."""
    content: dict[str, Any] = json.loads(
        (ROOT / "docs" / "schemas" / f"gpu-{name}-v1.json").read_text(encoding="utf-8")
    )
    return content


def forbid_other_fields(schema: Any) -> Any:
    """A copy of a schema in which objects with described fields have no others."""
    if isinstance(schema, list):
        return [forbid_other_fields(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    strict = {key: forbid_other_fields(value) for key, value in schema.items()}
    return {"additionalProperties": False, **strict} if "properties" in schema else strict
