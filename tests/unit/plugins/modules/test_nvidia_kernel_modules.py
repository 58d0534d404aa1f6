# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ansible.module_utils.basic")

import yaml

from ansible_collections.gpu.kubernetes.plugins.modules import nvidia_kernel_modules
from ansible_collections.gpu.kubernetes.tests.unit.plugins.modules import kernel_node, node_module

POD = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"
OLD = "the loaded kernel module is 550.1 and the installed one is 570.2"


@pytest.fixture
def node(tmp_path: Path) -> kernel_node.Node:
    """A node with 570.2 installed and nothing loaded."""
    return kernel_node.Node(tmp_path)


@pytest.fixture
def updated_node(node: kernel_node.Node) -> kernel_node.Node:
    """A node with 550.1 loaded and used by other modules, and with 570.2 installed."""
    node.set(installed=kernel_node.build("550.1"))
    node.load("nvidia_uvm", "nvidia_drm", "gdrdrv")
    node.set(installed=kernel_node.build("570.2", "BBB"))
    return node


def run(node: kernel_node.Node, *, check: bool = False, **arguments: Any) -> dict[str, Any]:
    return node_module.run(
        "nvidia_kernel_modules", arguments, check=check, folder=str(node.programs), root=str(node.root)
    )


def check_and_repeat(node: kernel_node.Node, **arguments: Any) -> dict[str, Any]:
    """Check, run and repeat both; return the result of the first run."""
    before = node.loaded()
    result = run(node, check=True, **arguments)
    assert (node.loaded(), node.commands()) == (before, [])
    done = run(node, **arguments)
    result.pop("invocation", None)  # which ansible-core 2.21 no longer returns
    assert result == {name: value for name, value in done.items() if name != "invocation"}
    assert done["changed"], done
    node.clear_commands()
    for check in (True, False):
        again = run(node, check=check, **arguments)
        assert (again["changed"], again["loaded"], again["unloaded"]) == (False, [], []), again
        assert again["version"] == done["version"], again
    assert node.commands() == []
    return done


class TestStates:
    """The changes of each state, which are made once."""

    @pytest.mark.parametrize("state", ["current", "loaded"])
    def test_unloaded_modules_are_loaded(self, node: kernel_node.Node, state: str) -> None:
        done = check_and_repeat(node, state=state)
        assert node.loaded() == ["nvidia", "nvidia_uvm"] == done["loaded"]
        assert (done["version"], done["unloaded"], done["reboot_required"]) == ("570.2", [], False)
        assert done["diff"]["before"] == "nvidia is not loaded\nnvidia_uvm is not loaded\n"
        assert done["diff"]["after"] == "nvidia 570.2 is loaded\nnvidia_uvm is loaded\n"

    def test_other_version_is_loaded_again(self, updated_node: kernel_node.Node) -> None:
        done = check_and_repeat(updated_node)
        assert done["unloaded"] == ["nvidia_uvm", "nvidia_drm", "nvidia_modeset", "gdrdrv", "nvidia"]
        assert done["loaded"] == ["nvidia", "nvidia_uvm", "gdrdrv", "nvidia_modeset", "nvidia_drm"]
        assert sorted(updated_node.loaded()) == sorted(done["loaded"])
        assert done["version"] == "570.2"
        assert done["diff"]["before"].startswith("nvidia 550.1 is loaded\nnvidia_uvm is loaded\n")
        assert done["diff"]["after"].startswith("nvidia 570.2 is loaded\nnvidia_uvm is loaded\n")

    def test_other_flavor_is_loaded_again(self, node: kernel_node.Node) -> None:
        node.load("nvidia_uvm")
        node.set(installed=kernel_node.build("570.2", "BBB"))
        done = check_and_repeat(node)
        assert done["diff"]["before"].endswith("its srcversion is AAA\n")
        assert done["diff"]["after"].endswith("its srcversion is BBB\n")

    def test_other_parameters_are_loaded_again(self, node: kernel_node.Node) -> None:
        node.load("nvidia_uvm")
        node.set(modprobe_d={"EnableStreamMemOPs": "1", "RmProfilingAdminOnly": "0"})
        desired = {"NVreg_EnableStreamMemOPs": True, "NVreg_RestrictProfilingToAdminUsers": "0x0"}
        done = check_and_repeat(node, parameters=desired)
        assert done["unloaded"] == ["nvidia_uvm", "nvidia"]
        assert "NVreg_RestrictProfilingToAdminUsers = 1\n" in done["diff"]["before"]
        assert "NVreg_RestrictProfilingToAdminUsers = 0x0\n" in done["diff"]["after"]

    def test_removed_parameter_is_loaded_again(self, node: kernel_node.Node) -> None:
        node.set(modprobe_d={"EnableStreamMemOPs": "1", "RmProfilingAdminOnly": "1"})
        node.load("nvidia_uvm")
        node.set(modprobe_d={"EnableStreamMemOPs": "0", "RmProfilingAdminOnly": "1"})
        done = check_and_repeat(node, former_parameters={"NVreg_EnableStreamMemOPs": "1"})
        assert done["unloaded"] == ["nvidia_uvm", "nvidia"]
        assert done["diff"]["before"].endswith("NVreg_EnableStreamMemOPs = 1\n")

    def test_absent_unloads_modules(self, updated_node: kernel_node.Node) -> None:
        done = check_and_repeat(updated_node, state="absent")
        assert (updated_node.loaded(), done["version"], done["loaded"]) == ([], None, [])
        assert done["diff"]["before"].startswith("nvidia 550.1 is loaded\n")
        assert done["diff"]["after"].startswith("nvidia is not loaded\n")

    def test_missing_module_of_other_version_reloads_all(self, node: kernel_node.Node) -> None:
        node.set(installed=kernel_node.build("550.1"))
        node.load("nvidia")
        node.set(installed=kernel_node.build("570.2"))
        done = check_and_repeat(node, state="loaded")
        assert (done["unloaded"], done["loaded"]) == (["nvidia"], ["nvidia", "nvidia_uvm"])


