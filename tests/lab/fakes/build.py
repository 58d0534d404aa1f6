# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compile the fakes and pack them as docker-archives."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from ..binaries import GO_BUILD, GO_COMPILER
from ..shell import LabError, run
from .archive import Content, Directory, Link, docker_archive

__all__ = [
    "AMD_DEVICE_PLUGIN",
    "AMD_NODE_LABELLER",
    "CLINFO",
    "CUDA_SAMPLE",
    "DEVICE_PLUGIN",
    "GPUSHARE_DEVICE_PLUGIN",
    "GPUSHARE_EXTENDER",
    "INTEL_DEVICE_PLUGIN",
    "LABEL",
    "NANO_GPU_AGENT",
    "NANO_GPU_EXTENDER",
    "ROCMINFO",
    "build",
    "digest",
    "pause",
]

DEVICE_PLUGIN = "lab.local/fake/k8s-device-plugin:v0.20.0"
# Further programs in the image of the device plugin.
DEVICE_PLUGIN_PROGRAMS = ("config-manager", "mps-control-daemon")
CUDA_SAMPLE = "lab.local/fake/cuda-sample:vectoradd"
# Tags name the source of the original; see README.md.
GPUSHARE_EXTENDER = "lab.local/fake/gpushare-extender:c0b6141"
GPUSHARE_DEVICE_PLUGIN = "lab.local/fake/gpushare-device-plugin:v2-1.11-aff8a23"
NANO_GPU_EXTENDER = "lab.local/fake/nano-gpu-scheduler:0.3.0"
NANO_GPU_AGENT = "lab.local/fake/nano-gpu-agent:0.3.0"
AMD_DEVICE_PLUGIN = "lab.local/fake/rocm/k8s-device-plugin:1.31.0.10"
AMD_NODE_LABELLER = "lab.local/fake/rocm/k8s-device-plugin:labeller-1.31.0.10"
INTEL_DEVICE_PLUGIN = "lab.local/fake/intel/intel-gpu-plugin:0.36.0"
ROCMINFO = "lab.local/fake/rocm/dev-ubuntu-24.04:6.4"
CLINFO = "lab.local/fake/intel/intel-opencl-icd:0.36.0"
LABEL = "gpu-kubernetes.fake"

_SOURCE = Path(__file__).parent
# Folder of a Go program -> whether it needs C, for NVML.
_GO_PROGRAMS = {
    "amd-gpu-plugin": False,
    "amd-node-labeller": False,
    "device-plugin": True,
    "gpu-check": False,
    "gpushare-device-plugin": True,
    "gpushare-extender": False,
    "intel-gpu-plugin": False,
    "nano-gpu-agent": False,
    "nano-gpu-scheduler": False,
}
_PROGRAMS = (*_GO_PROGRAMS, "nvml-check", "pause", "vectorAdd")
_CC = ("gcc", "-std=gnu11", "-O2", "-s", "-Wall", "-Wextra", "-Werror")
# libnvidia-ml.so.1 of a real driver needs these; since glibc 2.34 most of them are empty.
_GLIBC = ("libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1")


