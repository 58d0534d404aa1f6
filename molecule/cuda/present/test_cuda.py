# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fakes of NVIDIA's installers and packages: what is installed, chosen, refused, and made up for."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

testinfra_hosts = ["ansible://*-worker-1"]

HERE = Path(__file__).parents[1]
CONVERGE = str(HERE / "converge.yml")
ALONE = ("--limit", "*-worker-1")
EXECUTED = "/root/fake-executed"
SCRATCH = "/var/lib/gpu-kubernetes/cuda-runfile"
PROFILE = "/etc/profile.d/gpu-kubernetes-cuda.sh"
Playbook = Callable[..., tuple[int, dict[str, dict[str, int]], str]]
Apply = Callable[..., tuple[int, int, str]]


@pytest.fixture
def apply(playbook: Playbook) -> Apply:
    """Apply the role with other variables: exit code, count of changes, what was said in one line."""

    def run(*words: str, **variables: Any) -> tuple[int, int, str]:
        code, recap, said = playbook(CONVERGE, *ALONE, "-e", json.dumps(variables), *words)
        return code, sum(counts["changed"] for counts in recap.values()), " ".join(said.split())

    return run


def release(host: Any, compiler: str) -> str:
    said = host.check_output(f"{compiler} --version")
    return str(said.split("release ")[1].split(",")[0])


def default(host: Any) -> str:
    """The release of the compiler in a login shell."""
    return release(host, "bash --login -c 'nvcc --version' #")


def installed(host: Any) -> list[str]:
    return host.check_output("ls -d /usr/local/cuda-* | sort; true").split()


def executed(host: Any) -> list[str]:
    return host.check_output(f"cat {EXECUTED}").split()


def test_versions_are_side_by_side(host: Any) -> None:
    for version in ("12.8", "12.9"):
        assert release(host, f"/usr/local/cuda-{version}/bin/nvcc") == version
    assert executed(host) == ["12.8", "12.9"]
    assert not host.file(SCRATCH).exists


def test_the_default_is_one_of_the_alternatives(host: Any) -> None:
    assert default(host) == "12.8"
    assert host.file("/usr/local/cuda").linked_to == "/usr/local/cuda-12.8"
    assert host.check_output("readlink /usr/local/cuda") == "/etc/alternatives/cuda"
    said = host.check_output("update-alternatives --query cuda")
    assert "Alternative: /usr/local/cuda-12.9\nPriority: 129" in said


def test_the_profile_can_be_read_twice_by_a_strict_shell(host: Any) -> None:
    for shell in ("sh", "bash"):
        said = host.check_output(
            f"env --ignore-environment PATH=/usr/bin:/bin {shell} -euc '. {PROFILE}; . {PROFILE}; echo $PATH $LD_LIBRARY_PATH'"
        )
        assert said == "/usr/local/cuda/bin:/usr/bin:/bin /usr/local/cuda/lib64"


def test_another_default_changes_the_default_alone(host: Any, apply: Apply) -> None:
    before = executed(host)
    code, changed, said = apply("--check", cuda_default="12.9")
    assert (code, changed) == (0, 1), said
    code, changed, said = apply(cuda_default="12.9")
    assert (code, changed) == (0, 1), said
    assert default(host) == "12.9"
    assert executed(host) == before
    code, changed, said = apply()
    assert (code, changed) == (0, 1), said
    assert default(host) == "12.8"


@pytest.mark.parametrize("place", ["url", "path", "remote_path"])
def test_a_wrong_checksum_stops_before_anything_is_executed(host: Any, apply: Apply, place: str) -> None:
    before = executed(host)
    file = HERE.parents[1] / ".lab" / os.environ["LAB_NAME"] / "cuda" / "runfiles" / "fake-cuda_13.0.run"
    path = "/srv/cuda-fakes/runfiles/fake-cuda_13.0.run"
    where = {"url": f"file://{path}", "path": str(file), "remote_path": path}[place]
    runfile = {"version": "13.0", "checksum": f"sha256:{'0' * 64}", place: where}
    code, _changed, said = apply(cuda_versions=["13.0"], cuda_default="13.0", cuda_runfiles=[runfile])
    assert code != 0
    assert "and was not executed; correct its location or its checksum in cuda_runfiles." in said
    assert executed(host) == before
    assert not host.file(SCRATCH).exists
    assert installed(host) == ["/usr/local/cuda-12.8", "/usr/local/cuda-12.9"]
    assert default(host) == "12.8"


