# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fakes of NVIDIA's installers and packages: versions, the default, unmanaged toolkits, and failed and interrupted runs.

The role tests have the refusals before a change.
"""

from __future__ import annotations

import json
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
RUNFILES = "/srv/cuda-fakes/runfiles"
UNMANAGED = ("/usr/local/cuda-11.8", "/usr/local/cuda-12.6")
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
    """The folders of toolkits, without the unmanaged ones of the preparation."""
    return [path for path in host.check_output("ls -d /usr/local/cuda-*").split() if path not in UNMANAGED]


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


def test_wrong_checksum_stops_before_the_installer_runs(host: Any, apply: Apply) -> None:
    before = read_executed(host)
    runfile = {"version": "13.0", "checksum": f"sha256:{'0' * 64}", "url": f"file://{RUNFILES}/fake-cuda_13.0.run"}
    code, _changed, output = apply(cuda_versions=["13.0"], cuda_default="13.0", cuda_runfiles=[runfile])
    assert code != 0
    assert "and was not executed; correct its location or its checksum in cuda_runfiles." in output
    assert read_executed(host) == before
    assert not host.file(SCRATCH).exists
    assert list_toolkits(host) == ["/usr/local/cuda-12.8", "/usr/local/cuda-12.9"]
    assert read_default_release(host) == "12.8"


def make_runfiles(host: Any, options: list[str]) -> list[dict[str, Any]]:
    """The installers of all versions, that of 12.8 with options, and one for an unmanaged toolkit, which must not run."""
    found = []
    for version in ("12.8", "12.9", "13.0"):
        path = f"{RUNFILES}/fake-cuda_{version}.run"
        checksum = f"sha256:{host.check_output(f'sha256sum {path}').split()[0]}"
        found.append({"version": version, "remote_path": path, "checksum": checksum})
    found[0]["options"] = options
    return [*found, {"version": "12.6", "url": "file:///nowhere.run", "checksum": f"sha256:{'0' * 64}"}]


def test_toolkits_are_replaced_and_installed_after_two_failures_and_back(host: Any, apply: Apply) -> None:
    """Other options require another installation of 12.8; 13.0 is added, beside 12.6, which is unmanaged and stays.

    The first failure leaves the former toolkit. The second one, of a killed installer, leaves a compiler that prints its release, and
    nothing else. The default does not change before it is requested.
    """
    before = read_executed(host)
    host.check_output("touch /root/fake-fails")
    code, _changed, output = apply(cuda_runfiles=make_runfiles(host, ["--no-drm"]))
    assert code != 0
    assert "the installer of CUDA 12.8 failed with status 1:" in output
    assert "[ERROR]: no space left on device" in output
    assert "The former toolkit is restored." in output
    assert host.file("/usr/local/cuda-12.8/lib64/libcudart.so").exists
    assert not host.file(SCRATCH).exists

    # The restored 12.8 has its former options, so that its installer does not run again.
    host.check_output("rm /root/fake-fails && touch /root/fake-dies")
    versions = {"cuda_versions": ["12.8", "12.9", "13.0", "12.6"]}
    code, _changed, output = apply(**versions, cuda_runfiles=make_runfiles(host, []))
    assert code != 0, output
    assert read_executed(host) == [*before, "12.8", "13.0"]
    assert read_release(host, "/usr/local/cuda-13.0/bin/nvcc") == "13.0"
    assert not host.file("/usr/local/cuda-13.0/lib64/libcudart.so").exists

    host.check_output(f"rm /root/fake-dies && mkdir -p {SCRATCH} && touch {SCRATCH}/left")
    variables = {**versions, "cuda_runfiles": make_runfiles(host, ["--no-drm"])}
    code, changed, output = apply("--check", **variables)
    assert code == 0, output
    assert changed > 0, output
    assert read_executed(host) == [*before, "12.8", "13.0"]
    code, _changed, output = apply(**variables)
    assert code == 0, output
    assert read_executed(host) == [*before, "12.8", "13.0", "12.8", "13.0"]
    assert host.file("/usr/local/cuda-13.0/lib64/libcudart.so").exists
    assert not host.file(SCRATCH).exists
    assert read_default_release(host) == "12.8"

    for mode, default in ((["--check"], "12.8"), ([], "12.9")):
        code, changed, output = apply(*mode, **variables, cuda_default="12.9")
        assert (code, changed) == (0, 1), output
        assert read_default_release(host) == default

    code, _changed, output = apply()
    assert code == 0, output
    assert read_executed(host) == [*before, "12.8", "13.0", "12.8", "13.0", "12.8"]
    assert list_toolkits(host) == ["/usr/local/cuda-12.8", "/usr/local/cuda-12.9"]
    assert read_release(host, "/usr/local/cuda-12.6/bin/nvcc") == "12.6"
    traces = host.check_output(
        "update-alternatives --query cuda; ls /etc/ld.so.conf.d /var/log/nvidia/.uninstallManifests"
    )
    assert "12.9" in traces
    assert "13.0" not in traces
    assert "cuda-13-0" not in traces
    assert read_default_release(host) == "12.8"
    assert host.run("ls -A /usr/local").stdout.count(".gpu-kubernetes") == 0


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
    code, changed, output = apply(**one)
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


def test_check_mode_predicts_the_undo(host: Any, apply: Apply) -> None:
    before = list_toolkits(host)
    code, changed, output = apply("--check", cuda_state="absent")
    assert (code, changed > 0) == (0, True), output
    assert (list_toolkits(host), read_default_release(host)) == (before, "12.8")