def test_loaded_with_other_version_changes_nothing(updated_node: kernel_node.Node) -> None:
    answer = run(updated_node, state="loaded")
    assert (answer["changed"], answer["version"], updated_node.commands()) == (False, "550.1", [])


def test_hyphen_in_name_becomes_underscore(node: kernel_node.Node) -> None:
    assert check_and_repeat(node, modules=["nvidia-uvm"])["loaded"] == ["nvidia", "nvidia_uvm"]


def test_results_are_documented(node: kernel_node.Node) -> None:
    answer = run(node, state="absent")
    assert set(answer) - {"changed", "diff", "invocation"} == set(yaml.safe_load(nvidia_kernel_modules.RETURN))


class TestReboot:
    """A change that requires a reboot is not made and does not fail."""

    def run_blocked(self, node: kernel_node.Node, **arguments: Any) -> dict[str, Any]:
        before = node.loaded()
        result, done = run(node, check=True, **arguments), run(node, **arguments)
        assert result["reboot_reasons"] == done["reboot_reasons"]
        assert (result["changed"], done["changed"], done["reboot_required"]) == (False, False, True)
        assert (done["loaded"], done["unloaded"], node.loaded()) == ([], [], before)
        assert done["diff"] == {"before": "", "after": ""}
        assert node.commands() == []
        return done

    def test_process_blocks_reload(self, updated_node: kernel_node.Node) -> None:
        updated_node.process(4711, "/dev/nvidia0", cgroup=f"/kubepods/besteffort/pod{POD}/{'ab' * 32}")
        done = self.run_blocked(updated_node)
        assert done["reboot_reasons"] == [OLD, f"python3 (pid 4711 in pod {POD}) uses the GPUs"]
        [user] = done["users"]
        assert user == {"pid": 4711, "command": "python3", "container_id": "ab" * 32, "pod_uid": POD}
        assert set(user) == set(yaml.safe_load(nvidia_kernel_modules.RETURN)["users"]["contains"])
        assert done["version"] == "550.1"

    def test_process_blocks_unloading(self, updated_node: kernel_node.Node) -> None:
        updated_node.process(4711, "/dev/nvidiactl")
        done = self.run_blocked(updated_node, state="absent")
        assert done["reboot_reasons"] == ["python3 (pid 4711) uses the GPUs"]

    def test_unknown_user_blocks_reload(self, updated_node: kernel_node.Node) -> None:
        table = updated_node.root / "proc/modules"
        table.write_text(table.read_text().replace("nvidia_drm 4096 0", "nvidia_drm 4096 1"))
        done = self.run_blocked(updated_node)
        assert done["reboot_reasons"][1].startswith("nvidia_drm is in use (by 1 that no process shows")

    def test_nouveau_requires_reboot(self, node: kernel_node.Node) -> None:
        node.put("sys/module/nouveau/refcnt", "1\n")
        done = self.run_blocked(node)
        assert done["reboot_reasons"] == ["nouveau is loaded, and NVIDIA's module cannot be beside it"]
        assert done["version"] is None

    def test_process_without_changes_does_not_block(self, node: kernel_node.Node) -> None:
        node.load("nvidia_uvm")
        node.process(4711, "/dev/nvidia-uvm")
        answer = run(node)
        assert (answer["changed"], answer["reboot_required"], answer["users"][0]["pid"]) == (False, False, 4711)


