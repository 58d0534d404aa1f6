# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fakes of NVIDIA's installers and packages: versions, the default, refusals, and interrupted runs."""

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
LIMIT = ("--limit", "*-worker-1")
EXECUTION_LOG = "/root/fake-executed"
SCRATCH = "/var/lib/gpu-kubernetes/cuda-runfile"
PROFILE = "/etc/profile.d/gpu-kubernetes-cuda.sh"
Playbook = Callable[..., tuple[int, dict[str, dict[str, int]], str]]
Apply = Callable[..., tuple[int, int, str]]


@pytest.fixture
def apply(playbook: Playbook) -> Apply:
    """Apply the role with other variables: exit code, count of changes, output in one line."""

    def run(*words: str, **variables: Any) -> tuple[int, int, str]:
        code, recap, output = playbook(CONVERGE, *LIMIT, "-e", json.dumps(variables), *words)
        return code, sum(counts["changed"] for counts in recap.values()), " ".join(output.split())

    return run


def read_release(host: Any, compiler: str) -> str:
    output = host.check_output(f"{compiler} --version")
    return str(output.split("release ")[1].split(",")[0])


def read_default_release(host: Any) -> str:
    """The release of the compiler in a login shell."""
    return read_release(host, "bash --login -c 'nvcc --version' #")


def list_toolkits(host: Any) -> list[str]:
    return host.check_output("ls -d /usr/local/cuda-* | sort; true").split()


def read_executed(host: Any) -> list[str]:
    return host.check_output(f"cat {EXECUTION_LOG}").split()


def test_versions_are_side_by_side(host: Any) -> None:
    for version in ("12.8", "12.9"):
        assert read_release(host, f"/usr/local/cuda-{version}/bin/nvcc") == version
    assert read_executed(host) == ["12.8", "12.9"]
    assert not host.file(SCRATCH).exists


def test_default_is_one_of_the_alternatives(host: Any) -> None:
    assert read_default_release(host) == "12.8"
    assert host.file("/usr/local/cuda").linked_to == "/usr/local/cuda-12.8"
    assert host.check_output("readlink /usr/local/cuda") == "/etc/alternatives/cuda"
    output = host.check_output("update-alternatives --query cuda")
    assert "Alternative: /usr/local/cuda-12.9\nPriority: 129" in output


def test_profile_can_be_read_twice_by_a_strict_shell(host: Any) -> None:
    for shell in ("sh", "bash"):
        output = host.check_output(
            f"env --ignore-environment PATH=/usr/bin:/bin {shell} -euc '. {PROFILE}; . {PROFILE}; echo $PATH $LD_LIBRARY_PATH'"
        )
        assert output == "/usr/local/cuda/bin:/usr/bin:/bin /usr/local/cuda/lib64"


def test_other_default_changes_only_the_default(host: Any, apply: Apply) -> None:
    before = read_executed(host)
    code, changed, output = apply("--check", cuda_default="12.9")
    assert (code, changed) == (0, 1), output
    code, changed, output = apply(cuda_default="12.9")
    assert (code, changed) == (0, 1), output
    assert read_default_release(host) == "12.9"
    assert read_executed(host) == before
    code, changed, output = apply()
    assert (code, changed) == (0, 1), output
    assert read_default_release(host) == "12.8"


@pytest.mark.parametrize("source", ["url", "path", "remote_path"])
def test_wrong_checksum_stops_before_an_installer_runs(host: Any, apply: Apply, source: str) -> None:
    before = read_executed(host)
    file = HERE.parents[1] / ".lab" / os.environ["LAB_NAME"] / "cuda" / "runfiles" / "fake-cuda_13.0.run"
    path = "/srv/cuda-fakes/runfiles/fake-cuda_13.0.run"
    location = {"url": f"file://{path}", "path": str(file), "remote_path": path}[source]
    runfile = {"version": "13.0", "checksum": f"sha256:{'0' * 64}", source: location}
    code, _changed, output = apply(cuda_versions=["13.0"], cuda_default="13.0", cuda_runfiles=[runfile])
    assert code != 0
    assert "and was not executed; correct its location or its checksum in cuda_runfiles." in output
    assert read_executed(host) == before
    assert not host.file(SCRATCH).exists
    assert list_toolkits(host) == ["/usr/local/cuda-12.8", "/usr/local/cuda-12.9"]
    assert read_default_release(host) == "12.8"


