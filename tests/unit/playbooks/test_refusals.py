# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the roles refuse before they touch a host."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
TOOLKIT = "nvidia-container-toolkit"
THERE = {"path": "/usr/bin/there", "version": "1.0", "usable": True}
NOT_THERE = {"path": None, "version": None, "usable": False}

pytest.importorskip("ansible.playbook", reason="only ansible.module_utils is here")


def host(toolkit, package=None, containerd=None):
    containerd = containerd or THERE
    return {
        "program": containerd,
        "service": {"name": "containerd", "exists": containerd["usable"], "state": "active"},
        "toolkit": toolkit,
        "packages": {TOOLKIT: package},
    }


def repository(**source):
    defaults = {"url": "https://default.example.com", "key_url": "https://default.example.com/key"}
    return {
        "repository": {**defaults, **source},
        "defaults": defaults,
    }


CONTAINERD = {
    "no-containerd": (host(THERE, containerd=NOT_THERE), {}, "{}: there is no containerd program; "),
    "no-containerd-on-the-way-back": (host(THERE, containerd=NOT_THERE), {"containerd_nvidia_state": "absent"}, ""),
    "containerd": (host(THERE), {}, ""),
}

TOOLKITS = {
    "no-toolkit-and-none-allowed": (
        host(NOT_THERE),
        False,
        {"nvidia_container_toolkit_install": "never"},
        "{}: there is no usable nvidia-container-runtime and nvidia_container_toolkit_install is never; ",
    ),
    "wrong-path-though-all-packages-are-there": (
        host(NOT_THERE, "1.0-1"),
        True,
        {"nvidia_container_toolkit_runtime_path": "/wrong"},
        "{}: the program /wrong is missing or does not run and the packages that should bring it are installed already; ",
    ),
    "path-that-a-package-may-bring": (
        host(NOT_THERE),
        True,
        {"nvidia_container_toolkit_runtime_path": "/usr/bin/other"},
        "",
    ),
    "version-of-anothers-toolkit": (
        host(THERE),
        False,
        {"nvidia_container_toolkit_version": "1.17.8"},
        "leave them out, or set nvidia_container_toolkit_install: always.",
    ),
    "hold-of-anothers-toolkit": (
        host(THERE),
        False,
        {"nvidia_container_toolkit_hold": False},
        "leave them out, or set nvidia_container_toolkit_install: always.",
    ),
    "version-of-our-toolkit": (host(THERE), True, {"nvidia_container_toolkit_version": "1.17.8"}, ""),
    "key-without-a-checksum": (
        host(NOT_THERE),
        True,
        repository(key_url="https://example.com/key"),
        "comes from a key_url of your own without a checksum; add its key_checksum, or give the key itself as key_content.",
    ),
    "key-with-a-checksum": (
        host(NOT_THERE),
        True,
        repository(key_url="https://example.com/key", key_checksum="sha256:" + "0" * 64),
        "",
    ),
}


def test_containerd_nvidia(refusals, tmp_path):
    hosts = {name: {"host": host, **variables} for name, (host, variables, _words) in CONTAINERD.items()}
    told = refusals(
        "containerd_nvidia",
        ["validate"],
        hosts,
        variables={"nvidia_container_toolkit_host": "{{ host }}", "nvidia_container_toolkit_program": "/usr/bin/there"},
        # What is not refused goes on to compare a configuration, of which there is none here.
        module_defaults={"gpu.kubernetes.containerd_config": {"path": str(tmp_path / "none"), "state": "absent"}},
    )
    assert sorted(told) == sorted(CONTAINERD)
    for name, (_host, _variables, words) in CONTAINERD.items():
        assert bool(told[name]) == bool(words), told[name]
        assert words.format(name) in told[name]