def build(out_dir: Path, cache: Path, busybox: Path) -> dict[str, Path]:
    """Image name -> docker-archive in ``out_dir``, of all fakes except the pause image. ``busybox`` is a static program.

    Programs are compiled once for each digest of their sources, below ``cache``. Raises LabError with the output of the
    compiler, and OSError if a folder cannot be written.
    """
    programs = _ensure_compiled(cache)
    libraries = _collect_system_files(programs / "device-plugin")
    return {
        DEVICE_PLUGIN: _pack_plugin(
            out_dir,
            DEVICE_PLUGIN,
            "nvidia-device-plugin",
            programs / "device-plugin",
            # As in the original's image; the program looks at the name by which it was started.
            {**libraries, **{f"/usr/bin/{name}": Link("nvidia-device-plugin") for name in DEVICE_PLUGIN_PROGRAMS}},
        ),
        GPUSHARE_DEVICE_PLUGIN: _pack_plugin(
            out_dir, GPUSHARE_DEVICE_PLUGIN, "gpushare-device-plugin-v2", programs / "gpushare-device-plugin", libraries
        ),
        GPUSHARE_EXTENDER: _pack_static(
            out_dir, GPUSHARE_EXTENDER, "gpushare-schd-extender", programs / "gpushare-extender"
        ),
        NANO_GPU_EXTENDER: _pack_static(
            out_dir, NANO_GPU_EXTENDER, "nano-gpu-scheduler", programs / "nano-gpu-scheduler"
        ),
        NANO_GPU_AGENT: _pack_static(out_dir, NANO_GPU_AGENT, "nano-gpu-agent", programs / "nano-gpu-agent"),
        # As in the originals' images: the programs are in /root, and there is a shell.
        **{
            name: docker_archive(
                _archive_path(out_dir, name),
                name=name,
                files={
                    f"/root/{command}": program,
                    "/bin/busybox": busybox,
                    **{f"/bin/{applet}": Link("busybox") for applet in ("sh", "sleep")},
                },
                entrypoint=[f"/root/{command}"],
                labels={LABEL: "true"},
            )
            for name, command, program in (
                (AMD_DEVICE_PLUGIN, "k8s-device-plugin", programs / "amd-gpu-plugin"),
                (AMD_NODE_LABELLER, "k8s-node-labeller", programs / "amd-node-labeller"),
            )
        },
        INTEL_DEVICE_PLUGIN: _pack_static(
            out_dir, INTEL_DEVICE_PLUGIN, "intel_gpu_device_plugin", programs / "intel-gpu-plugin"
        ),
        ROCMINFO: _pack_static(out_dir, ROCMINFO, "rocminfo", programs / "gpu-check"),
        CLINFO: _pack_static(out_dir, CLINFO, "clinfo", programs / "gpu-check"),
        CUDA_SAMPLE: docker_archive(
            out_dir / "cuda-sample.tar",
            name=CUDA_SAMPLE,
            files={
                **libraries,
                "/cuda-samples/vectorAdd": programs / "vectorAdd",
                "/cuda-samples/nvml-check": programs / "nvml-check",
            },
            entrypoint=["/cuda-samples/vectorAdd"],
            # As in CUDA's images, with the same risk: if nvidia is the default runtime, a pod that requests no GPU
            # has all of them.
            env={"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "compute,utility"},
            labels={LABEL: "true"},
        ),
    }


def _archive_path(out_dir: Path, name: str) -> Path:
    """The path of the archive of an image."""
    return out_dir / f"{name.partition('/fake/')[2].replace('/', '-').replace(':', '-')}.tar"


def _pack_static(out_dir: Path, name: str, command: str, program: Path) -> Path:
    """The image of a program that needs nothing else, under the original's command."""
    return docker_archive(
        _archive_path(out_dir, name),
        name=name,
        files={f"/usr/bin/{command}": program},
        entrypoint=[command],
        labels={LABEL: "true"},
    )


def _pack_plugin(out_dir: Path, name: str, command: str, program: Path, others: dict[str, Content]) -> Path:
    """The image of a device plugin that uses NVML, under the original's command, with OTHERS, its libraries among them."""
    return docker_archive(
        _archive_path(out_dir, name),
        name=name,
        files={**others, f"/usr/bin/{command}": program, "/var/lib/kubelet/device-plugins": Directory()},
        entrypoint=[command],
        # As in the originals: under the nvidia runtime a plugin has every GPU without a request.
        env={"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "utility"},
        labels={LABEL: "true"},
    )


def pause(path: Path, *, name: str, cache: Path) -> Path:
    """Write the pod sandbox's image to ``path`` under ``name`` (the one that kubeadm lists); errors as in build."""
    program = _ensure_compiled(cache) / "pause"
    return docker_archive(path, name=name, files={"/pause": program}, entrypoint=["/pause"], labels={LABEL: "true"})


def _list_sources() -> list[Path]:
    """The sources of the programs, without tests."""
    found = [path for path in _SOURCE.rglob("*") if path.suffix in {".c", ".go", ".h", ".mod", ".sum"}]
    return sorted(path for path in found if not path.name.endswith("_test.go"))


def digest() -> str:
    """A digest of the sources, the compilers and their flags."""
    digest = hashlib.sha256("\n".join([*_CC, *GO_BUILD, run(["go", "version"]), run(["gcc", "--version"])]).encode())
    for path in _list_sources():
        digest.update(f"\n{path.relative_to(_SOURCE)}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def _ensure_compiled(cache: Path) -> Path:
    """Folder with the programs, which is created atomically."""
    target = cache / f"fakes-{digest()}"
    if all((target / program).is_file() for program in _PROGRAMS):
        return target
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fakes-", dir=cache) as scratch:
        folder = Path(scratch, "programs")
        folder.mkdir()
        _compile(folder)
        shutil.rmtree(target, ignore_errors=True)
        os.replace(folder, target)
    return target


def _compile(target: Path) -> None:
    binding = _SOURCE / "internal" / "nvml" / "binding.c"
    sample = _SOURCE / "cuda-sample"
    run([*_CC, "-static", "-o", target / "pause", _SOURCE / "pause" / "pause.c"])
    run([*_CC, "-static", "-o", target / "vectorAdd", sample / "vectoradd.c"])
    run([*_CC, "-o", target / "nvml-check", sample / "nvml-check.c", binding, "-ldl"])
    for program, needs_c in _GO_PROGRAMS.items():
        run(
            [*GO_BUILD, "-o", target / program, f"./{program}"],
            cwd=_SOURCE,
            env={**os.environ, **GO_COMPILER, "CGO_ENABLED": str(int(needs_c)), "GOWORK": "off"},
        )


def _collect_system_files(program: Path) -> dict[str, Content]:
    """The part of a Debian system that PROGRAM needs to start and to find a library that the runtime mounts.

    nvidia-cdi-hook runs the node's ldconfig with this image as its root; by /etc/debian_version it finds the folders
    of the image's loader. The image's ldconfig is for users in the container.
    """
    files: dict[str, Content] = {f"/{name}": Link(f"usr/{name}") for name in ("bin", "lib", "lib64", "sbin")}
    files |= {f"/{name}": Directory(0o1777 if name == "tmp" else 0o755) for name in ("dev", "proc", "sys", "tmp")}
    found = [Path(word) for word in run(["ldd", program]).split() if word.startswith("/")]
    folder = next((path.parent for path in found if path.name == "libc.so.6"), None)
    if folder is None:
        raise LabError(f"{program} is not linked against glibc, so its image cannot be made; build it on Debian")
    for library in [*found, *(folder / name for name in _GLIBC)]:
        files[_usr_path(library)] = library
    for name in ("/etc/debian_version", "/etc/os-release", "/etc/ld.so.conf", "/sbin/ldconfig"):
        files[_usr_path(Path(name))] = Path(name)
    files["/etc/ld.so.conf.d/multiarch.conf"] = f"{_usr_path(folder)}\n".encode()
    return files


def _usr_path(path: Path) -> str:
    """PATH below /usr, as on systems where /lib, /lib64 and /sbin are links."""
    return f"/usr{path}" if path.parts[1] in {"lib", "lib64", "sbin"} else str(path)
