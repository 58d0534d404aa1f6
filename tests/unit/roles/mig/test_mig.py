# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role on a node with the simulated NVML: unit, reboot, verification and undo. What the GPUs change is tested with the module."""

from __future__ import annotations

import json
import os
import re
import shutil

import pytest
import yaml
from fakes.mig_node import MigNode

from ansible_collections.gpu.kubernetes.plugins.module_utils._distributions import detect, list_kubelet_units
from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT, write_lonely_interpreter

if os.geteuid() != 0:
    pytest.skip("the module's lock file is root's", allow_module_level=True)

INVENTORY = "node ansible_connection=local ansible_become=false\n"
ROLE = "fake.machine.mig"
# A reboot of the simulated driver, which starts the unit if it is enabled.
REBOOT = """#!/usr/bin/python
import os, pathlib, subprocess
from ansible.module_utils.basic import AnsibleModule
module = AnsibleModule({{"msg": {{}}, "reboot_timeout": {{}}}}, supports_check_mode=True)
open({log!r}, "a").write("reboot\\n")
pathlib.Path(os.environ["NVML_STATE"]).unlink()
unit = pathlib.Path({units!r}, "multi-user.target.wants", "gpu-kubernetes-mig.service")
for line in unit.read_text().splitlines() if unit.exists() else []:
    if line.startswith("ExecStart="):
        subprocess.run(line[10:].split(), check=True)
module.exit_json(changed=True)
"""


class Machine(MigNode):
    """A node, and the role with another module for the reboot."""

    def __init__(self, folder, library):
        super().__init__(folder, library)
        self.interpreter = write_lonely_interpreter(folder)
        self.units = folder / "units"
        self.units.mkdir()
        collection = folder / "collections" / "ansible_collections" / "fake" / "machine"
        role = shutil.copytree(ROOT / "roles" / "mig", collection / "roles" / "mig")
        tasks = role / "tasks" / "reboot.yml"
        tasks.write_text(tasks.read_text().replace("ansible.builtin.reboot:", "fake.machine.reboot:"))
        modules = collection / "plugins" / "modules"
        modules.mkdir(parents=True)
        (modules / "reboot.py").write_text(REBOOT.format(log=str(self.log), units=str(self.units)))

    def write_play(self, *parts):
        """A playbook with entry points of the role, each with variables."""
        roles = [
            {"ansible.builtin.include_role": {"name": ROLE, "tasks_from": part}, "vars": variables}
            for part, variables in parts
        ]
        play = {
            "hosts": "all",
            "gather_facts": False,
            "environment": {"PATH": f"{self.programs}:{os.environ['PATH']}", **self.environment},
            "module_defaults": {"gpu.kubernetes.mig_layout": {"library": self.library}},
            "tasks": roles,
        }
        path = self.folder / "play.yml"
        path.write_text(json.dumps([play]))
        return path


@pytest.fixture
def machine(tmp_path, nvml_builder):
    return Machine(tmp_path, nvml_builder.library("a100-40g"))


@pytest.fixture
def apply(run, machine):
    """Run entry points of the role: exit code, number of changed tasks, output in one line."""
    places = {
        "ansible_python_interpreter": machine.interpreter,
        "__mig_program": str(machine.folder / "lib" / "mig.pyz"),
        "__mig_config": str(machine.folder / "etc" / "mig.json"),
        "__mig_units": str(machine.units),
        # The reboot of this machine ends no run.
        "__mig_may_reboot": "{{ mig_allow_reboot }}",
        "mig_state_dir": str(machine.state),
        "mig_cdi_specs": [str(machine.spec)],
        "gpu_sharing_mig_layout": [{"gpus": [0], "profiles": {"1g.5gb": 7}}],
    }

    def play(*parts, options=(), **variables):
        code, output = run(INVENTORY, machine.write_play(*parts), *options, **places, **variables)
        return code, int(re.findall(r"\bchanged=(\d+)", output)[-1]), " ".join(output.split())

    return play


def test_ampere_is_rebooted_with_permission_and_restored(apply, machine):
    code, changes, output = apply(("main", {}))
    assert code != 0, output
    assert (changes, machine.list_files(), list(machine.units.iterdir())) == (0, [], [])
    assert "neither is allowed; set allow_gpu_reset or allow_reboot" in output

    allowed = {"gpu_sharing_allow_reboot": True}
    code, changes, output = apply(("preflight", {}), ("main", {}), options=["--check"], **allowed)
    assert (code, machine.list_files(), list(machine.units.iterdir())) == (0, [], []), output
    assert changes == 3

    # Layout, unit, its activation, and the reboot; the second time nothing.
    code, changes, output = apply(("main", {}), ("verify", {}), ("main", {}), **allowed)
    assert (code, changes) == (0, 4), output
    unit = (machine.units / "gpu-kubernetes-mig.service").read_text()
    kubelet = " ".join(list_kubelet_units(detect(os.path.exists)))
    assert f"Before={kubelet} nvidia-dcgm.service dcgm-exporter.service nvidia_gpu_exporter.service nvidia-cdi" in unit
    assert "After=nvidia-persistenced.service nvidia-fabricmanager.service\n" in unit
    assert f"{machine.folder}/lib/mig.pyz {machine.folder}/etc/mig.json" in unit
    log = machine.read_log()
    assert log.count("reboot") == 1
    assert "systemctl enable gpu-kubernetes-mig.service" in log

    absent = {"mig_state": "absent"}
    code, changes, output = apply(("main", absent), ("main", absent), **allowed)
    assert (code, machine.list_files(), machine.read_log().count("reboot")) == (0, [], 1), output
    assert list(machine.units.glob("**/*.service")) == []


def test_layout_that_differs_fails_the_verification(apply, machine):
    code, _changes, output = apply(("main", {}), ("verify", {"mig_layout": []}), gpu_sharing_allow_gpu_reset=True)
    assert code != 0, output
    assert (
        "Host node: the GPUs, their CDI specifications or the files for the boot differ from the layout (GPU 0: MIG enabled: 7 x 1g.5gb; GPU 1"
        in output
    )
    assert [line for line in machine.read_log() if "reset" in line] == ["nvidia-smi --gpu-reset -i 0000:07:00.0"]


#: Variables of a host, and the units that start after that of the role.
UNITS = {
    "distribution": ({}, ["a.service", "nvidia-dcgm.service", "x.socket"]),
    "declared": ({"mig_kubelet_services": ["b.service"]}, ["b.service", "nvidia-dcgm.service", "x.socket"]),
}


def test_unit_starts_before_the_kubelet_and_services_that_use_gpus(evaluate_role):
    services = ["nvidia-persistenced", "nvidia-fabricmanager.service", "nvidia-dcgm", "x.socket"]
    common = {"mig_services": services, "mig_result": {"kubelet_units": ["a.service"]}}
    found = evaluate_role("mig", {name: {**common, **more} for name, (more, _units) in UNITS.items()}, "__mig_before")
    assert found == {name: [*units, "nvidia-cdi-refresh.service"] for name, (_more, units) in UNITS.items()}


def test_undo_removes_the_unit_before_the_record_by_which_a_repeated_run_finds_the_node():
    path = ROOT / "roles" / "mig" / "tasks" / "node_absent.yml"
    names = [task["name"].partition(" | ")[2] for task in yaml.safe_load(path.read_text())]
    assert names[:4] == [
        "Check whether the GPUs can return to their former layout",
        "Remove the unit that applies the layout at boot",
        "Reload systemd",
        "Restore the former layout",
    ]