def test_nvidia_container_toolkit(refusals):
    hosts = {
        name: {"manager": "apt", "host": host, "ours": ours, **repository(), **variables}
        for name, (host, ours, variables, _words) in TOOLKITS.items()
    }
    names = ("manager", "ours", "repository")
    given = {f"__nvidia_container_toolkit_{name}": "{{ " + name + " }}" for name in names}
    given["nvidia_container_toolkit_host"] = "{{ host }}"
    given["__nvidia_container_toolkit_repository_defaults"] = "{{ defaults }}"
    told = refusals("nvidia_container_toolkit", ["validate"], hosts, variables=given)
    assert sorted(told) == sorted(TOOLKITS)
    for name, (_host, _ours, _variables, words) in TOOLKITS.items():
        assert bool(told[name]) == bool(words), told[name]
        assert words.format(name) in told[name]


def test_gpu_preflight_refuses_a_relative_kubeconfig(refusals):
    # It exists, seen from where Ansible runs.
    hosts = {"node": {"gpu_kubeconfig": "galaxy.yml", "gpu_preflight_require_helm": False}}
    told = refusals("gpu_preflight", ["controller"], hosts)
    assert "the kubeconfig galaxy.yml is given by a relative path; set gpu_kubeconfig to its whole path" in told["node"]


#: What the second host of a cluster is given, and whether that is no matter of its own.
PLUGIN = {
    "namespace": ({"k8s_device_plugin_namespace": "other"}, True),
    "driver-root": ({"k8s_device_plugin_driver_root": "/driver"}, True),
    "state": ({"k8s_device_plugin_state": "absent"}, True),
    "own": (
        {"k8s_device_plugin_expected_gpus": 3, "k8s_device_plugin_wait_timeout": 9, "gpu_node_name": "other"},
        False,
    ),
}


def test_the_variables_of_the_plugin_are_the_clusters(refusals):
    """Nothing has been asked of the API server by then."""
    clusters = [{f"{name}-a": {}, f"{name}-b": own} for name, (own, _differ) in PLUGIN.items()]
    told = refusals("k8s_device_plugin", ["set_vars", "facts"], *clusters)
    for name, (_own, differ) in PLUGIN.items():
        words = f"Hosts {name}-a and {name}-b differ in variables of k8s_device_plugin" if differ else ""
        assert told[f"{name}-a"][: len(words) or None] == words


def kubelet(endpoint=None, daemon=None, distribution=None):
    told = {"running": endpoint is not None, "endpoint": endpoint, "daemon": daemon}
    return {"given": {"kubelet": told, "kubernetes_distribution": distribution, "files_found": []}}


CRIO = kubelet("unix:///run/crio/crio.sock", "crio")
ODD = kubelet("unix:///run/odd.sock")
#: What a host is and was told, and which container runtime it gets or why none.
RUNTIMES = {
    "kubelet-on-crio": (CRIO, "crio"),
    "auto": ({**CRIO, "container_runtime": "auto"}, "crio"),
    "told-another": (
        {**CRIO, "container_runtime": "docker"},
        "told-another: container_runtime is docker, but the kubelet uses unix:///run/crio/crio.sock, so that",
    ),
    "by-another-name": (kubelet("unix:///var/run/containerd/containerd.sock", "containerd"), "containerd"),
    "two-of-a-kind": (
        kubelet("unix:///run/second/containerd.sock", "containerd"),
        "two-of-a-kind: the kubelet uses /run/second/containerd.sock, and not /run/containerd/containerd.sock, whose daemon would",
    ),
    "the-second": (
        {
            **kubelet("unix:///run/second/containerd.sock", "containerd"),
            "containerd_nvidia_socket": "/run/second/containerd.sock",
        },
        "containerd",
    ),
    "cri-dockerd": (kubelet("unix:///run/cri-dockerd.sock", "docker"), "docker"),
    "no-kubelet": (kubelet(), "containerd"),
    "odd-socket": (
        ODD,
        "odd-socket: the kubelet uses unix:///run/odd.sock, and the name does not tell what listens there; set ",
    ),
    "odd-socket-told": ({**ODD, "container_runtime": "containerd"}, "containerd"),
    "k0s": (
        kubelet("unix:///run/k0s/containerd.sock", "containerd", "k0s"),
        "k0s: k0s brings its own containerd; put a drop-in",
    ),
    "k3s-path": ({**kubelet(distribution="k3s"), "containerd_nvidia_config_path": "/etc/other.toml"}, "containerd"),
    # Docker beside k3s is no matter of k3s
    "k3s-docker": ({**kubelet(distribution="k3s"), "container_runtime": "docker"}, "docker"),
}


