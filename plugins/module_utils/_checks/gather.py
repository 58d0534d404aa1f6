# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Observes a node, and changes nothing.

Each part is read in a process of its own with a time limit, so that a driver, a device or a file that hangs costs that limit and no more.
"""

from __future__ import annotations

import glob
import os
import re
import time
from functools import partial
from typing import Any, Callable, Mapping, Sequence

from .._gpus import devices as other_devices
from .._gpus import sysfs
from .._kube_error import shorten
from .._nvml import collect, driver, isolation, library, pci
from .._probe import clients, host, kubelet
from .._toml import TomlError, loads
from .gather_services import read_drift, read_kubelet, read_runtime
from .kernel import LOG_WORDS
from .sources import MAX_FILES, MAX_LINES, MAX_PODS, MAX_PROCESSES, Options, find_program, run_program

SECONDS_BETWEEN_SAMPLES = 1.0
TOPICS = ("hardware", "health", "clocks", "pcie", "topology", "driver")
# No check reads these facts, and they would be most of what a fleet of hosts returns.
UNREAD = ("peers", "cpu_affinity", "gpu_instances", "mig_devices", "bar1", "vgpu_license")
#: Where the driver's files are: on the host, or in the driver container of NVIDIA's GPU Operator.
DRIVER_ROOTS = ("/", "/run/nvidia/driver")
FABRIC_MANAGER = "nvidia-fabricmanager"
CDI_FOLDERS = ("etc/cdi", "var/run/cdi")
_LIBRARY_VERSION = re.compile(r"\.so\.(\d+\.\d+(?:\.\d+)*)$")
_HOST_PATH = re.compile(r"""["']?\b(?:hostPath|path)["']?\s*:\s*["']?(/[^"',\s}]+)""")


def gather(options: Options) -> dict[str, Any]:
    """Return the parts of the observation by name, and with ``errors`` the reason of each part that could not be read."""
    facts = collect.gather_facts(options.nvml._replace(timeout=options.timeout, subset=TOPICS)).as_dict()
    facts["gpus"] = [_drop_unread(gpu) for gpu in facts["gpus"]]
    parts: dict[str, Any] = {"nvml": facts}
    errors: dict[str, str] = {}
    for name, read in PARTS.items():
        if name == "container_cli" and facts["error"]:
            errors[name] = "not run, because the driver reports an error"
            continue
        try:
            parts[name] = isolation.call(partial(read, options), options.timeout)
            if parts[name] is None:
                errors[name] = "it was not found, or cannot be read by this user"
        except isolation.Hung:
            errors[name] = f"it did not answer within {options.timeout:g} seconds"
        except (isolation.Crashed, isolation.Failed) as error:
            errors[name] = shorten(error)
    return {**parts, "errors": errors}


def _drop_unread(gpu: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of a GPU without UNREAD, and of its NVLinks whether they are active."""
    kept = {name: value for name, value in gpu.items() if name not in UNREAD}
    links = kept.get("nvlinks")
    return (
        kept
        if links is None
        else {**kept, "nvlinks": [{"link": each["link"], "active": each["active"]} for each in links]}
    )


# -- kernel


def read_kernel(_options: Options) -> dict[str, Any]:
    """The release of the running kernel, and the host's own name."""
    return {"release": os.uname().release, "nodename": os.uname().nodename}


def read_bus(options: Options) -> list[dict[str, Any]]:
    """The NVIDIA GPUs on the PCI bus: driver, whether they answer, lanes, and whether the firmware gave no address to their memory."""
    path = options.nvml.pci_path
    return [_read_device(path, gpu.pci_address or "") for gpu in pci.read_gpus(path)]


def _read_device(path: str, address: str) -> dict[str, Any]:
    folder = os.path.join(path, address)
    resources = (driver.read_text(folder, "resource") or "").splitlines()
    return {
        "pci_address": address,
        "driver": _read_link_name(os.path.join(folder, "driver")),
        "alive": _is_alive(os.path.join(folder, "config")),
        "bar1_missing": len(resources) > 1 and _is_unmapped(resources[1]) and not _is_unmapped(resources[0]),
        "width": _to_int(driver.read_text(folder, "current_link_width")),
        "width_max": _to_int(driver.read_text(folder, "max_link_width")),
    }


def _read_link_name(path: str) -> str:
    try:
        return os.path.basename(os.readlink(path))
    except OSError:
        return ""


def _is_alive(path: str) -> bool | None:
    """Whether a device answers: the configuration space of one that fell off the bus reads as ones."""
    try:
        with open(path, "rb") as file:
            first = file.read(4)
    except OSError:
        return None
    return first != b"\xff\xff\xff\xff" if len(first) == 4 else None


def _is_unmapped(line: str) -> bool:
    """Whether a line of ``resource`` (start, end, flags) has flags and no address."""
    words = line.split()
    return len(words) == 3 and int(words[0], 16) == 0 and int(words[2], 16) != 0


def _to_int(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 6 else None


def read_log(options: Options) -> dict[str, Any] | None:
    """The Xids of the kernel log, and the last lines with the words that checks know; None if it cannot be read."""
    text = driver.read_kernel_log(options.nvml.kernel_log)
    if text is None:
        return None
    found: dict[str, list[str]] = {name: [] for name in LOG_WORDS}
    for record in text.splitlines():
        message = record.partition(";")[2].replace("\\x0a", " ")
        lowered = message.lower()
        for name, words in LOG_WORDS.items():
            if any(word in lowered for word in words):
                found[name] = [*found[name][1 - MAX_LINES :], shorten(message)]
    return {"xids": list(driver.parse_xids(text))[-MAX_PODS:], "lines": found}


def read_blocked(options: Options) -> list[dict[str, Any]]:
    """The processes that wait in NVIDIA's driver and cannot be interrupted, in two samples."""
    first = _sample_blocked(options.root)
    if not first:
        return []
    time.sleep(SECONDS_BETWEEN_SAMPLES)
    second = _sample_blocked(options.root)
    return [first[pid] for pid in sorted(first) if second.get(pid) == first[pid]][:MAX_PROCESSES]


def _sample_blocked(root: str) -> dict[str, dict[str, Any]]:
    found = {}
    for folder in glob.glob(os.path.join(glob.escape(root), "proc/[0-9]*")):
        pid = os.path.basename(folder)
        # pid (command, which can contain anything) state ...
        head, _bracket, rest = (driver.read_text(folder, "stat") or "").rpartition(")")
        if rest.split()[:1] != ["D"]:
            continue
        stack = driver.read_text(folder, "stack") or ""
        if "[nvidia" in stack:
            found[pid] = {"pid": pid, "command": shorten(head.partition("(")[2]), "stack": shorten(stack)}
    return found


def read_devices(options: Options) -> dict[str, Any]:
    """The device files of the driver with their major numbers, and those of the kernel."""
    majors = {}
    for line in (driver.read_text(options.root, "proc/devices") or "").splitlines():
        words = line.split()
        if len(words) == 2 and words[0].isdigit() and words[1].startswith("nvidia"):
            majors[words[1]] = int(words[0])
    files = []
    for path in sorted(glob.glob(os.path.join(glob.escape(options.root), "dev/nvidia*")))[:200]:
        status = os.stat(path)
        files.append({"name": os.path.basename(path), "major": os.major(status.st_rdev)})
    return {"majors": majors, "files": files}


# -- driver, library, toolkit


def read_fabric_manager(options: Options) -> dict[str, Any]:
    """Whether the fabric manager runs, in a container too, and the state of its unit; nothing on a machine without NVSwitches."""
    if not pci.count_switches(options.nvml.pci_path):
        return {}
    unit = clients.parse_show(run_program(clients.build_show_command(FABRIC_MANAGER), options)[1])
    names = glob.glob(os.path.join(glob.escape(options.root), "proc/[0-9]*/comm"))
    # The kernel keeps 15 characters of a name.
    running = any((driver.read_text(*os.path.split(name)) or "").strip() == "nv-fabricmanage" for name in names)
    return {"running": running or unit.get("ActiveState") == "active", "unit": unit.get("ActiveState") or "unknown"}


def read_libraries(options: Options) -> dict[str, Any]:
    """The versions of libnvidia-ml in the folders of libraries."""
    versions = set()
    for folder in library.FOLDERS:
        # With a driver in a container, its root also has the library.
        base = os.path.join(options.root, folder.lstrip("/"))
        names = glob.glob(os.path.join(glob.escape(base), "libnvidia-ml.so.[0-9]*.[0-9]*"))
        linked = os.path.realpath(os.path.join(base, library.SONAME))
        for path in [*names, linked]:
            matched = _LIBRARY_VERSION.search(path)
            if matched and os.path.exists(path):
                versions.add(matched.group(1))
    return {"versions": sorted(versions)}


def read_packages(options: Options) -> dict[str, Any] | None:
    """The installed packages of the driver with versions and holds, and whether automatic upgrades are on; None without a known manager."""
    manager = host.find_package_manager(find_program)
    if manager == "apt":
        command = [
            "dpkg-query",
            "--show",
            "--showformat",
            "${db:Status-Status} ${db:Status-Want} ${Package} ${Version}\\n",
            "*nvidia*",
        ]
        rows = [line.split() for line in run_program(command, options)[1].splitlines()]
        found = {
            row[2]: {"version": row[3], "held": row[1] == "hold"}
            for row in rows
            if len(row) == 4 and row[0] == "installed"
        }
    elif manager in ("dnf", "zypper"):
        command = ["rpm", "--query", "--all", "--queryformat", "%{NAME} %{VERSION}\\n", "*nvidia*"]
        rows = [line.split() for line in run_program(command, options)[1].splitlines()]
        found = {row[0]: {"version": row[1], "held": None} for row in rows if len(row) == 2}
    else:
        return None
    switches = "".join(
        driver.read_text(folder, name) or ""
        for folder in [os.path.join(options.root, "etc/apt/apt.conf.d")]
        for name in kubelet.read_path(folder) or ()
    )
    unattended = re.search(r'(?m)^\s*APT::Periodic::Unattended-Upgrade\s+"[1-9]', switches)
    wanted = {name: each for name, each in found.items() if _is_driver_package(name)}
    return {"unattended": bool(unattended), "driver": dict(sorted(wanted.items())[:MAX_PODS])}


def _is_driver_package(name: str) -> bool:
    # The last two do not belong to one version of the driver.
    return "container" not in name and not name.startswith(
        ("linux-", "golang-", "nvidia-persistenced", "nvidia-modprobe")
    )


def read_toolkit(options: Options) -> dict[str, Any]:
    """NVIDIA's container runtime and nvidia-ctk, and what the toolkit's configuration says of the driver's root and of its mode."""

    def attempt(command: Sequence[str]) -> tuple[int, str]:
        return run_program(command, options)[:2]

    settings = _read_toolkit_settings(options)
    root = clients.get_table(settings, "nvidia-container-cli").get("root")
    mode = clients.get_table(settings, "nvidia-container-runtime").get("mode")
    return {
        "runtime": host.describe_program(find_program("nvidia-container-runtime"), attempt),
        "ctk": host.describe_program(find_program("nvidia-ctk"), attempt),
        "root": {
            "path": str(root) if root and root != "/" else None,
            "has_library": _has_library(str(root or "/")),
        },
        "mode": str(mode or "auto"),
        "char_links": bool(glob.glob(os.path.join(glob.escape(options.root), "dev/char/195:*"))),
    }


def _read_toolkit_settings(options: Options) -> Mapping[str, Any]:
    text = driver.read_text(options.root, "etc/nvidia-container-runtime/config.toml") or ""
    try:
        return loads(text + "\n")
    except (TomlError, RecursionError):
        return {}


def _has_library(root: str, folders: Sequence[str] = library.FOLDERS) -> bool:
    return any(os.path.exists(os.path.join(root, folder.lstrip("/"), library.SONAME)) for folder in folders)


def _find_driver_root(options: Options) -> str | None:
    """The driver's root by the toolkit's configuration, else the first of DRIVER_ROOTS that has the library in a usual folder."""
    root = clients.get_table(_read_toolkit_settings(options), "nvidia-container-cli").get("root")
    usual = [folder for folder in library.FOLDERS if folder.startswith("/usr/lib")]
    places = {each: os.path.join(options.root, each.lstrip("/")) for each in DRIVER_ROOTS}
    found = (place for place in places.values() if _has_library(place, usual))
    return str(root) if root and root != "/" else next(found, None)


def read_cdi(options: Options) -> list[dict[str, Any]]:
    """The CDI specifications of NVIDIA: files of the host that they name and that are missing, and versions of the driver in these names."""
    found = []
    for folder in CDI_FOLDERS:
        for path in sorted(glob.glob(os.path.join(glob.escape(options.root), folder, "*nvidia*")))[:MAX_FILES]:
            text = driver.read_text(options.root, os.path.relpath(path, options.root)) or ""
            paths = sorted(set(_HOST_PATH.findall(text)))
            matched = [
                _LIBRARY_VERSION.search(each) for each in paths if "/libnvidia-ml.so." in each or "/libcuda.so." in each
            ]
            places = [os.path.join(options.root, each.lstrip("/")) for each in paths]
            missing = [each for each, place in zip(paths, places) if not os.path.lexists(place) and "/dev/" not in each]
            found.append(
                {
                    "path": f"/{os.path.relpath(path, options.root)}",
                    "missing": [shorten(each) for each in missing[:MAX_LINES]],
                    "versions": sorted({each.group(1) for each in matched if each}),
                }
            )
    return found


def read_container_cli(options: Options) -> dict[str, Any] | None:
    """The error of ``nvidia-container-cli info``; None where it is not installed, or the driver's root is not known."""
    root = _find_driver_root(options)
    if not root or not find_program("nvidia-container-cli"):
        return None
    status, _output, errors = run_program(["nvidia-container-cli", f"--root={root}", "info"], options)
    return {"error": shorten(errors) or f"status {status}" if status else ""}


def read_other_vendors(options: Options) -> dict[str, Any]:
    """The GPUs of other vendors with their drivers, the vendors that the host serves, and the limit of inotify instances."""
    facts = other_devices.read(options.root, naming=options.naming, vendors=options.vendors)
    kept = ("vendor", "pci_address", "driver", "numa_node", "render", "partitions", "partition_style")
    return {
        "vendors": facts["vendors"],
        "devices": [{name: device[name] for name in kept} for device in facts["devices"][:MAX_FILES]],
        "drivers": facts["drivers"],
        "error": facts["error"],
        "inotify_instances": sysfs.read_number(options.root, "proc/sys/fs/inotify/max_user_instances"),
    }


PARTS: Mapping[str, Callable[[Options], Any]] = {
    "kernel": read_kernel,
    "pci": read_bus,
    "log": read_log,
    "blocked": read_blocked,
    "devices": read_devices,
    "fabric_manager": read_fabric_manager,
    "libraries": read_libraries,
    "packages": read_packages,
    "toolkit": read_toolkit,
    "cdi": read_cdi,
    "container_cli": read_container_cli,
    "runtime": read_runtime,
    "drift": read_drift,
    "kubelet": read_kubelet,
    "others": read_other_vendors,
}