def test_a_version_comes_after_two_failures_and_goes(host: Any, apply: Apply) -> None:
    """What was killed has a compiler that tells its release, and yet the rest is missing. The default is another one throughout."""
    before = executed(host)
    three = {"cuda_versions": ["12.8", "12.9", "13.0"]}
    host.check_output("touch /root/fake-fails")
    code, _changed, said = apply(**three)
    assert code != 0
    assert "the installer of CUDA 13.0 failed with status 1:" in said
    assert "[ERROR]: no space left on device" in said
    assert not host.file(SCRATCH).exists

    host.check_output("rm /root/fake-fails && touch /root/fake-dies")
    code, _changed, said = apply(**three)
    assert code != 0, said
    assert release(host, "/usr/local/cuda-13.0/bin/nvcc") == "13.0"
    assert not host.file("/usr/local/cuda-13.0/lib64/libcudart.so").exists

    host.check_output(f"rm /root/fake-dies && mkdir -p {SCRATCH} && touch {SCRATCH}/left")
    code, changed, said = apply("--check", **three)
    assert code == 0, said
    assert changed > 0, said
    assert executed(host) == [*before, "13.0", "13.0"]
    code, _changed, said = apply(**three)
    assert code == 0, said
    assert executed(host) == [*before, "13.0", "13.0", "13.0"]
    assert host.file("/usr/local/cuda-13.0/lib64/libcudart.so").exists
    assert not host.file(SCRATCH).exists
    assert default(host) == "12.8"
    code, changed, said = apply(**three)
    assert (code, changed) == (0, 0), said

    code, _changed, said = apply()
    assert code == 0, said
    assert installed(host) == ["/usr/local/cuda-12.8", "/usr/local/cuda-12.9"]
    traces = host.check_output(
        "update-alternatives --query cuda; ls /etc/ld.so.conf.d /var/log/nvidia/.uninstallManifests"
    )
    assert "12.9" in traces
    assert "13.0" not in traces
    assert "cuda-13-0" not in traces
    assert default(host) == "12.8"


def test_another_installer_that_fails_leaves_the_toolkit(host: Any, apply: Apply) -> None:
    """Other options are another installation, too. The second one is killed with what runs it."""
    folder = "/srv/cuda-fakes/runfiles"
    runfiles = [
        {
            "version": version,
            "remote_path": f"{folder}/fake-cuda_{version}.run",
            "checksum": f"sha256:{host.check_output(f'sha256sum {folder}/fake-cuda_{version}.run').split()[0]}",
            "options": ["--no-drm"] if version == "12.8" else [],
        }
        for version in ("12.8", "12.9")
    ]
    before = executed(host)
    host.check_output("touch /root/fake-fails")
    code, _changed, said = apply(cuda_runfiles=runfiles)
    assert code != 0, said
    assert "The former toolkit is restored." in said
    assert default(host) == "12.8"
    assert host.file("/usr/local/cuda-12.8/lib64/libcudart.so").exists
    code, changed, said = apply()
    assert (code, changed) == (0, 0), said
    host.check_output("rm /root/fake-fails && touch /root/fake-dies")
    code, _changed, said = apply(cuda_runfiles=runfiles)
    host.check_output("rm /root/fake-dies")
    assert code != 0, said
    code, _changed, said = apply(cuda_runfiles=runfiles)
    assert code == 0, said
    code, changed, said = apply(cuda_runfiles=runfiles)
    assert (code, changed) == (0, 0), said
    code, _changed, said = apply()
    assert code == 0, said
    assert executed(host) == [*before, *["12.8"] * 4]
    assert host.run("ls -A /usr/local").stdout.count(".gpu-kubernetes") == 0


def test_a_toolkit_of_somebody_else_stays(host: Any, apply: Apply) -> None:
    host.check_output("mkdir -p /usr/local/cuda-13.0/bin")
    code, changed, said = apply(cuda_versions=["12.8", "12.9", "13.0"])
    assert (code != 0, changed) == (True, 0), said
    assert "/usr/local/cuda-13.0 exists, was not created by this role, and has no compiler of CUDA 13.0" in said
    host.check_output("sed 's/12[.]9/13.0/' /usr/local/cuda-12.9/bin/nvcc > /usr/local/cuda-13.0/bin/nvcc")
    host.check_output("chmod 755 /usr/local/cuda-13.0/bin/nvcc")
    code, changed, said = apply(cuda_method="package", cuda_versions=["13.0"], cuda_default="")
    assert (code != 0, changed) == (True, 0), said
    assert "/usr/local/cuda-13.0/bin/nvcc exists, but neither a package nor this role installed it" in said
    before = executed(host)
    code, _changed, said = apply(cuda_versions=["12.8", "12.9", "13.0"])
    assert code == 0, said
    assert executed(host) == before
    code, _changed, said = apply()
    assert code == 0, said
    assert "/usr/local/cuda-13.0" in installed(host)
    host.check_output("rm -r /usr/local/cuda-13.0 && update-alternatives --remove cuda /usr/local/cuda-13.0")