def test_which_container_runtime_it_is(refusals):
    hosts = {name: variables for name, (variables, _words) in RUNTIMES.items()}
    # What the module finds on this machine is put aside.
    given = {"__gpu_preflight_host": "{{ given }}"}
    told = refusals("gpu_preflight", ["runtime", "kubelet"], hosts, fact="gpu_preflight_container_runtime", extra=given)
    assert sorted(told) == sorted(RUNTIMES)
    for name, (_variables, words) in RUNTIMES.items():
        assert told[name].startswith(words), told[name]


#: A mistake in what is asked of cuda, and what is said of it. Debian has one toolkit; 12.8 and 12.9 have an installer.
CUDA = {
    "no-release": ({"cuda_versions": ["12"]}, "which is no release of CUDA; write it as"),
    "default-of-none": ({"cuda_default": "13.0"}, "cuda_default is 13.0, which is none of cuda_versions (12.8, 12.9)"),
    "no-installer": ({"cuda_versions": ["12.6"], "cuda_default": ""}, "has no installer for CUDA 12.6"),
    "weak-checksum": (
        {"cuda_runfiles": [{"version": "12.8", "url": "https://x.example/cuda.run", "checksum": "md5:1"}]},
        "has no checksum for CUDA 12.8",
    ),
    "not-in-the-distribution": (
        {"cuda_method": "package", "cuda_provider": "distribution"},
        "Debian 12.15 has CUDA 11.8, and cuda_versions wants 12.8 and 12.9; leave cuda_versions empty",
    ),
    "with-a-driver": (
        {"cuda_method": "package", "cuda_packages": ["cuda-{version}"]},
        "which would install a driver too",
    ),
    "which-of-many": (
        {"cuda_method": "package", "cuda_provider": "nvidia", "cuda_versions": [], "cuda_default": ""},
        "cuda_versions is empty, and NVIDIA's repository has many",
    ),
    "nothing-wrong": ({}, ""),
}
DEBIAN = {
    "distribution": "Debian",
    "distribution_version": "12.15",
    "distribution_major_version": "12",
    "distribution_release": "bookworm",
    "os_family": "Debian",
    "architecture": "x86_64",
    "kernel": "6.1.0-56-amd64",
    "pkg_mgr": "apt",
}


def runfile(version):
    return {"version": version, "url": f"https://x.example/{version}.run", "checksum": "sha256:" + "0" * 64}


def test_cuda(refusals):
    asked = {
        "cuda_method": "runfile",
        "cuda_versions": ["12.8", "12.9"],
        "cuda_default": "12.8",
        "cuda_runfiles": [runfile("12.8"), runfile("12.9")],
    }
    hosts = {name: {**asked, **wrong} for name, (wrong, _words) in CUDA.items()}
    told = refusals("cuda", ["check"], hosts, facts=DEBIAN)
    assert sorted(told) == sorted(CUDA)
    for name, (_wrong, words) in CUDA.items():
        assert bool(told[name]) == bool(words), told[name]
        assert words in told[name], told[name]


def test_cuda_on_arch(refusals):
    asked = {"cuda_versions": ["12.8"], "cuda_default": "12.8", "cuda_runfiles": [runfile("12.8")]}
    hosts = {
        "runfile": {"cuda_method": "runfile", **asked},
        "package": {"cuda_method": "package", "cuda_provider": "nvidia", "cuda_versions": []},
    }
    arch = {**DEBIAN, "distribution": "Archlinux", "os_family": "Archlinux", "pkg_mgr": "pacman"}
    told = refusals("cuda", ["check"], hosts, facts=arch)
    assert "Archlinux has no update-alternatives" in told["runfile"]
    assert told["package"].endswith("set cuda_provider to distribution.")


def driver(workshop):
    """Have the machine show a T4 with the driver 570.124.06, which serves CUDA 12.8."""
    return {"gpu.kubernetes.nvml_facts": {"library": workshop.library("t4")}}


