# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps of the role on a machine whose alternatives, packages and installers are fakes, above all what others have and what fails."""

from __future__ import annotations

import json
import os
import re

import pytest
from fakes.cuda_machine import Machine

if os.geteuid() != 0:
    pytest.skip("only root gives files to root", allow_module_level=True)

INVENTORY = "node ansible_connection=local ansible_become=false\n"
NVIDIAS = {"cuda_provider": "nvidia", "cuda_manage_repository": False}
BOTH = {**NVIDIAS, "cuda_versions": ["12.8", "13.0"]}


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


@pytest.fixture
def apply(run, machine):
    """Run parts of the role: exit code, how many tasks changed something, what was said in one line."""

    def play(parts, *options, **asked):
        code, said = run(INVENTORY, machine.play(*parts.split(), **asked), *options)
        return code, int(re.findall(r"\bchanged=(\d+)", said)[-1]), " ".join(said.split())

    return play


@pytest.fixture
def runfile(apply):
    """Have the role install 12.8 with an installer."""

    def install(installer, *options):
        asked = {"cuda_method": "runfile", "cuda_versions": ["12.8"], "cuda_runfiles": [installer]}
        return apply("validate_runfile present", *options, **asked)

    return install


def test_packages_that_take_themselves_out_of_the_alternatives(machine, apply):
    code, _done, said = apply("present", **BOTH)
    assert (code, machine.registered()) == (0, ["cuda-12.8", "cuda-13.0"]), said
    machine.done()
    one = {**NVIDIAS, "cuda_versions": ["13.0"]}
    code, _done, said = apply("present", **one)
    assert (code, machine.registered(), machine.default()) == (0, ["cuda-13.0"], "cuda-13.0"), said
    assert [words for words in machine.done() if "--remove" in words] == ["--remove cuda cuda-12.8"]
    code, _done, said = apply("absent", **NVIDIAS, cuda_state="absent")
    assert (code, machine.registered(), machine.toolkits()) == (0, [], []), said
    assert not (machine.folder / "state").exists()


@pytest.mark.thorough
def test_packages_that_leave_themselves_in_the_alternatives(machine, apply):
    (machine.folder / "dpkg").touch()
    (machine.folder / "unregistered").touch()
    code, _done, said = apply("present", **BOTH)
    assert code == 0, said
    code, _done, said = apply("present", **NVIDIAS, cuda_versions=["13.0"])
    assert (code, machine.registered()) == (0, ["cuda-13.0"]), said
    assert machine.toolkits() == ["cuda", "cuda-13.0"]


@pytest.mark.parametrize("manager", ["apt", "dnf"])
def test_packages_do_not_replace_a_toolkit_of_somebody_else(machine, apply, manager):
    if manager == "apt":
        (machine.folder / "dpkg").touch()
    asked = {**NVIDIAS, "cuda_versions": ["12.8"]}
    machine.compiler("12.8", owned=False)
    code, done, said = apply("validate_package present", **asked)
    assert (code != 0, done, machine.toolkits()) == (True, 0, ["cuda-12.8"]), said
    assert "cuda-12.8/bin/nvcc exists, but neither a package nor this role installed it" in said
    (machine.folder / "owned").write_text(f"{machine.local}/cuda-12.8/bin/nvcc\n")
    code, _done, said = apply("validate_package" if manager == "apt" else "validate_package present", **asked)
    assert code == 0, said
    if manager == "dnf":
        # What this role has a record of is nobody else's, whatever the package manager says.
        (machine.folder / "owned").write_text("")
        code, _done, said = apply("validate_package", **asked)
        assert code == 0, said


@pytest.mark.thorough
def test_toolkit_of_another_apt_package_is_accepted(machine, apply):
    (machine.folder / "dpkg").touch()
    (machine.folder / "programs" / "rpm").unlink()
    machine.compiler("12.8", owned=True)
    asked = {**NVIDIAS, "cuda_versions": ["12.8"]}
    code, _done, said = apply("validate_package present", **asked)
    assert (code, machine.registered()) == (0, ["cuda-12.8"]), said
    # From then on the role's record is sufficient.
    (machine.folder / "owned").write_text("")
    machine.done()
    code, again, said = apply("validate_package present", **asked)
    assert (code, again, machine.done()) == (0, 0, []), said


def test_another_installer_that_fails_leaves_the_toolkit_that_was_there(machine, runfile):
    """One that cannot be had, and one that ends with an error."""
    code, _done, said = runfile(machine.installer(1))
    assert code == 0, said
    first = machine.record()
    code, _done, said = runfile({**machine.installer(2), "checksum": "sha256:" + "0" * 64})
    assert (code != 0, machine.record()) == (True, first), said
    (machine.folder / "dies").touch()
    code, _done, said = runfile(machine.installer(2))
    assert code != 0, said
    assert "failed with status 9" in said
    assert "The former toolkit is restored." in said
    assert (machine.toolkits(), machine.default()) == (["cuda", "cuda-12.8"], "cuda-12.8")
    assert (machine.local / "cuda-12.8" / "whole").read_text() == "1\n"
    assert machine.record() == first


#: Where a run was killed that replaced a toolkit: whether the former one was aside, whether another one was begun, and whether that was done.
KILLED = {
    "put-aside": (True, False, False),
    "begun": (True, True, False),
    "done": (True, True, True),
}


@pytest.fixture
def kill(machine, runfile):
    """Leave the machine as a run that was killed leaves it, which replaced the toolkit of installer 1 by that of installer 2."""
    return lambda step: kill_at(step, machine, runfile)


