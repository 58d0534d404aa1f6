# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook configure_awx with the modules of awx.awx, on a fake of AWX."""

from __future__ import annotations

import re
import sysconfig
from pathlib import Path

import pytest
from fakes.awx import TOKEN, FakeAwx
from fakes.loopback_api import serve_in_thread
from gates.awx import read_objects

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

EXAMPLES = ROOT / "docs" / "examples" / "awx"
VARIABLES = {
    "awx_objects_inventory": "GPU cluster",
    "awx_objects_project_url": "https://git.example.com/gpu.git",
    "awx_objects_image": "registry.example.com/gpu-ee:1.0",
    "awx_objects_inventory_file": "inventory/cluster.gpu_nodes.yml",
    "awx_objects_inventory_credential": "GPU cluster",
    "awx_objects_credentials": ["GPU hosts"],
}


@pytest.fixture
def awx():
    """A fake of AWX with what an administrator has created before."""
    with serve_in_thread(FakeAwx(path.name for path in EXAMPLES.glob("*.yml"))) as server:
        organization = server.add("organizations", name="Default")
        server.add("inventories", name="GPU cluster", organization=organization["id"])
        for name in ("GPU hosts", "GPU cluster"):
            server.add("credentials", name=name, organization=organization["id"])
        yield server


@pytest.fixture
def configure(run, awx, tmp_path):
    """Run the playbook: number of changed tasks, and the output in one line. It fails if the playbook does."""
    # A fake of ansible.controller: its modules have the names and the code of awx.awx.
    fake = tmp_path / "ansible_collections" / "ansible"
    fake.mkdir(parents=True)
    modules = Path(sysconfig.get_path("purelib")) / "ansible_collections" / "awx" / "awx"
    (fake / "controller").symlink_to(modules)
    environment = {
        "ANSIBLE_COLLECTIONS_PATH": f"{ROOT / '.ansible' / 'collections'}:{tmp_path}:{modules.parents[2]}",
        "CONTROLLER_HOST": awx.url,
        "CONTROLLER_OAUTH_TOKEN": TOKEN,
    }

    def play(*options, **variables):
        playbook = ROOT / "playbooks" / "configure_awx.yml"
        code, output = run("", playbook, *options, environment=environment, **{**VARIABLES, **variables})
        assert code == 0, output
        assert TOKEN not in output
        assert "duplicate" not in output
        return int(re.search(r"changed=(\d+)", output)[1]), " ".join(output.split())

    return play


def test_second_run_changes_nothing_and_undo_leaves_what_was_there(awx, configure):
    before = dict(awx.objects)
    changed, output = configure("--check")
    assert changed == 3
    assert "UNKNOWN IN CHECK MODE" in output
    assert (awx.objects, awx.changes) == (before, [])

    changed, _output = configure()
    assert changed > 0
    declared = read_objects()
    templates = {item["name"]: item for item in awx.find("job_templates")}
    assert list(templates) == [item["name"] for item in declared["controller_templates"]]
    assert templates["GPU: doctor"]["_survey"] == declared["awx_objects_surveys"]["doctor"]
    [credential] = awx.find("credentials", "GPU hosts")
    [image] = awx.find("execution_environments")
    for item in templates.values():
        assert (item["_credentials"], item["execution_environment"]) == ([credential["id"]], image["id"])
        assert (item["survey_enabled"], item["job_slice_count"], item["allow_simultaneous"]) == (True, 1, False)
    [source] = awx.find("inventory_sources")
    [project] = awx.find("projects")
    [inventory] = awx.find("inventories")
    [reader] = awx.find("credentials", "GPU cluster")
    assert (source["source"], source["overwrite"], source["update_on_launch"]) == ("scm", True, True)
    assert (source["inventory"], source["source_project"]) == (inventory["id"], project["id"])
    assert (source["credential"], source["execution_environment"]) == (reader["id"], image["id"])
    assert (EXAMPLES / source["source_path"]).is_file()
    # AWX renders these, and Ansible must not.
    [kind] = awx.find("credential_types")
    assert kind["injectors"] == declared["controller_credential_types"][0]["injectors"]
    assert kind["injectors"]["extra_vars"] == {"gpu_kubeconfig": "{{ tower.filename.kubeconfig }}"}

    assert list_workflow(awx) == {
        "check": ("GPU: upgrade driver", "check", "", ["approve-first"], []),
        "approve-first": ("GPU: upgrade the first node", "", "", ["first"], []),
        "first": ("GPU: upgrade driver", "run", "gpu_nodes[0]", ["verify-first"], []),
        "verify-first": ("GPU: verify", "", "gpu_nodes[0]", ["approve-others"], []),
        "approve-others": ("GPU: upgrade the other nodes", "", "", ["others"], []),
        "others": ("GPU: upgrade driver", "run", "", ["report"], []),
        "report": ("GPU: verify", "", "", [], []),
    }

    awx.changes.clear()
    changed, output = configure()
    assert (changed, awx.changes) == (0, []), output

    changed, output = configure(awx_objects_state="absent", awx_objects_collection="ansible.controller")
    assert changed > 0
    # The approvals belong to the workflow.
    left = {number: item for number, item in awx.objects.items() if item["_kind"] != "workflow_approval_templates"}
    assert left == before, output


def list_workflow(awx):
    """The steps of the workflow: job template or approval, job type, limit, and the next steps after success and failure."""
    return {
        node["identifier"]: (
            awx.objects[node["unified_job_template"]]["name"],
            node.get("job_type", ""),
            node.get("limit", ""),
            *(
                [awx.objects[number]["identifier"] for number in node[key]]
                for key in ("_success_nodes", "_failure_nodes")
            ),
        )
        for node in awx.find("workflow_job_template_nodes")
    }
