# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook configure_awx with the modules of awx.awx, on a fake of AWX."""

from __future__ import annotations

import copy
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
APPROVALS = "workflow_approval_templates"
STAGING = {"awx_objects_prefix": "Staging", "awx_objects_inventory": "Staging cluster"}


@pytest.fixture
def awx():
    """A fake of AWX with what an administrator has created before."""
    with serve_in_thread(FakeAwx(path.name for path in EXAMPLES.glob("*.yml"))) as server:
        organization = server.add("organizations", name="Default")
        for name in ("GPU cluster", "Staging cluster"):
            server.add("inventories", name=name, organization=organization["id"])
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
    before = configure_another_cluster(awx, configure)
    changed, output = configure("--check")
    assert changed == 3
    assert "UNKNOWN IN CHECK MODE" in output
    assert (awx.objects, awx.changes) == (before, [])

    changed, _output = configure()
    assert changed > 0
    declared = read_objects()
    templates = {item["name"]: item for item in awx.find("job_templates") if item["id"] not in before}
    assert list(templates) == [item["name"] for item in declared["controller_templates"]]
    assert templates["GPU: doctor"]["_survey"] == declared["awx_objects_surveys"]["doctor"]
    [credential] = awx.find("credentials", "GPU hosts")
    [image] = awx.find("execution_environments", "GPU playbooks")
    for item in templates.values():
        assert (item["_credentials"], item["execution_environment"]) == ([credential["id"]], image["id"])
        assert (item["survey_enabled"], item["job_slice_count"], item["allow_simultaneous"]) == (True, 1, False)
    [source] = awx.find("inventory_sources", "GPU nodes")
    [project] = awx.find("projects", "GPU playbooks")
    [inventory] = awx.find("inventories", "GPU cluster")
    [reader] = awx.find("credentials", "GPU cluster")
    assert (source["source"], source["overwrite"], source["update_on_launch"]) == ("scm", True, True)
    assert (source["inventory"], source["source_project"]) == (inventory["id"], project["id"])
    assert (source["credential"], source["execution_environment"]) == (reader["id"], image["id"])
    assert (EXAMPLES / source["source_path"]).is_file()
    # AWX renders these, and Ansible must not.
    [kind] = awx.find("credential_types", "GPU cluster kubeconfig")
    assert kind["injectors"] == declared["controller_credential_types"][0]["injectors"]
    assert kind["injectors"]["extra_vars"] == {"gpu_kubeconfig": "{{ tower.filename.kubeconfig }}"}

    assert list_workflow(awx, "GPU") == {
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

    # What someone has changed in AWX: a connection is deleted, another one bypasses the approvals, and then a step is deleted.
    steps = list_steps(awx, "GPU")
    steps["approve-others"]["_success_nodes"].clear()
    steps["check"]["_always_nodes"].append(steps["others"]["id"])
    changed, output = configure("--check")
    assert (changed, awx.changes) == (1, []), output
    assert re.findall(r"changed: \[localhost\] => \(item=(\S+)\)", output) == ["check", "approve-others"], output
    assert "UNKNOWN IN CHECK MODE" not in output
    awx.delete(steps["report"]["id"])
    changed, output = configure("--check")
    assert (changed, awx.changes) == (1, []), output
    assert "UNKNOWN IN CHECK MODE" in output

    changed, output = configure(awx_objects_state="absent", awx_objects_collection="ansible.controller")
    assert changed > 0
    # The approvals belong to the workflow.
    left = {number: item for number, item in awx.objects.items() if number in before or item["_kind"] != APPROVALS}
    assert left == before, output


def configure_another_cluster(awx, configure):
    """Configure the cluster Staging, whose objects have names of their own; returns all objects afterwards."""
    given = set(awx.objects)
    configure(**STAGING)
    [inventory] = awx.find("inventories", "Staging cluster")
    templates = awx.find("job_templates")
    assert {item["inventory"] for item in (*templates, *awx.find("inventory_sources"))} == {inventory["id"]}
    created = [item for number, item in awx.objects.items() if number not in given]
    names = [item["name"] for item in created if "name" in item]
    # The templates, the two approvals, and one object of each other kind.
    assert len(names) == len(templates) + 2 + 5
    assert [name for name in names if not name.startswith("Staging")] == []
    assert all(step[0].startswith("Staging: ") for step in list_workflow(awx, "Staging").values())
    awx.changes.clear()
    return copy.deepcopy(awx.objects)


def list_steps(awx, prefix):
    """The steps of the workflow of a cluster, by their identifiers."""
    [workflow] = awx.find("workflow_job_templates", f"{prefix}: upgrade driver in waves")
    nodes = awx.find("workflow_job_template_nodes")
    return {node["identifier"]: node for node in nodes if node["workflow_job_template"] == workflow["id"]}


def list_workflow(awx, prefix):
    """The steps of the workflow: job template or approval, job type, limit, and the next steps after success and failure."""
    return {
        identifier: (
            awx.objects[node["unified_job_template"]]["name"],
            node.get("job_type", ""),
            node.get("limit", ""),
            *(
                [awx.objects[number]["identifier"] for number in node[key]]
                for key in ("_success_nodes", "_failure_nodes")
            ),
        )
        for identifier, node in list_steps(awx, prefix).items()
    }
