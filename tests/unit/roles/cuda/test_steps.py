# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps of the role on a machine with fake alternatives, packages and installers, above all unmanaged toolkits and failures."""

from __future__ import annotations

import json
import os
import re

import pytest
from fakes.cuda_machine import Machine

if os.geteuid() != 0:
    pytest.skip("only root gives files to root", allow_module_level=True)

INVENTORY = "node ansible_connection=local ansible_become=false\n"
NVIDIA_PROVIDER = {"cuda_provider": "nvidia", "cuda_manage_repository": False}
BOTH = {**NVIDIA_PROVIDER, "cuda_versions": ["12.8", "13.0"]}


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


@pytest.fixture
def apply(run, machine):
    """Run task files of the role: exit code, number of changed tasks, output in one line."""

    def play(parts, *options, **variables):
        code, output = run(INVENTORY, machine.write_play(*parts.split(), **variables), *options)
        return code, int(re.findall(r"\bchanged=(\d+)", output)[-1]), " ".join(output.split())

    return play


@pytest.fixture
def install_runfile(apply):
    """Install CUDA 12.8 with an installer."""

    def install(installer, *options):
        variables = {"cuda_method": "runfile", "cuda_versions": ["12.8"], "cuda_runfiles": [installer]}
        return apply("validate_runfile present", *options, **variables)

    return install


def test_packages_do_not_replace_an_unowned_toolkit_and_deregister_their_own(machine, apply):
    """With rpm and the alternatives of chkconfig, which fail for an alternative that is not registered."""
    machine.add_compiler("12.8", owned=False)
    code, changes, output = apply("validate_package present", **BOTH)
    assert (code != 0, changes, machine.list_toolkits()) == (True, 0, ["cuda-12.8"]), output
    assert "cuda-12.8/bin/nvcc exists, but neither a package nor this role installed it" in output
    (machine.folder / "owned").write_text(f"{machine.local}/cuda-12.8/bin/nvcc\n")
    code, _changes, output = apply("validate_package present", **BOTH)
    assert (code, machine.list_alternatives()) == (0, ["cuda-12.8", "cuda-13.0"]), output
    # A recorded toolkit is managed, even if no package owns it.
    machine.read_actions()
    code, _changes, output = apply("validate_package present", **NVIDIA_PROVIDER, cuda_versions=["13.0"])
    assert (code, machine.list_alternatives(), machine.read_default()) == (0, ["cuda-13.0"], "cuda-13.0"), output
    assert [words for words in machine.read_actions() if "--remove" in words] == ["--remove cuda cuda-12.8"]


@pytest.mark.thorough
def test_alternative_that_a_removed_package_has_left_is_deregistered(machine, apply):
    """With dpkg, whose alternatives do not list a folder that is gone. Another package may own the toolkit before."""
    (machine.folder / "dpkg").touch()
    (machine.folder / "programs" / "rpm").unlink()
    (machine.folder / "unregistered").touch()
    machine.add_compiler("12.8", owned=True)
    code, _changes, output = apply("validate_package present", **NVIDIA_PROVIDER, cuda_versions=["12.8"])
    assert (code, machine.list_alternatives()) == (0, ["cuda-12.8"]), output
    code, _changes, output = apply("absent", **NVIDIA_PROVIDER, cuda_state="absent")
    assert (code, machine.list_alternatives(), machine.list_toolkits()) == (0, [], []), output
    assert not (machine.folder / "state").exists()


#: The step of a killed replacement: is the former toolkit moved, is the new one started, is it complete?
KILLED = {
    "moved": (True, False, False),
    "started": (True, True, False),
    "complete": (True, True, True),
}


def leave_killed(machine, step):
    """Leave the machine as a killed run that replaced the present toolkit with that of installer 2."""
    is_moved, is_started, is_complete = KILLED[step]
    root, former = machine.local / "cuda-12.8", machine.read_record()
    if is_moved:
        root.rename(machine.local / ".gpu-kubernetes-cuda-12.8")
    if is_started:
        (root / "bin").mkdir(parents=True)
    record = {**former, "checksum": machine.write_installer(2)["checksum"], "complete": is_complete}
    if is_complete:
        (machine.local / ".gpu-kubernetes-cuda-12.8" / "bin" / "nvcc").rename(root / "bin" / "nvcc")
    else:
        record["former"] = former
    (machine.folder / "state" / "state" / "cuda-runfile-12.8.json").write_text(json.dumps(record))


@pytest.mark.thorough
def test_failed_run_after_a_killed_one_keeps_the_complete_toolkit(machine, apply, install_runfile):
    """Three runs are killed, each at another step, and the last one is undone. The scenario completes such a run, and has failures without one."""
    code, _changes, output = install_runfile(machine.write_installer(1))
    assert code == 0, output
    leave_killed(machine, "moved")
    code, _changes, output = install_runfile({**machine.write_installer(2), "checksum": "sha256:" + "0" * 64})
    assert code != 0, output
    assert "and was not executed" in output
    assert machine.list_toolkits() == ["cuda", "cuda-12.8"]
    assert (machine.local / "cuda-12.8" / "whole").read_text() == "1\n"
    assert machine.read_record()["checksum"] == machine.write_installer(1)["checksum"]

    leave_killed(machine, "complete")
    (machine.folder / "dies").touch()
    code, _changes, output = install_runfile(machine.write_installer(3))
    assert code != 0, output
    assert machine.list_toolkits() == ["cuda", "cuda-12.8"]
    # In this test, a complete new toolkit has only its compiler.
    assert not (machine.local / "cuda-12.8" / "whole").exists()
    record = machine.read_record()
    assert (record["complete"], record["checksum"]) == (True, machine.write_installer(2)["checksum"])

    leave_killed(machine, "started")
    code, _changes, output = apply("absent", cuda_method="runfile", cuda_state="absent")
    assert (code, machine.list_toolkits(), machine.list_alternatives()) == (0, [], []), output
    assert not (machine.folder / "state").exists()