def test_version_is_installed_after_two_failures_and_removed(host: Any, apply: Apply) -> None:
    """The killed installer leaves a compiler that prints its release, and nothing else. The default does not change."""
    before = read_executed(host)
    versions = {"cuda_versions": ["12.8", "12.9", "13.0"]}
    host.check_output("touch /root/fake-fails")
    code, _changed, output = apply(**versions)
    assert code != 0
    assert "the installer of CUDA 13.0 failed with status 1:" in output
    assert "[ERROR]: no space left on device" in output
    assert not host.file(SCRATCH).exists

    host.check_output("rm /root/fake-fails && touch /root/fake-dies")
    code, _changed, output = apply(**versions)
    assert code != 0, output
    assert read_release(host, "/usr/local/cuda-13.0/bin/nvcc") == "13.0"
    assert not host.file("/usr/local/cuda-13.0/lib64/libcudart.so").exists

    host.check_output(f"rm /root/fake-dies && mkdir -p {SCRATCH} && touch {SCRATCH}/left")
    code, changed, output = apply("--check", **versions)
    assert code == 0, output
    assert changed > 0, output
    assert read_executed(host) == [*before, "13.0", "13.0"]
    code, _changed, output = apply(**versions)
    assert code == 0, output
    assert read_executed(host) == [*before, "13.0", "13.0", "13.0"]
    assert host.file("/usr/local/cuda-13.0/lib64/libcudart.so").exists
    assert not host.file(SCRATCH).exists
    assert read_default_release(host) == "12.8"
    code, changed, output = apply(**versions)
    assert (code, changed) == (0, 0), output

    code, _changed, output = apply()
    assert code == 0, output
    assert list_toolkits(host) == ["/usr/local/cuda-12.8", "/usr/local/cuda-12.9"]
    traces = host.check_output(
        "update-alternatives --query cuda; ls /etc/ld.so.conf.d /var/log/nvidia/.uninstallManifests"
    )
    assert "12.9" in traces
    assert "13.0" not in traces
    assert "cuda-13-0" not in traces
    assert read_default_release(host) == "12.8"


def test_failed_installer_leaves_the_former_toolkit(host: Any, apply: Apply) -> None:
    """Other options require another installation, too. The second one is killed with its parent."""
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
    before = read_executed(host)
    host.check_output("touch /root/fake-fails")
    code, _changed, output = apply(cuda_runfiles=runfiles)
    assert code != 0, output
    assert "The former toolkit is restored." in output
    assert read_default_release(host) == "12.8"
    assert host.file("/usr/local/cuda-12.8/lib64/libcudart.so").exists
    code, changed, output = apply()
    assert (code, changed) == (0, 0), output
    host.check_output("rm /root/fake-fails && touch /root/fake-dies")
    code, _changed, output = apply(cuda_runfiles=runfiles)
    host.check_output("rm /root/fake-dies")
    assert code != 0, output
    code, _changed, output = apply(cuda_runfiles=runfiles)
    assert code == 0, output
    code, changed, output = apply(cuda_runfiles=runfiles)
    assert (code, changed) == (0, 0), output
    code, _changed, output = apply()
    assert code == 0, output
    assert read_executed(host) == [*before, *["12.8"] * 4]
    assert host.run("ls -A /usr/local").stdout.count(".gpu-kubernetes") == 0


def test_unmanaged_toolkit_stays(host: Any, apply: Apply) -> None:
    host.check_output("mkdir -p /usr/local/cuda-13.0/bin")
    code, changed, output = apply(cuda_versions=["12.8", "12.9", "13.0"])
    assert (code != 0, changed) == (True, 0), output
    assert "/usr/local/cuda-13.0 exists, was not created by this role, and has no compiler of CUDA 13.0" in output
    host.check_output("sed 's/12[.]9/13.0/' /usr/local/cuda-12.9/bin/nvcc > /usr/local/cuda-13.0/bin/nvcc")
    host.check_output("chmod 755 /usr/local/cuda-13.0/bin/nvcc")
    code, changed, output = apply(cuda_method="package", cuda_versions=["13.0"], cuda_default="")
    assert (code != 0, changed) == (True, 0), output
    assert "/usr/local/cuda-13.0/bin/nvcc exists, but neither a package nor this role installed it" in output
    before = read_executed(host)
    code, _changed, output = apply(cuda_versions=["12.8", "12.9", "13.0"])
    assert code == 0, output
    assert read_executed(host) == before
    code, _changed, output = apply()
    assert code == 0, output
    assert "/usr/local/cuda-13.0" in list_toolkits(host)
    host.check_output("rm -r /usr/local/cuda-13.0 && update-alternatives --remove cuda /usr/local/cuda-13.0")