class TestFaults:
    """A failure names its cause and leaves the same modules loaded."""

    def test_module_in_use_during_reload_is_loaded_again(self, updated_node: kernel_node.Node) -> None:
        before = updated_node.loaded()
        updated_node.hold("gdrdrv")
        answer = run(updated_node)
        assert (answer["changed"], answer["loaded"], answer["unloaded"]) == (False, [], [])
        assert answer["reboot_required"]
        reason = (
            "gdrdrv cannot be unloaded (rmmod: ERROR: Module gdrdrv is in use); "
            "nvidia_modeset and nvidia_drm and nvidia_uvm, unloaded before it, are loaded again"
        )
        assert answer["reboot_reasons"] == [OLD, reason]
        assert sorted(updated_node.loaded()) == sorted(before)
        assert answer["version"] == "550.1"

    def test_module_that_cannot_be_loaded_again_fails(self, updated_node: kernel_node.Node) -> None:
        updated_node.hold("gdrdrv")
        updated_node.set(errors={"modprobe nvidia_uvm": "could not insert 'nvidia_uvm': Invalid argument"})
        answer = run(updated_node)
        assert answer["failed"]
        assert (
            "nvidia_uvm (modprobe: ERROR: could not insert 'nvidia_uvm': Invalid argument) cannot be" in answer["msg"]
        )
        assert answer["msg"].endswith("or reboot.")
        assert "nvidia_drm" in updated_node.loaded()

    @pytest.mark.parametrize(
        ("words", "remedy"),
        [("Operation not permitted", "and not in a container"), ("Unknown error 999", "(dmesg).")],
    )
    def test_refused_unloading_fails(self, updated_node: kernel_node.Node, words: str, remedy: str) -> None:
        before = updated_node.loaded()
        updated_node.set(errors={"rmmod nvidia_uvm": words})
        answer = run(updated_node, state="absent")
        assert answer["failed"]
        assert answer["msg"].startswith(f"The kernel module nvidia_uvm cannot be unloaded (rmmod: ERROR: {words}): ")
        assert remedy in answer["msg"]
        assert updated_node.loaded() == before

    def test_missing_module_for_running_kernel_fails(self, node: kernel_node.Node) -> None:
        node.set(installed={})
        node.put("var/lib/dkms/nvidia/570.2/build/make.log", "")
        for check in (True, False):
            answer = run(node, check=check)
            assert answer["failed"]
            assert answer["msg"].startswith("No kernel module nvidia is installed for the running kernel ")
            assert "install the headers of the running kernel" in answer["msg"]
            assert "/var/lib/dkms/nvidia/570.2/build/make.log" in answer["msg"]

    def test_module_with_other_file_name_is_found(self, updated_node: kernel_node.Node) -> None:
        """Debian's packages name the files nvidia-current."""
        names = {name: name.replace("nvidia", "nvidia-current").replace("_", "-") for name in kernel_node.DEPENDS}
        updated_node.set(files={name: names[name] for name in names if name.startswith("nvidia")})
        answer = run(updated_node)
        assert not answer.get("failed"), answer
        assert answer["changed"]
        assert run(updated_node)["changed"] is False

    def test_module_that_could_not_be_loaded_again_is_not_unloaded(self, updated_node: kernel_node.Node) -> None:
        installed = kernel_node.build("570.2")
        updated_node.set(installed={name: result for name, result in installed.items() if name != "gdrdrv"})
        answer = run(updated_node)
        assert answer["failed"]
        assert answer["msg"].startswith("No kernel module gdrdrv is installed for the running kernel ")
        assert updated_node.commands() == []

    def test_refused_loading_names_modules_that_are_not_loaded(self, updated_node: kernel_node.Node) -> None:
        updated_node.set(errors={"modprobe nvidia_uvm": "could not insert 'nvidia_uvm': Key was rejected by service"})
        answer = run(updated_node)
        assert answer["failed"]
        assert "Secure Boot is on" in answer["msg"]
        assert "mokutil --import the public key" in answer["msg"]
        assert answer["msg"].endswith(
            " Loaded before and not loaded now: gdrdrv, nvidia_modeset, nvidia_drm, nvidia_uvm."
        )

    def test_parameters_without_file_fail_after_reload(self, node: kernel_node.Node) -> None:
        node.load("nvidia_uvm")
        answer = run(node, parameters={"NVreg_EnableStreamMemOPs": 1})
        assert answer["failed"]
        assert "still the loaded kernel module has NVreg_EnableStreamMemOPs = 0, and 1 is requested" in answer["msg"]
        assert "/etc/modprobe.d" in answer["msg"]
        assert node.loaded() == ["nvidia", "nvidia_uvm"]

    @pytest.mark.parametrize(
        ("name", "words"), [("NVreg_Misspelt", "has no parameter"), ("NVreg_Secret", "does not show its parameter")]
    )
    def test_unknown_parameters_fail(self, node: kernel_node.Node, name: str, words: str) -> None:
        node.load("nvidia_uvm")
        for check in (True, False):
            answer = run(node, check=check, parameters={name: 1})
            assert answer["failed"]
            assert f"{words} {name}" in answer["msg"]
        assert node.commands() == []

    @pytest.mark.skipif(
        shutil.which("modinfo", path="/usr/sbin:/sbin:/usr/bin:/bin") is not None, reason="kmod is installed"
    )
    def test_host_without_kmod_fails(self, node: kernel_node.Node) -> None:
        (node.programs / "modinfo").unlink()
        assert run(node)["msg"].endswith("install kmod.")
