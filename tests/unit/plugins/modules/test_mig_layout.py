# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module on nodes with the simulated NVML: each change twice and in check mode, refusals, the boot, the undo, and killed runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable

import pytest

pytest.importorskip("ansible.module_utils.basic")

from fakes.mig_node import MigNode
from fakes.nvml import nvml_profile

from ansible_collections.gpu.kubernetes.tests.unit.plugins.modules import node_module

if TYPE_CHECKING:
    from fakes.nvml.simulated import NvmlBuilder

if os.geteuid() != 0:
    pytest.skip("the module's lock file is root's", allow_module_level=True)

Make = Callable[[str], MigNode]
SEVEN = [{"gpus": "all", "profiles": {"1g.10gb": 7}}]
SMALL = [{"gpus": [0], "profiles": {"1g.5gb": 7}}]
HALVES = [{"gpus": "all", "profiles": {"3g.40gb": 2}}]
PLACES = [place for place in sys.path if place]
FORMER = {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}


@pytest.fixture
def make(nvml_builder: NvmlBuilder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Make a node with the GPUs of a profile."""

    def make_node(profile: str) -> MigNode:
        node = MigNode(tmp_path, nvml_builder.library(profile))
        for name, value in node.environment.items():
            monkeypatch.setenv(name, value)
        return node

    return make_node


def run(node: MigNode, *, check: bool = False, first: str = "", **more: Any) -> dict[str, Any]:
    arguments = node.arguments(**more)
    return node_module.run(
        "mig_layout", arguments, check=check, folder=str(node.programs), root=str(node.root), first=first
    )


def change(node: MigNode, **more: Any) -> dict[str, Any]:
    """Check, run, check and run again; return the result of the first run."""
    files, state = node.list_files(), Path(node.environment["NVML_STATE"])
    before = state.read_text() if state.exists() else None
    predicted = run(node, check=True, **more)
    assert (node.list_files(), node.read_log()) == (files, [])
    assert (state.read_text() if state.exists() else None) == before
    done = run(node, **more)
    assert done["changed"] is True, done
    for key in ("changed", "gpus", "diff", "cdi_specs", "boot_command", "holders"):
        assert predicted[key] == done[key], key
    log = node.read_log()
    for check in (True, False):
        again = run(node, check=check, **more)
        assert again["changed"] is False, again
        assert all(gpu["before"] == gpu["after"] for gpu in again["gpus"])
    assert node.read_log() == []
    done["log"] = log
    return done


def profiles(result: dict[str, Any], side: str = "after") -> list[dict[str, int]]:
    return [gpu[side]["profiles"] for gpu in result["gpus"]]


def test_hopper_is_split_at_once_and_restored(make: Make) -> None:
    node = make("h100-mig")
    node.spec.write_text("former\n")
    done = change(node, layout=SEVEN)
    assert profiles(done, "before") == [FORMER, {}]
    assert profiles(done) == [{"1g.10gb": 7}] * 2
    assert (done["reset_required"], done["reboot_required"], done["cdi_specs"]) == (False, False, [str(node.spec)])
    assert done["log"] == ["systemctl stop -- nvidia-dcgm", "systemctl start -- nvidia-dcgm", "nvidia-smi -L"]
    assert node.spec.read_text().count(":") == 2 + 14
    assert done["diff"]["before"] == (
        "GPU 0: MIG enabled: 2 x 1g.10gb, 1 x 2g.20gb, 1 x 3g.40gb\nGPU 1: MIG disabled\n"
    )
    assert done["diff"]["after"].startswith("GPU 0: MIG enabled: 7 x 1g.10gb\nGPU 1: MIG enabled")
    record = node.read_record()
    change(node, layout=HALVES)
    assert node.read_record() == record
    undone = change(node, state="absent")
    assert profiles(undone) == [FORMER, {}]
    assert [gpu["after"]["mode"] for gpu in undone["gpus"]] == ["enabled", "disabled"]
    assert node.list_files() == []


def test_ampere_without_permission_is_not_changed(make: Make) -> None:
    node = make("a100-40g")
    for check in (True, False):
        failed = run(node, check=check, layout=SMALL)
        assert "the change of MIG mode on GPU 0 (NVIDIA A100-SXM4-40GB) takes effect after a reset" in failed["msg"]
    assert (node.list_files(), node.read_log()) == ([], [])
    assert run(node, check=True, layout=[])["gpus"][0]["before"]["mode_pending"] == "disabled"


def test_ampere_is_reset_alone(make: Make) -> None:
    node = make("a100-40g")
    done = change(node, layout=SMALL, allow_gpu_reset=True)
    assert profiles(done) == [{"1g.5gb": 7}] + [{}] * 7
    assert done["log"][1] == "nvidia-smi --gpu-reset -i 0000:07:00.0"
    undone = change(node, state="absent", allow_gpu_reset=True)
    assert undone["gpus"][0]["after"] == {"mode": "disabled", "mode_pending": "disabled", "profiles": {}}
    assert node.list_files() == []


def test_ampere_waits_for_the_reboot(make: Make) -> None:
    node = make("a100-40g")
    predicted = run(node, check=True, layout=SMALL, allow_reboot=True)
    done = run(node, layout=SMALL, allow_reboot=True)
    assert (predicted["reboot_required"], done["reboot_required"], done["reset_required"]) == (True, True, True)
    assert predicted["gpus"] == done["gpus"]
    assert done["gpus"][0]["after"] == {"mode": "disabled", "mode_pending": "enabled", "profiles": {}}
    node.boot()
    start(node)
    done = run(node, layout=SMALL, allow_reboot=True)
    assert (done["changed"], profiles(done)[0]) == (False, {"1g.5gb": 7})


def test_units_of_the_kubelet_are_those_of_the_distribution(make: Make) -> None:
    node = make("a100-40g")
    assert run(node, check=True, layout=[])["kubelet_units"] == ["kubelet.service"]
    (node.root / "etc" / "rancher" / "rke2").mkdir(parents=True)
    assert run(node, check=True, layout=[])["kubelet_units"] == ["rke2-server.service", "rke2-agent.service"]


def test_mode_that_waits_is_finished_or_withdrawn(make: Make) -> None:
    node = make("a100-40g")
    layout = [*SMALL, {"gpus": [1], "profiles": {"7g.40gb": 1}}]
    run(node, layout=layout, allow_reboot=True)
    done = run(node, layout=SMALL, allow_gpu_reset=True)
    assert [line for line in node.read_log() if "reset" in line] == ["nvidia-smi --gpu-reset -i 0000:07:00.0"]
    assert [gpu["after"]["mode_pending"] for gpu in done["gpus"][:2]] == ["enabled", "disabled"]
    assert (profiles(done)[:2], done["reset_required"]) == ([{"1g.5gb": 7}, {}], False)


def test_mig_without_instances_is_restored(make: Make, nvml_builder: NvmlBuilder, tmp_path: Path) -> None:
    node = make("h100-mig")
    text = nvml_profile.profile_path("h100-mig").read_text().replace("mig_devices = ", "# ")
    node.library = nvml_builder.library_of(f"empty-{tmp_path.name}", text)
    node.spec.write_text("former\n")
    run(node, layout=SEVEN)
    undone = run(node, state="absent", cdi_command=["false"])
    assert undone["gpus"][0]["after"] == {"mode": "enabled", "mode_pending": "enabled", "profiles": {}}
    assert (node.list_files(), undone["cdi_specs"]) == ([], [])


def start(node: MigNode, problems: str = "") -> None:
    """Start the program of the boot, without Ansible and this collection on its path."""
    program, config = (str(node.arguments()[name]) for name in ("boot_program", "boot_config"))
    done = subprocess.run(
        [sys.executable, "-I", program, config], capture_output=True, text=True, check=False, env={**os.environ}
    )
    assert (done.returncode, done.stdout, done.stderr) == (int(bool(problems)), "", problems)


def test_boot_restores_the_layout_and_the_specification(make: Make) -> None:
    node = make("h100-mig")
    run(node, layout=[*SEVEN, {"gpus": [0], "profiles": {"1g.10gb": 1}}], cdi_specs=[str(node.spec)])
    # Below /run, which a boot empties, others write it.
    node.boot()
    node.spec.write_text("former\n")
    assert profiles(run(node, check=True, layout=SEVEN), "before") == [{}, {}]
    start(node)
    assert "devices: [0:" in node.spec.read_text()
    start(node)
    assert profiles(run(node, check=True, layout=SEVEN), "before") == [{"1g.10gb": 1}, {"1g.10gb": 7}]


def test_boot_never_resets_a_gpu_and_names_what_is_missing(make: Make) -> None:
    node = make("a100-40g")
    gpus = run(node, layout=[*SMALL, {"gpus": [1], "profiles": {"7g.40gb": 1}}], allow_gpu_reset=True)["gpus"]
    node.boot()
    # Someone has switched MIG off on one GPU, and another one has left.
    inforom = Path(node.environment["NVML_INFOROM"])
    inforom.write_text(inforom.read_text().replace("0000:07:00.0 1", "0000:07:00.0 0"))
    config = Path(node.arguments()["boot_config"])
    config.write_text(config.read_text().replace(gpus[7]["uuid"], "GPU-gone"))
    node.read_log()
    start(
        node,
        "gpu-kubernetes-mig: GPU GPU-gone of the layout is missing or has no MIG; run the role mig again, or look into the kernel log.\n"
        "gpu-kubernetes-mig: GPU 0 needs a reset or a reboot for its MIG mode, which no boot does; run the role mig again.\n",
    )
    assert node.read_log() == ["nvidia-smi -L"]
    assert profiles(run(node, check=True, layout=[], allow_gpu_reset=True), "before")[:2] == [{}, {"7g.40gb": 1}]


def test_gpu_in_use_is_named_and_not_changed(make: Make) -> None:
    node = make("mixed")
    node.add_holder(4711, "py\x1bthon3 is too long", "/dev/nvidia1")
    failed = run(node, layout=[{"gpus": [0], "profiles": {"1g.5gb": 7}}], allow_reboot=True)
    assert "GPU 0 is in use by" in failed["msg"]
    assert "(pid 1)" in failed["msg"]
    assert failed["holders"][1] == {
        "pid": 4711,
        "program": "py?thon3 is too",
        "gpus": [0],
        "container_id": None,
        "pod_uid": None,
    }
    assert node.list_files() == []


def test_process_of_a_pod_is_no_error_in_the_check_before_a_drain(make: Make) -> None:
    node = make("mixed")
    node.add_holder(1, "python3", "/dev/nvidia1", pod="0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9")
    options = {"layout": [{"gpus": [0], "profiles": {"1g.5gb": 7}}], "allow_reboot": True}
    assert "GPU 0 is in use by" in run(node, check=True, **options)["msg"]
    assert run(node, check=True, drain_follows=True, **options)["changed"]
    assert "GPU 0 is in use by" in run(node, drain_follows=True, **options)["msg"]
    # Those of the host stay.
    node.remove_holder(1)
    node.add_holder(1, "python3", "/dev/nvidia1")
    assert "GPU 0 is in use by" in run(node, check=True, drain_follows=True, **options)["msg"]


def test_program_that_prevents_a_reset_is_named(make: Make) -> None:
    node = make("a100-40g")
    node.add_holder(815, "nv-hostengine", "/dev/nvidia0")
    failed = run(node, layout=SMALL, allow_gpu_reset=True)
    assert "cannot be reset, because nv-hostengine (pid 815) has it open" in failed["msg"]
    assert "nvidia-smi" not in " ".join(node.read_log())
    assert run(node, check=True, layout=[])["gpus"][0]["before"]["mode_pending"] == "disabled"
    # It does not hold the other GPU.
    assert run(node, layout=[{"gpus": [1], "profiles": {"7g.40gb": 1}}], allow_gpu_reset=True)["changed"]


@pytest.mark.parametrize(
    ("profile", "more", "words"),
    [
        ("t4", {"layout": SEVEN}, "no GPU of this host has MIG"),
        ("h100-mig", {"layout": [{"gpus": [2], "profiles": {}}]}, "names GPU 2, and this host has 2 GPUs"),
        ("h100-mig", {"layout": [{"gpus": [0], "profiles": {"1g.5gb": 1}}]}, "does not have the profile 1g.5gb"),
        (
            "h100-mig",
            {"layout": [{"gpus": [0], "profiles": {"1g.10gb": 1}}], "strategy": "single"},
            "GPU 1 would have none",
        ),
        (
            "a100-40g",
            {"layout": SMALL, "allow_gpu_reset": True, "nvidia_smi": "/nonexistent/smi"},
            "nvidia-smi, which resets",
        ),
        ("no-driver", {"layout": SEVEN}, "NVML does not start"),
        (
            "h100-mig",
            {"layout": SEVEN, "library": "/nonexistent/library"},
            "/nonexistent/library cannot be loaded; install",
        ),
        ("lost-gpu", {"layout": []}, "GPU 2 is lost to the driver"),
    ],
)
def test_refusal_changes_nothing(make: Make, profile: str, more: dict[str, Any], words: str) -> None:
    node = make(profile)
    failed = run(node, **more)
    assert words in failed["msg"]
    assert (node.list_files(), node.read_log()) == ([], [])


def test_gpu_that_does_not_change_its_mode_gets_the_former_one(
    make: Make, nvml_builder: NvmlBuilder, tmp_path: Path
) -> None:
    node = make("h100-mig")
    text = nvml_profile.profile_path("h100-mig").read_text()
    node.library = nvml_builder.library_of(f"held-{tmp_path.name}", text + "mig_fault = in_use\n")
    node.add_holder(12, "dcgm-exporter", "/dev/nvidia1")
    failed = run(node, layout=[{"gpus": [1], "profiles": {"7g.80gb": 1}}])
    assert (
        "GPU 1 (NVIDIA H100 80GB HBM3) did not change its MIG mode, because dcgm-exporter (pid 12) has it open"
        in failed["msg"]
    )
    assert run(node, check=True, layout=SEVEN)["gpus"][1]["before"]["mode_pending"] == "disabled"


def test_failed_reset_waits_for_a_permitted_reboot(make: Make) -> None:
    node = make("a100-40g")
    (node.programs / "nvidia-smi").write_text("#!/bin/sh\necho GPU 0: In use by another client; exit 1\n")
    failed = run(node, layout=SMALL, allow_gpu_reset=True)
    assert (
        "does not reset GPU 0 (NVIDIA A100-SXM4-40GB) (GPU 0: In use by another client); stop what uses it"
        in failed["msg"]
    )
    assert run(node, check=True, layout=[])["gpus"][0]["before"]["mode_pending"] == "disabled"
    done = run(node, layout=SMALL, allow_gpu_reset=True, allow_reboot=True)
    assert (done["changed"], done["reboot_required"]) == (True, True)


#: Some drivers report no profiles while MIG is off.
HIDE = """
import sys
sys.path[:0] = {places!r}
from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml import mig
def read(device, index, real=mig._read_profiles):
    return real(device, index) if device.read_numbers("nvmlDeviceGetMigMode", count=2)[0] else iter(())
mig._read_profiles = read
"""


def test_layout_that_was_checked_with_mig_on_is_refused_with_mig_off_again(make: Make) -> None:
    node, first = make("h100-mig"), HIDE.format(places=PLACES)
    refused = run(node, layout=[{"gpus": [1], "profiles": {"1g.5gb": 1}}], first=first)
    assert "GPU 1 (NVIDIA H100 80GB HBM3) does not have the profile 1g.5gb; it has 1g.10gb" in refused["msg"]
    assert run(node, check=True, layout=SEVEN)["gpus"][1]["before"]["mode"] == "disabled"
    assert profiles(run(node, layout=SEVEN, first=first)) == [{"1g.10gb": 7}] * 2


def test_undo_without_a_record_needs_no_driver(make: Make) -> None:
    assert run(make("no-driver"), state="absent")["changed"] is False


#: Ends the module and its child, as power does, before the call of NVML with this number that changes a GPU.
KILL = """
import os, signal, sys
sys.path[:0] = {places!r}
from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml import library
def call(self, names, *arguments, real=library.Nvml.call):
    if any(word in names[0] for word in ("SetMigMode", "Destroy", "InstanceCreate", "CreateGpu")):
        with open({count!r}, "a") as file:
            file.write("x")
        if os.path.getsize({count!r}) == {number}:
            os.kill(os.getppid(), signal.SIGKILL)
            os._exit(1)
    return real(self, names, *arguments)
library.Nvml.call = call
"""


def test_killed_run_is_finished_by_the_next(make: Make, tmp_path: Path) -> None:
    """One node is killed again and again, at a call that is later each time."""
    node = make("h100-mig")
    desired = [{"gpus": [0], "profiles": {"3g.40gb": 1, "4g.40gb": 1}}, {"gpus": [1], "profiles": {"3g.40gb": 2}}]
    record = None
    count = tmp_path / "count"
    for number in range(1, 5):
        count.write_text("")
        with pytest.raises(AssertionError):
            run(node, layout=desired, first=KILL.format(count=str(count), number=number, places=PLACES))
        assert count.stat().st_size == number
        record = record or node.read_record()
        assert node.read_record() == record
    done = run(node, layout=desired)
    assert done["changed"] is True
    assert profiles(done) == [{"3g.40gb": 1, "4g.40gb": 1}, {"3g.40gb": 2}]
    assert not (tmp_path / "dcgm-stopped").exists()
    undone = run(node, state="absent")
    assert profiles(undone) == [FORMER, {}]
    assert node.list_files() == []


def test_services_that_a_killed_run_has_stopped_are_started(make: Make) -> None:
    node = make("h100-mig")
    run(node, layout=SEVEN)
    (node.state / "state" / "mig-services.json").write_text('["nvidia-dcgm"]')
    assert run(node, check=True, layout=SEVEN)["changed"] is True
    node.read_log()
    assert run(node, layout=SEVEN)["changed"] is True
    assert node.read_log() == ["systemctl start -- nvidia-dcgm"]
    assert run(node, layout=SEVEN)["changed"] is False


def test_failed_specification_is_generated_by_the_next_run(make: Make) -> None:
    node = make("h100-mig")
    node.spec.write_text("former\n")
    failed = run(node, layout=SEVEN, cdi_command=["false"])
    assert "false --format=yaml failed (exit status 1)" in failed["msg"]
    failed = run(node, layout=SEVEN, cdi_command=["/nonexistent/nvidia-ctk"])
    assert "install nvidia-container-toolkit" in failed["msg"]
    done = run(node, layout=SEVEN)
    assert (done["changed"], done["cdi_specs"]) == (True, [str(node.spec)])


def test_damaged_record_is_refused(make: Make) -> None:
    node = make("h100-mig")
    (node.state / "state").mkdir(parents=True)
    (node.state / "state" / "mig.json").write_text('{"version": 1}')
    assert "is damaged ('gpus'); restore or remove it" in run(node, state="absent")["msg"]