def test_packages_replace_runfiles_and_back(host: Any, apply: Apply) -> None:
    """Both have the same folder for 12.8."""
    before = read_executed(host)
    packages = {"cuda_method": "package", "cuda_versions": ["13.0", "12.8"], "cuda_default": ""}
    code, changed, output = apply("--check", **packages)
    assert code == 0, output
    assert changed > 0, output
    assert list_toolkits(host) == ["/usr/local/cuda-12.8", "/usr/local/cuda-12.9"]
    code, _changed, output = apply(**packages)
    assert code == 0, output
    assert list_toolkits(host) == ["/usr/local/cuda-12.8", "/usr/local/cuda-13.0"]
    assert read_default_release(host) == "13.0"
    for name in ("cuda-toolkit-12-8", "cuda-toolkit-13-0"):
        assert host.package(name).is_installed

    one = {**packages, "cuda_versions": ["12.8"], "cuda_components": "compiler"}
    code, _changed, output = apply(**one)
    assert code == 0, output
    assert list_toolkits(host) == ["/usr/local/cuda-12.8"]
    assert read_default_release(host) == "12.8"
    for mode in (["--check"], []):
        code, changed, output = apply(*mode, **one)
        assert (code, changed) == (0, 0), output
    assert read_executed(host) == before

    code, _changed, output = apply()
    assert code == 0, output
    # it was installed with the version that was removed first, and the other version depended on it
    left = host.check_output("dpkg-query --show --showformat '${db:Status-Status} ${Package} ' 'cuda-*'")
    assert left.strip() == "installed cuda-toolkit-config-common"
    assert "Purg cuda-toolkit-config-common" in host.check_output("apt-get --simulate --purge autoremove")
    host.check_output("apt-get --yes purge cuda-toolkit-config-common")
    assert host.check_output("find /etc/apt -name '*cuda*'") == ""
    assert list_toolkits(host) == ["/usr/local/cuda-12.8", "/usr/local/cuda-12.9"]
    assert read_default_release(host) == "12.8"
    assert read_executed(host) == [*before, "12.8", "12.9"]


def test_undo_restores_an_unmanaged_toolkit(host: Any, playbook: Playbook, apply: Apply) -> None:
    """An unmanaged toolkit that an administrator chose: undo and redo."""
    undo = ["-e", '{"cuda_state": "absent"}']
    code, _recap, output = playbook(CONVERGE, *LIMIT, *undo)
    assert code == 0, output
    assert list_toolkits(host) == []
    for version in ("11.8", "12.6"):
        register = (
            f"update-alternatives --install /usr/local/cuda cuda /usr/local/cuda-{version} {version.replace('.', '')}"
        )
        host.check_output(f"mkdir /usr/local/cuda-{version} && {register}")
    host.check_output("update-alternatives --set cuda /usr/local/cuda-11.8")
    code, _changed, output = apply()
    assert code == 0, output
    assert read_default_release(host) == "12.8"
    for mode in (["--check"], []):
        code, recap, output = playbook(CONVERGE, *LIMIT, *undo, *mode)
        assert code == 0, output
        assert sum(counts["changed"] for counts in recap.values()) > 0
    assert list_toolkits(host) == ["/usr/local/cuda-11.8", "/usr/local/cuda-12.6"]
    assert host.file("/usr/local/cuda").linked_to == "/usr/local/cuda-11.8"
    for mode in (["--check"], []):
        code, recap, output = playbook(CONVERGE, *LIMIT, *undo, *mode)
        assert (code, sum(counts["changed"] for counts in recap.values())) == (0, 0), output

    for version in ("11.8", "12.6"):
        host.check_output(
            f"update-alternatives --remove cuda /usr/local/cuda-{version} && rmdir /usr/local/cuda-{version}"
        )
    host.check_output("mkdir /opt/cuda && ln -s /opt/cuda /usr/local/cuda")
    code, _changed, output = apply()
    assert code == 0, output
    assert read_default_release(host) == "12.8"
    code, _recap, output = playbook(CONVERGE, *LIMIT, *undo)
    assert code == 0, output
    assert host.check_output("readlink /usr/local/cuda") == "/opt/cuda"
    host.check_output("rm /usr/local/cuda && rmdir /opt/cuda")
    code, _changed, output = apply()
    assert code == 0, output