def test_cuda_beyond_the_driver(refusals, workshop):
    newer = {"cuda_versions": ["13.0"], "cuda_default": "13.0"}
    hosts = {
        "package": {"cuda_method": "package", "cuda_provider": "nvidia", **newer},
        "runfile": {"cuda_method": "runfile", "cuda_runfiles": [runfile("13.0")], **newer},
        "fits": {"cuda_method": "package", "cuda_provider": "nvidia", "cuda_versions": ["12.8"]},
        "own": {"cuda_method": "package"},
    }
    told = refusals("cuda", ["check"], hosts, facts=DEBIAN, module_defaults=driver(workshop))
    assert (told["fits"], told["own"]) == ("", "")
    for name in ("package", "runfile"):
        assert told[name].startswith(f"{name}: Driver 570.124.06 is too old for programs of CUDA 13.0"), told[name]


def test_cuda_of_a_version_that_nobody_knew(refusals, workshop, tmp_path):
    """It is judged by what the compiler says once it is there."""
    facts = {**DEBIAN, "distribution": "Archlinux", "os_family": "Archlinux", "pkg_mgr": "pacman"}
    compilers = {}
    for name, release in (("newer", "13.0"), ("older", "12.4")):
        compilers[name] = tmp_path / name
        compilers[name].write_text(f"#!/bin/sh\necho Cuda compilation tools, release {release}, V{release}.1\n")
        compilers[name].chmod(0o755)
    told = refusals(
        "cuda",
        ["check", "verify"],
        {name: {"cuda_method": "package", "nvcc": str(path)} for name, path in compilers.items()},
        facts=facts,
        extra={"__cuda_nvccs": ["{{ nvcc }}"]},
        module_defaults=driver(workshop),
    )
    assert told["older"] == ""
    assert told["newer"].startswith("newer: Driver 570.124.06 is too old for programs of CUDA 13.0"), told["newer"]


#: What a package manager tells of CUDA, and what is said of it with a driver that serves CUDA 12.8.
OFFERS = {
    "newer": ("Name : cuda\nVersion : 13.0.1-1", "Driver 570.124.06 is too old for programs of CUDA 13.0"),
    "older": ("Name : cuda\nVersion : 12.8.1-3", ""),
    "asked": ("Name : cuda\nVersion : 12.8.1-3", "has CUDA 12.8, and cuda_versions wants 12.6"),
}
#: The same of Debian's, with the word of dpkg-query, to which what was removed without its configuration is not installed.
DEBIAN_OFFERS = {
    "installed": ("installed Version: 12.4.131~12.4.1-2", "Package: x\nVersion: 13.0.1-1", ""),
    "removed": (
        "config-files Version: 12.4.131~12.4.1-2",
        "Package: x\nVersion: 13.0.1-1",
        "Driver 570.124.06 is too old for programs of CUDA 13.0",
    ),
}


def told_by(folder, **answers):
    """Return a PATH on which programs give answers, or fail where those are None."""
    folder.mkdir()
    for name, answer in answers.items():
        program = folder / name
        # No --query of pacman has an answer: nothing is installed. rpm is asked in another way.
        program.write_text(
            f"#!/bin/sh\ntest $1$2 = --query--queryformat || test $1 != --query || exit 1\ncat <<'EOF'\n{answer}\nEOF\n"
        )
        program.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def test_cuda_as_a_package_manager_knows_it(refusals, workshop, tmp_path):
    arch = {**DEBIAN, "distribution": "Archlinux", "os_family": "Archlinux", "pkg_mgr": "pacman"}
    hosts = {
        name: {
            "cuda_method": "package",
            "path": told_by(tmp_path / name, pacman=offer),
            "cuda_versions": ["12.6"] if name == "asked" else [],
        }
        for name, (offer, _words) in OFFERS.items()
    }
    told = refusals(
        "cuda", ["check"], hosts, facts=arch, module_defaults=driver(workshop), environment={"PATH": "{{ path }}"}
    )
    for name, (_offer, words) in OFFERS.items():
        assert bool(words) == bool(told[name]), told[name]
        assert words in told[name], told[name]