def test_packages_instead_and_back(host: Any, apply: Apply) -> None:
    """Both have the same folder for 12.8."""
    before = executed(host)
    packages = {"cuda_method": "package", "cuda_versions": ["13.0", "12.8"], "cuda_default": ""}
    code, changed, said = apply("--check", **packages)
    assert code == 0, said
    assert changed > 0, said
    assert installed(host) == ["/usr/local/cuda-12.8", "/usr/local/cuda-12.9"]
    code, _changed, said = apply(**packages)
    assert code == 0, said
    assert installed(host) == ["/usr/local/cuda-12.8", "/usr/local/cuda-13.0"]
    assert default(host) == "13.0"
    for name in ("cuda-toolkit-12-8", "cuda-toolkit-13-0"):
        assert host.package(name).is_installed

    one = {**packages, "cuda_versions": ["12.8"], "cuda_components": "compiler"}
    code, _changed, said = apply(**one)
    assert code == 0, said
    assert installed(host) == ["/usr/local/cuda-12.8"]
    assert default(host) == "12.8"
    for mode in (["--check"], []):
        code, changed, said = apply(*mode, **one)
        assert (code, changed) == (0, 0), said
    assert executed(host) == before

    code, _changed, said = apply()
    assert code == 0, said
    # it came with the version that went first, and the other one needed it
    left = host.check_output("dpkg-query --show --showformat '${db:Status-Status} ${Package} ' 'cuda-*'")
    assert left.strip() == "installed cuda-toolkit-config-common"
    assert "Purg cuda-toolkit-config-common" in host.check_output("apt-get --simulate --purge autoremove")
    host.check_output("apt-get --yes purge cuda-toolkit-config-common")
    assert host.check_output("find /etc/apt -name '*cuda*'") == ""
    assert installed(host) == ["/usr/local/cuda-12.8", "/usr/local/cuda-12.9"]
    assert default(host) == "12.8"
    assert executed(host) == [*before, "12.8", "12.9"]


def test_what_was_there_before_comes_back(host: Any, playbook: Playbook, apply: Apply) -> None:
    """A toolkit of somebody else, chosen by hand: undo and redo."""
    undo = ["-e", '{"cuda_state": "absent"}']
    code, _recap, said = playbook(CONVERGE, *ALONE, *undo)
    assert code == 0, said
    assert installed(host) == []
    for version in ("11.8", "12.6"):
        register = (
            f"update-alternatives --install /usr/local/cuda cuda /usr/local/cuda-{version} {version.replace('.', '')}"
        )
        host.check_output(f"mkdir /usr/local/cuda-{version} && {register}")
    host.check_output("update-alternatives --set cuda /usr/local/cuda-11.8")
    code, _changed, said = apply()
    assert code == 0, said
    assert default(host) == "12.8"
    for mode in (["--check"], []):
        code, recap, said = playbook(CONVERGE, *ALONE, *undo, *mode)
        assert code == 0, said
        assert sum(counts["changed"] for counts in recap.values()) > 0
    assert installed(host) == ["/usr/local/cuda-11.8", "/usr/local/cuda-12.6"]
    assert host.file("/usr/local/cuda").linked_to == "/usr/local/cuda-11.8"
    for mode in (["--check"], []):
        code, recap, said = playbook(CONVERGE, *ALONE, *undo, *mode)
        assert (code, sum(counts["changed"] for counts in recap.values())) == (0, 0), said

    for version in ("11.8", "12.6"):
        host.check_output(
            f"update-alternatives --remove cuda /usr/local/cuda-{version} && rmdir /usr/local/cuda-{version}"
        )
    host.check_output("mkdir /opt/cuda && ln -s /opt/cuda /usr/local/cuda")
    code, _changed, said = apply()
    assert code == 0, said
    assert default(host) == "12.8"
    code, _recap, said = playbook(CONVERGE, *ALONE, *undo)
    assert code == 0, said
    assert host.check_output("readlink /usr/local/cuda") == "/opt/cuda"
    host.check_output("rm /usr/local/cuda && rmdir /opt/cuda")
    code, _changed, said = apply()
    assert code == 0, said
