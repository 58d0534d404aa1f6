# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The example for ansible-rulebook, by its schema; ansible-rulebook itself needs Java, and is not among the tools of the tests."""

from __future__ import annotations

import json
from pathlib import Path

import ansiblelint
import jsonschema
import yaml

ROOT = Path(__file__).resolve().parents[3]
RULEBOOK = ROOT / "extensions" / "eda" / "rulebooks" / "gpu_alerts.yml"


def test_rulebook_fits_its_schema_and_runs_a_playbook_of_this_collection() -> None:
    content = yaml.safe_load(RULEBOOK.read_text())
    schema = Path(ansiblelint.__file__).parent / "schemas" / "rulebook.json"
    jsonschema.validate(content, json.loads(schema.read_text()))
    [action] = content[0]["rules"][0]["actions"]
    name = action["run_playbook"]["name"]
    assert name.startswith("gpu.kubernetes.")
    plays = yaml.safe_load((ROOT / "playbooks" / f"{name.rpartition('.')[2]}.yml").read_text())
    # What the alert passes is what the playbook reads.
    [variable] = action["run_playbook"]["extra_vars"]
    assert variable in json.dumps(plays)