def test_cuda_of_a_debian_without_a_release(refusals, workshop, tmp_path):
    sid = {**DEBIAN, "distribution_version": "n/a", "distribution_major_version": "n/a", "distribution_release": "sid"}
    hosts = {
        name: {
            "cuda_method": "package",
            "path": told_by(tmp_path / name, **{"dpkg-query": here, "apt-cache": offer}),
        }
        for name, (here, offer, _words) in DEBIAN_OFFERS.items()
    }
    told = refusals(
        "cuda",
        ["check"],
        hosts,
        facts=sid,
        module_defaults=driver(workshop),
        environment={"PATH": "{{ path }}"},
    )
    for name, (_here, _offer, words) in DEBIAN_OFFERS.items():
        assert bool(words) == bool(told[name]), told[name]
        assert words in told[name], told[name]


#: A mistake in what is asked of nvidia_driver on a Debian, and what is said of it.
DRIVER = {
    "key-without-a-checksum": (
        {"nvidia_driver_provider": "nvidia", "nvidia_driver_repository": {"key_url": "https://x/y"}},
        "key_url of your own",
    ),
    "no-fabric-manager": (
        {"nvidia_driver_fabric_manager": "always"},
        "has no packages for fabric manager; set nvidia_driver_provider",
    ),
    "reboot-of-this-machine": (
        {"nvidia_driver_reboot": "if_needed"},
        "reboot-of-this-machine: nvidia_driver_reboot is if_needed, and the connection is local",
    ),
    "no-such-method": ({"nvidia_driver_method": "floppy"}, "value of nvidia_driver_method must be one of"),
    "installer-without-a-checksum": (
        {
            "nvidia_driver_method": "runfile",
            "nvidia_driver_version": "570.124.06",
            "nvidia_driver_runfile": {"url": "https://x.example/570.run"},
        },
        "needs nvidia_driver_version, and nvidia_driver_runfile with the url of the installer and its checksum",
    ),
    "installer-with-a-weak-checksum": (
        {
            "nvidia_driver_method": "runfile",
            "nvidia_driver_version": "570.124.06",
            "nvidia_driver_runfile": {"url": "https://x.example/570.run", "checksum": "md5:" + "0" * 32},
        },
        "needs nvidia_driver_version, and nvidia_driver_runfile with the url of the installer and its checksum",
    ),
    "nothing-wrong": ({}, ""),
}


def test_nvidia_driver(refusals):
    hosts = {name: wrong for name, (wrong, _words) in DRIVER.items()}
    nothing = {"library_version": None, "installed_module_version": None, "loaded_module_version": None}
    driver = {**nothing, "secure_boot": False, "works": False}
    look = {"ansible_facts": {"nvml": {"gpus": [{"name": "a GPU", "lost": False}], "nvswitches": 0, "driver": driver}}}
    told = refusals("nvidia_driver", ["check"], hosts, facts=DEBIAN, extra={"__nvidia_driver_look": look})
    assert sorted(told) == sorted(DRIVER)
    for name, (_wrong, words) in DRIVER.items():
        assert bool(told[name]) == bool(words), told[name]
        assert words in told[name], told[name]


ROCKY = {**DEBIAN, "distribution": "Rocky", "os_family": "RedHat", "pkg_mgr": "dnf", "distribution_version": "9.4"}
#: A host whose distribution has DKMS in EPEL: what rpm and dnf tell of it, and whether it is refused.
DKMS = {
    "installed": ("installed 3.1.1-1.el9", "", {}, False),
    "offered": ("", "dkms 3.1.1-1.el9", {}, False),
    "nowhere": ("", "", {}, True),
    "nowhere-for-an-installer": (
        "",
        "",
        {
            "nvidia_driver_method": "runfile",
            "nvidia_driver_version": "570.124.06",
            "nvidia_driver_runfile": {"url": "https://x.example/570.run", "checksum": "sha256:" + "0" * 64},
        },
        True,
    ),
    "packages-of-their-own": ("", "", {"nvidia_driver_packages": ["kmod-nvidia-site"]}, False),
    "no-modules": ("", "", {"nvidia_driver_kernel_modules": "none"}, False),
}