def kill_at(step, machine, runfile):
    code, _done, said = runfile(machine.installer(1))
    assert code == 0, said
    aside, begun, done = KILLED[step]
    root, former = machine.local / "cuda-12.8", machine.record()
    if aside:
        root.rename(machine.local / ".gpu-kubernetes-cuda-12.8")
    if begun:
        (root / "bin").mkdir(parents=True)
    record = {**former, "checksum": machine.installer(2)["checksum"], "complete": done}
    if done:
        (machine.local / ".gpu-kubernetes-cuda-12.8" / "bin" / "nvcc").rename(root / "bin" / "nvcc")
    else:
        record["former"] = former
    (machine.folder / "state" / "state" / "cuda-runfile-12.8.json").write_text(json.dumps(record))
    machine.done()


def test_a_run_that_was_killed_is_healed_by_the_next(machine, runfile, kill):
    kill("begun")
    code, _done, said = runfile(machine.installer(2))
    assert code == 0, said
    assert machine.toolkits() == ["cuda", "cuda-12.8"]
    assert machine.done().count("run 2") == 1
    assert "former" not in machine.record()


@pytest.mark.thorough
def test_a_run_that_was_killed_and_one_without_its_installer_give_back_what_was_whole(machine, runfile, kill):
    kill("put-aside")
    code, _done, said = runfile({**machine.installer(2), "checksum": "sha256:" + "0" * 64})
    assert code != 0, said
    assert "and was not executed" in said
    assert machine.toolkits() == ["cuda", "cuda-12.8"]
    assert (machine.local / "cuda-12.8" / "whole").read_text() == "1\n"
    assert machine.record()["checksum"] == machine.installer(1)["checksum"]


@pytest.mark.thorough
@pytest.mark.parametrize("step", ["put-aside", "done"])
def test_a_run_that_was_killed_and_one_that_fails_leave_what_was_whole(machine, runfile, kill, step):
    kill(step)
    (machine.folder / "dies").touch()
    code, _done, said = runfile(machine.installer(3))
    assert code != 0, said
    assert machine.toolkits() == ["cuda", "cuda-12.8"]
    whole = machine.local / "cuda-12.8" / "whole"
    # Of the one that was done only the compiler is there, in this test.
    assert (whole.exists() and whole.read_text()) == (False if step == "done" else "1\n")
    assert machine.record()["complete"]
    assert (machine.record()["checksum"] == machine.installer(1)["checksum"]) == (step != "done")


@pytest.mark.thorough
def test_a_run_that_was_killed_can_be_undone(machine, apply, kill):
    kill("begun")
    code, _done, said = apply("absent", cuda_method="runfile", cuda_state="absent")
    assert (code, machine.toolkits(), machine.registered()) == (0, [], []), said
    assert not (machine.folder / "state").exists()


@pytest.mark.thorough
def test_a_toolkit_that_is_gone_does_not_come_back_as_half_of_another(machine, runfile):
    code, _done, said = runfile(machine.installer(1))
    assert code == 0, said
    (machine.local / "cuda-12.8").rename(machine.folder / "elsewhere")
    (machine.folder / "dies").touch()
    for _again in range(2):
        code, _done, said = runfile(machine.installer(2))
        assert (code != 0, machine.record()["complete"]) == (True, False), said
    (machine.folder / "dies").unlink()
    machine.done()
    code, _done, said = runfile(machine.installer(1))
    assert (code, machine.done()[0]) == (0, "run 1"), said


@pytest.mark.thorough
def test_other_options_install_anew(machine, runfile):
    code, _done, said = runfile(machine.installer(1))
    assert code == 0, said
    machine.done()
    code, told, said = runfile(machine.installer(1, options=["--no-drm"]), "--check")
    assert (code, told > 0, machine.done()) == (0, True, []), said
    code, _done, said = runfile(machine.installer(1, options=["--no-drm"]))
    assert (code, machine.done().count("run 1"), machine.record()["options"]) == (0, 1, ["--no-drm"]), said
    code, again, said = runfile(machine.installer(1, options=["--no-drm"]))
    assert (code, again, machine.done()) == (0, 0, []), said


@pytest.mark.thorough
def test_a_repository_goes_that_is_not_wanted_any_more(machine, apply):
    (machine.folder / "dpkg").touch()
    key = {"cuda_repository": {"key_path": str(machine.folder / "key.asc")}}
    asked = {"cuda_versions": ["12.8"], **key}
    code, _done, said = apply("present", **asked)
    assert (code, len(os.listdir(machine.sources))) == (0, 1), said
    # Killed after the packages went, and before the repository did.
    code, _done, said = apply("remove", __cuda_going_sets=["cuda-12-8"], __cuda_going_runfiles=[], **asked)
    assert (code, len(os.listdir(machine.sources))) == (0, 1), said
    others = {
        **asked,
        "cuda_method": "runfile",
        "cuda_manage_repository": False,
        "cuda_runfiles": [machine.installer(1)],
    }
    code, told, said = apply("validate_runfile present", "--check", **others)
    assert (code, told > 0, len(os.listdir(machine.sources))) == (0, True, 1), said
    code, _done, said = apply("validate_runfile present", **others)
    assert (code, os.listdir(machine.sources)) == (0, []), said
    code, again, said = apply("validate_runfile present", **others)
    assert (code, again) == (0, 0), said
    code, _done, said = apply("absent", cuda_state="absent", **key)
    assert (code, machine.toolkits(), (machine.folder / "state").exists()) == (0, [], False), said
