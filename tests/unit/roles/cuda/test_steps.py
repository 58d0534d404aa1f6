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


def test_packages_that_deregister_their_alternatives_are_removed(machine, apply):
    code, _changes, output = apply("present", **BOTH)
    assert (code, machine.list_alternatives()) == (0, ["cuda-12.8", "cuda-13.0"]), output
    machine.read_actions()
    one = {**NVIDIA_PROVIDER, "cuda_versions": ["13.0"]}
    code, _changes, output = apply("present", **one)
    assert (code, machine.list_alternatives(), machine.read_default()) == (0, ["cuda-13.0"], "cuda-13.0"), output
    assert [words for words in machine.read_actions() if "--remove" in words] == ["--remove cuda cuda-12.8"]
    code, _changes, output = apply("absent", **NVIDIA_PROVIDER, cuda_state="absent")
    assert (code, machine.list_alternatives(), machine.list_toolkits()) == (0, [], []), output
    assert not (machine.folder / "state").exists()


@pytest.mark.thorough
def test_alternatives_of_removed_packages_are_deregistered(machine, apply):
    (machine.folder / "dpkg").touch()
    (machine.folder / "unregistered").touch()
    code, _changes, output = apply("present", **BOTH)
    assert code == 0, output
    code, _changes, output = apply("present", **NVIDIA_PROVIDER, cuda_versions=["13.0"])
    assert (code, machine.list_alternatives()) == (0, ["cuda-13.0"]), output
    assert machine.list_toolkits() == ["cuda", "cuda-13.0"]


@pytest.mark.parametrize("manager", ["apt", "dnf"])
def test_packages_do_not_replace_an_unmanaged_toolkit(machine, apply, manager):
    if manager == "apt":
        (machine.folder / "dpkg").touch()
    variables = {**NVIDIA_PROVIDER, "cuda_versions": ["12.8"]}
    machine.add_compiler("12.8", owned=False)
    code, changes, output = apply("validate_package present", **variables)
    assert (code != 0, changes, machine.list_toolkits()) == (True, 0, ["cuda-12.8"]), output
    assert "cuda-12.8/bin/nvcc exists, but neither a package nor this role installed it" in output
    (machine.folder / "owned").write_text(f"{machine.local}/cuda-12.8/bin/nvcc\n")
    code, _changes, output = apply("validate_package" if manager == "apt" else "validate_package present", **variables)
    assert code == 0, output
    if manager == "dnf":
        # A recorded toolkit is managed, even if no package owns it.
        (machine.folder / "owned").write_text("")
        code, _changes, output = apply("validate_package", **variables)
        assert code == 0, output


@pytest.mark.thorough
def test_toolkit_of_another_apt_package_is_accepted(machine, apply):
    (machine.folder / "dpkg").touch()
    (machine.folder / "programs" / "rpm").unlink()
    machine.add_compiler("12.8", owned=True)
    variables = {**NVIDIA_PROVIDER, "cuda_versions": ["12.8"]}
    code, _changes, output = apply("validate_package present", **variables)
    assert (code, machine.list_alternatives()) == (0, ["cuda-12.8"]), output
    # From then on the role's record is sufficient.
    (machine.folder / "owned").write_text("")
    machine.read_actions()
    code, changes, output = apply("validate_package present", **variables)
    assert (code, changes, machine.read_actions()) == (0, 0, []), output


def test_failed_installer_keeps_the_former_toolkit(machine, install_runfile):
    """One installer has a wrong checksum, and one ends with an error."""
    code, _changes, output = install_runfile(machine.write_installer(1))
    assert code == 0, output
    record = machine.read_record()
    code, _changes, output = install_runfile({**machine.write_installer(2), "checksum": "sha256:" + "0" * 64})
    assert (code != 0, machine.read_record()) == (True, record), output
    (machine.folder / "dies").touch()
    code, _changes, output = install_runfile(machine.write_installer(2))
    assert code != 0, output
    assert "failed with status 9" in output
    assert "The former toolkit is restored." in output
    assert (machine.list_toolkits(), machine.read_default()) == (["cuda", "cuda-12.8"], "cuda-12.8")
    assert (machine.local / "cuda-12.8" / "whole").read_text() == "1\n"
    assert machine.read_record() == record


#: The step of a killed replacement: is the former toolkit moved, is the new one started, is it complete?
KILLED = {
    "moved": (True, False, False),
    "started": (True, True, False),
    "complete": (True, True, True),
}


@pytest.fixture
def kill(machine, install_runfile):
    """Leave the machine as a killed run that replaced the toolkit of installer 1 with that of installer 2."""
    return lambda step: kill_at(step, machine, install_runfile)