@pytest.mark.parametrize("mode", [False, True], ids=["run", "check"])
def test_dkms_is_in_a_repository_apart(refusals, tmp_path, mode):
    hosts = {}
    for name, (here, offer, asked, _refused) in DKMS.items():
        path = told_by(tmp_path / name, rpm=here, dnf=offer)
        hosts[name] = {"path": path, "nvidia_driver_state_dir": str(tmp_path / name), **asked}
    nothing = {"library_version": None, "installed_module_version": None, "loaded_module_version": None}
    driver = {**nothing, "secure_boot": False, "works": False}
    look = {"ansible_facts": {"nvml": {"gpus": [{"name": "a GPU", "lost": False}], "nvswitches": 0, "driver": driver}}}
    told = refusals(
        "nvidia_driver",
        ["check"],
        hosts,
        facts={**ROCKY, "distribution_major_version": "9", "kernel": "5.14.0-427.el9.x86_64"},
        extra={"__nvidia_driver_look": look},
        environment={"PATH": "{{ path }}"},
        check_mode=mode,
    )
    words = "{}: DKMS, which builds the driver's kernel modules, is in EPEL on this distribution, which has to be enabled before. "
    for name, (*_given, refused) in DKMS.items():
        assert bool(told[name]) == refused, told[name]
        assert told[name].startswith(words.format(name)) or not refused, told[name]


#: The driver that a repository has brought where nobody had named one, and what is said of it with a V100.
COME = {"580.95.05": "", "610.43.02": "Driver 610.43.02 does not serve Tesla V100-SXM2-16GB any more; use branch 580"}


@pytest.mark.parametrize("loaded", [True, False])
@pytest.mark.parametrize("version", COME)
def test_a_driver_that_nobody_has_named_is_judged_when_it_is_there(refusals, workshop, version, loaded):
    text = (ROOT / "tests/fakes/nvml/profiles/v100-16g.profile").read_text().replace("570.124.06", version)
    if not loaded:
        text = text.replace("[gpu]", "init_result = driver_not_loaded\n\n[gpu]", 1)
    library = workshop.library_of(f"v100-{version}-{loaded}", text)
    told = refusals(
        "nvidia_driver",
        ["judge"],
        {"here": {"nvidia_driver_kernel_modules": "proprietary"}},
        facts=DEBIAN,
        module_defaults={"gpu.kubernetes.nvml_facts": {"library": library, "pci_path": workshop.pci("v100-16g")}},
    )
    assert bool(told["here"]) == bool(COME[version]), told["here"]
    assert COME[version] in told["here"]


#: The checksum that an installer of version 2 is given with where version 1 is installed, and what is said of it.
SUMS = {
    "0": "nvidia_driver_runfile is the installer of driver 570.1, which is there, and nvidia_driver_version asks for",
    "1": "",
}


def test_the_installer_of_another_version_is_refused_before_a_node_is_emptied(refusals, tmp_path):
    (tmp_path / "state").mkdir()
    known = {"version": "570.1", "options": [], "url": "https://x.example/570.1.run", "checksum": "sha256:" + "0" * 64}
    (tmp_path / "state" / "driver-runfile.json").write_text(json.dumps(known))
    asked = {
        "nvidia_driver_method": "runfile",
        "nvidia_driver_version": "580.95.05",
        "nvidia_driver_require_gpu": False,
    }
    hosts = {
        f"sum-{digit}": {**asked, "nvidia_driver_runfile": {"url": known["url"], "checksum": "sha256:" + digit * 64}}
        for digit in SUMS
    }
    told = refusals(
        "nvidia_driver", ["plan"], hosts, facts=DEBIAN, variables={"nvidia_driver_state_dir": str(tmp_path)}
    )
    for digit, words in SUMS.items():
        assert bool(told[f"sum-{digit}"]) == bool(words), told
        assert words in told[f"sum-{digit}"]


