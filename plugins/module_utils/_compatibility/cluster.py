# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of Kubernetes with containerd, of the device plugin, and of the cgroup drivers."""

from __future__ import annotations

from typing import Iterator

from .situation import STOP, WARN, Finding, Situation, join_choices
from .tables import Row, Tables, contains_version
from .versions import Version, format_version, parse_driver, parse_package, parse_version


def check_containerd(situation: Situation, tables: Tables) -> Iterator[Finding]:
    """Check whether containerd recommends its version for the Kubernetes release; WARN if not, and for a release that is in no table.

    Nothing is found for a series of containerd that is newer than those in the table, and for a Kubernetes release that is older.
    """
    if situation.containerd is None or situation.kubernetes is None:
        return
    version = parse_package(situation.containerd, "containerd version")
    release = parse_package(situation.kubernetes, "Kubernetes version")[:2]
    rows = sorted(tables.get_rows("kubernetes", "containerd"), key=lambda row: parse_version(row["kubernetes"]))
    row = next((row for row in reversed(rows) if parse_version(row["kubernetes"]) <= release), None)
    if row is None:
        return
    message = _explain_containerd(situation, version, row)
    newest = parse_version(rows[-1]["kubernetes"])
    if message is not None:
        yield Finding(WARN, "containerd", message, str(row["source"]))
    elif release > newest:
        message = (
            f"Nothing is known of containerd {situation.containerd} with Kubernetes {situation.kubernetes} "
            f"(known are releases up to {format_version(newest)}); look into the releases that containerd recommends."
        )
        yield Finding(WARN, "containerd", message)


def _explain_containerd(situation: Situation, version: Version, row: Row) -> str | None:
    """Why containerd does not recommend a version for the release of a row; None if it does, or if the series is newer than the row."""
    firsts = {parse_version(text)[:2]: parse_version(text) for text in row["containerd"]}
    first = firsts.get(version[:2])
    if first is None and version[:2] < max(firsts):
        ways = [format_version(each) for each in sorted(firsts.values())]
        return (
            f"containerd {situation.containerd} is of a series that containerd does not recommend for Kubernetes {row['kubernetes']} "
            f"and newer; install {join_choices(ways)}, or a newer version of these series."
        )
    if first is not None and version < first:
        return (
            f"containerd {situation.containerd} is older than the first version of its series that containerd recommends for "
            f"Kubernetes {row['kubernetes']}; install {format_version(first)} or newer."
        )
    return None


def check_plugin(situation: Situation, tables: Tables) -> Iterator[Finding]:
    """Check whether the host and the cluster have what the device plugin requires; WARN if not."""
    if situation.plugin is None:
        return
    version = parse_package(situation.plugin.lstrip("v"), "version of the device plugin")
    architectures = {gpu.architecture for gpu in situation.gpus}
    for row in tables.get_rows("kubernetes", "plugin"):
        architecture = row.get("architecture")
        if not contains_version(row, version) or (architecture is not None and architecture not in architectures):
            continue
        if row.get("plugin") is not None:
            message = f"NVIDIA's device plugin {situation.plugin} does not know GPUs of the architecture {architecture}; deploy {row['plugin']} or newer."
            yield Finding(WARN, "device_plugin", message, str(row["source"]))
        for what, name, found in _list_requirements(situation):
            if row.get(name) is not None and found is not None and found < parse_version(row[name]):
                message = f"NVIDIA's device plugin {situation.plugin} requires {what} {row[name]} or newer, and the host has an older one; install that."
                yield Finding(WARN, "device_plugin", message, str(row["source"]))


def _list_requirements(situation: Situation) -> Iterator[tuple[str, str, Version | None]]:
    """What a device plugin may require: its title, its key in a row, and the host's version."""
    yield "driver", "driver", None if situation.driver is None else parse_driver(situation.driver)
    for what, name, found in (
        ("NVIDIA's container toolkit", "toolkit", situation.toolkit),
        ("Kubernetes", "kubernetes", situation.kubernetes),
    ):
        yield what, name, None if found is None or found.endswith("*") else parse_package(found, f"version of {what}")


def check_cgroup_driver(situation: Situation, _tables: Tables) -> Iterator[Finding]:
    """Check whether kubelet and runtime use the same cgroup driver; STOP if not, because then pods do not start or lose their limits."""
    own, other = situation.kubelet_cgroup_driver, situation.runtime_cgroup_driver
    if own is not None and other is not None and own != other:
        message = (
            f"The kubelet's cgroup driver is {own}, and the NVIDIA runtime would use {other}; set containerd_nvidia_systemd_cgroup to "
            f"{str(own == 'systemd').lower()}."
        )
        yield Finding(
            STOP,
            "cgroup_driver",
            message,
            "https://kubernetes.io/docs/setup/production-environment/container-runtimes/",
        )