def kill_at(step, machine, install_runfile):
    code, _changes, output = install_runfile(machine.write_installer(1))
    assert code == 0, output
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
    machine.read_actions()


def test_killed_run_is_completed_by_the_next(machine, install_runfile, kill):
    kill("started")
    code, _changes, output = install_runfile(machine.write_installer(2))
    assert code == 0, output
    assert machine.list_toolkits() == ["cuda", "cuda-12.8"]
    assert machine.read_actions().count("run 2") == 1
    assert "former" not in machine.read_record()


@pytest.mark.thorough
def test_wrong_checksum_after_a_killed_run_restores_the_former_toolkit(machine, install_runfile, kill):
    kill("moved")
    code, _changes, output = install_runfile({**machine.write_installer(2), "checksum": "sha256:" + "0" * 64})
    assert code != 0, output
    assert "and was not executed" in output
    assert machine.list_toolkits() == ["cuda", "cuda-12.8"]
    assert (machine.local / "cuda-12.8" / "whole").read_text() == "1\n"
    assert machine.read_record()["checksum"] == machine.write_installer(1)["checksum"]


@pytest.mark.thorough
@pytest.mark.parametrize("step", ["moved", "complete"])
def test_failed_run_after_a_killed_one_keeps_the_complete_toolkit(machine, install_runfile, kill, step):
    kill(step)
    (machine.folder / "dies").touch()
    code, _changes, output = install_runfile(machine.write_installer(3))
    assert code != 0, output
    assert machine.list_toolkits() == ["cuda", "cuda-12.8"]
    marker = machine.local / "cuda-12.8" / "whole"
    # In this test, a complete new toolkit has only its compiler.
    assert (marker.exists() and marker.read_text()) == (False if step == "complete" else "1\n")
    assert machine.read_record()["complete"]
    assert (machine.read_record()["checksum"] == machine.write_installer(1)["checksum"]) == (step != "complete")


@pytest.mark.thorough
def test_killed_run_can_be_undone(machine, apply, kill):
    kill("started")
    code, _changes, output = apply("absent", cuda_method="runfile", cuda_state="absent")
    assert (code, machine.list_toolkits(), machine.list_alternatives()) == (0, [], []), output
    assert not (machine.folder / "state").exists()


@pytest.mark.thorough
def test_changed_options_reinstall_the_toolkit(machine, install_runfile):
    code, _changes, output = install_runfile(machine.write_installer(1))
    assert code == 0, output
    machine.read_actions()
    code, changes, output = install_runfile(machine.write_installer(1, options=["--no-drm"]), "--check")
    assert (code, changes > 0, machine.read_actions()) == (0, True, []), output
    code, _changes, output = install_runfile(machine.write_installer(1, options=["--no-drm"]))
    assert (code, machine.read_actions().count("run 1"), machine.read_record()["options"]) == (0, 1, ["--no-drm"]), (
        output
    )
    code, changes, output = install_runfile(machine.write_installer(1, options=["--no-drm"]))
    assert (code, changes, machine.read_actions()) == (0, 0, []), output


@pytest.mark.thorough
def test_unused_repository_is_removed(machine, apply):
    (machine.folder / "dpkg").touch()
    key = {"cuda_repository": {"key_path": str(machine.folder / "key.asc")}}
    variables = {"cuda_versions": ["12.8"], **key}
    code, _changes, output = apply("present", **variables)
    assert (code, len(os.listdir(machine.sources))) == (0, 1), output
    # The run was killed after it removed the packages, and before it removed the repository.
    code, _changes, output = apply("remove", __cuda_going_sets=["cuda-12-8"], __cuda_going_runfiles=[], **variables)
    assert (code, len(os.listdir(machine.sources))) == (0, 1), output
    runfile_variables = {
        **variables,
        "cuda_method": "runfile",
        "cuda_manage_repository": False,
        "cuda_runfiles": [machine.write_installer(1)],
    }
    code, changes, output = apply("validate_runfile present", "--check", **runfile_variables)
    assert (code, changes > 0, len(os.listdir(machine.sources))) == (0, True, 1), output
    code, _changes, output = apply("validate_runfile present", **runfile_variables)
    assert (code, os.listdir(machine.sources)) == (0, []), output
    code, changes, output = apply("validate_runfile present", **runfile_variables)
    assert (code, changes) == (0, 0), output
    code, _changes, output = apply("absent", cuda_state="absent", **key)
    assert (code, machine.list_toolkits(), (machine.folder / "state").exists()) == (0, [], False), output