#: The same of hosts that have no driver, and what is exported.
BROUGHT = {
    "nothing-there": (
        {"gpus": []},
        "nothing-there: nvidia_driver_method is preinstalled, and there is no NVIDIA driver and no NVIDIA GPU; take",
    ),
    "nothing-needed": ({"gpus": [], "nvidia_driver_require_gpu": False}, "False"),
    "driver-missing": (
        {"gpus": [{"name": "Tesla T4", "lost": False}]},
        "driver-missing: nvidia_driver_method is preinstalled, and there is no NVIDIA driver; install it, or set",
    ),
    # That is left alone, whatever else is asked.
    "none": (
        {
            "gpus": [{"name": "Tesla T4", "lost": False}],
            "nvidia_driver_method": "none",
            "nvidia_driver_version": "580.95.05",
        },
        "False",
    ),
    "none-and-no-gpu": ({"gpus": [], "nvidia_driver_method": "none"}, "False"),
}


def test_a_driver_that_somebody_else_was_to_bring(refusals, tmp_path):
    asked_of = tmp_path / "asked"
    for name in ("apt-get", "apt-cache", "apt-mark", "dpkg", "dpkg-query", "modprobe", "rmmod", "systemctl"):
        # By that the facts look whether there is a module.
        (tmp_path / name).write_text(f'#!/bin/sh\ntest "$1" != --show-depends || exit 1\necho "$0 $*" >> {asked_of}\n')
        (tmp_path / name).chmod(0o755)
    state = {"nvidia_driver_state_dir": str(tmp_path / "state")}
    hosts = {
        name: {"nvidia_driver_method": "preinstalled", **state, **asked} for name, (asked, _words) in BROUGHT.items()
    }
    driver = {"library_version": None, "installed_module_version": None, "secure_boot": False}
    look = {"ansible_facts": {"nvml": {"gpus": "{{ gpus }}", "nvswitches": 0, "error": None, "driver": driver}}}
    told = refusals(
        "nvidia_driver",
        ["main"],
        hosts,
        fact="nvidia_driver_reboot_required",
        facts=DEBIAN,
        extra={"__nvidia_driver_look": look},
        environment={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )
    assert sorted(told) == sorted(BROUGHT)
    for name, (_asked, words) in BROUGHT.items():
        assert str(told[name]).startswith(words), told[name]
    assert not asked_of.exists()
    assert not (tmp_path / "state").exists()


#: What is asked of a host whose driver somebody else installed, and what is said or exported: it is never changed.
FOREIGN = {
    "preinstalled": ({"nvidia_driver_method": "preinstalled"}, "kept"),
    "none": ({"nvidia_driver_method": "none", "nvidia_driver_version": "580.1.0"}, "kept"),
    "package": ({"nvidia_driver_method": "package"}, "kept"),
    "runfile": ({"nvidia_driver_method": "runfile", "nvidia_driver_version": "570.124.06"}, "kept"),
    "branch": ({"nvidia_driver_method": "package", "nvidia_driver_branch": "570"}, "kept"),
    "absent": ({"nvidia_driver_state": "absent"}, "kept"),
    "newer": (
        {"nvidia_driver_method": "package", "nvidia_driver_version": "580.1.0"},
        "newer: the driver 570.124.06 was not installed by this role, and 580.1.0 is asked for; remove the driver that is there, or",
    ),
    "no-prefix": (
        {"nvidia_driver_method": "preinstalled", "nvidia_driver_version": "570.124.0"},
        "no-prefix: the driver 570.124.06 was not installed by this role, and 570.124.0 is asked for",
    ),
}


@pytest.mark.parametrize("mode", [False, True], ids=["run", "check"])
def test_a_driver_of_somebody_else_stays(refusals, workshop, tmp_path, mode):
    program = tmp_path / "changes"
    bins = tmp_path / "bin"
    bins.mkdir()
    for name in ("apt-get", "apt-mark", "dpkg", "systemctl", "modprobe", "rmmod", "nvidia-installer"):
        (bins / name).write_text(f'#!/bin/sh\ntest "$1" != --show-depends || exit 1\necho "$0 $*" >> {program}\n')
        (bins / name).chmod(0o755)
    state = tmp_path / "state"
    hosts = {name: {"nvidia_driver_state_dir": str(state), **asked} for name, (asked, _words) in FOREIGN.items()}
    told = refusals(
        "nvidia_driver",
        ["main"],
        hosts,
        fact="'kept' if not nvidia_driver_reboot_required else 'reboot'",
        facts=DEBIAN,
        module_defaults=driver(workshop),
        environment={"PATH": f"{bins}:{os.environ['PATH']}"},
        check_mode=mode,
    )
    assert sorted(told) == sorted(FOREIGN)
    for name, (_asked, words) in FOREIGN.items():
        assert told[name].startswith(words), told[name]
    assert not program.exists()
    assert not state.exists()


NO_WAY_BACK = (
    "{}: the driver that the host has could not be brought back if the other one failed: apt has no version 535.1.0 of nvidia-smi, "
    "libnvidia-ml1, libcuda1 and nvidia-kernel-dkms: ask for one that its repositories have, or add a repository that has it. "
    "Set nvidia_driver_upgrade_rollback to false to go on without a way back."
)
#: What is asked of a host, what is noted there of an upgrade, and what is planned or said: its repository has the other driver alone.
WAYS_BACK = {
    "refused": ({}, "", NO_WAY_BACK),
    "given-up": ({"nvidia_driver_upgrade_rollback": False}, "", "due"),
    # It has to be brought to an end.
    "begun": ({}, '{"from": "535.1.0", "phase": "swapping"}', "due"),
}
PROGRAMS = {
    "apt-cache": 'shift; for name; do echo "$name | 580.1.0-1 | http://deb.example.com bookworm/non-free amd64 Packages"; done',
    "apt-get": "",
    "apt-mark": "",
    "dpkg-query": "exit 1",
}


def test_an_upgrade_needs_a_way_back(refusals, tmp_path):
    for program, text in PROGRAMS.items():
        (tmp_path / program).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / program).chmod(0o755)
    hosts = {}
    for name, (asked, noted, _words) in WAYS_BACK.items():
        state = tmp_path / name / "state"
        state.mkdir(parents=True)
        # The role has installed the driver that is there.
        (state / "packages-nvidia-driver.json").write_text("{}")
        if noted:
            (state / "driver-upgrade.json").write_text(noted)
        hosts[name] = {"nvidia_driver_state_dir": str(state.parent), **asked}
    common = {
        "nvidia_driver_version": "580.1.0",
        "nvidia_driver_manage_repository": False,
        "nvidia_driver_require_gpu": False,
    }
    driver = {"library_version": "535.1.0", "installed_module_version": "535.1.0", "secure_boot": False}
    look = {"ansible_facts": {"nvml": {"gpus": [], "nvswitches": 0, "error": None, "driver": driver}}}
    told = refusals(
        "nvidia_driver_upgrade",
        ["plan"],
        hosts,
        variables=common,
        fact="nvidia_driver_upgrade_result.state",
        facts=DEBIAN,
        extra={"__nvidia_driver_look": look},
        environment={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )
    assert told == {name: words.format(name) for name, (*_given, words) in WAYS_BACK.items()}


def test_a_check_says_that_it_cannot_take_away_what_keeps_apt_from_reading(refusals, tmp_path):
    (tmp_path / "apt-get").write_text("#!/bin/sh\necho 'E: Conflicting values set' >&2\nexit 100\n")
    (tmp_path / "apt-get").chmod(0o755)
    source = tmp_path / "ours.sources"
    source.touch()
    told = refusals(
        "vendor_packages",
        ["repository_host"],
        {"check": {}},
        variables={"vendor_packages_manager": "apt", "vendor_packages_repository": {"suite": "bookworm"}},
        facts=DEBIAN,
        extra={"__vendor_packages_sources_file": str(source)},
        environment={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        check_mode=True,
    )
    assert told["check"].startswith("check: apt cannot read its sources (E: Conflicting values set). ")
    assert f"{source}, which an earlier run wrote, may be why;" in told["check"]
    assert source.exists()
