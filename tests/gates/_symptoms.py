# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guide on troubleshooting: the doctor's checks by what a user sees. The rows are here; words, cause and remedy are those of the registry."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ._common import ROOT

PAGE = ROOT / "docs" / "docsite" / "rst" / "guide_troubleshooting.rst"
DOCSITE = "ansible_collections.gpu.kubernetes.docsite"


class Symptom(NamedTuple):
    """What a user sees, where to look first, and the ids of the checks that find its cause, the most frequent one first."""

    title: str
    text: str
    commands: tuple[str, ...]
    checks: tuple[str, ...]


#: A remedy names a playbook like this.
PLAYBOOK = re.compile(r"(?<=the playbook )(\w+)")
_EVENTS = "$ kubectl describe pod POD"
_SHOW = "$ ansible-playbook gpu.kubernetes.show_gpu_allocation -i inventory.yml"
_NODE = "$ kubectl describe node NODE"
_PLUGIN = "$ kubectl get pods --all-namespaces --output wide --field-selector spec.nodeName=NODE"
_LOG = "# journalctl --dmesg --grep 'NVRM|nouveau|amdgpu|i915|xe'"

#: From the pod to the hardware, as a user meets them.
SYMPTOMS: tuple[Symptom, ...] = (
    Symptom(
        "A pod stays Pending",
        "The scheduler finds no node for the pod, or the namespace may not create it. The events name the reason of each node.",
        (_EVENTS, _SHOW),
        ("sc.free", "sc.taint", "sc.other", "sc.maintenance", "sc.quota", "sc.extender"),
    ),
    Symptom(
        "A pod fails as soon as it has a node",
        "The status is ``UnexpectedAdmissionError``, ``TopologyAffinityError`` or ``OutOfnvidia.com/gpu``. The kubelet or the device plugin has "
        "refused the pod.",
        (_EVENTS,),
        ("kl.checkpoint", "kl.topology", "pl.preferred"),
    ),
    Symptom(
        "A container does not start",
        "The pod has a node and stays in ``ContainerCreating``, ``CreateContainerError`` or ``RunContainerError``.",
        (_EVENTS, "# crictl info"),
        (
            "pod.runtime_class",
            "rt.handler",
            "rt.drift",
            "rt.restart_due",
            "rt.cgroup",
            "tk.binary",
            "tk.root",
            "tk.cdi",
            "tk.rpc",
            "lib.cuda",
        ),
    ),
    Symptom(
        "A pod runs and its program finds no GPU",
        "The container has started. ``nvidia-smi`` or CUDA fails in it, at once or after some time.",
        ("$ kubectl exec POD -- nvidia-smi", "$ ansible-playbook gpu.kubernetes.smoke_test_gpu_nodes -i inventory.yml"),
        ("pod.smoke", "pod.daemon_reload", "kernel.nodes", "hw.fabric"),
    ),
    Symptom(
        "A node has 0 allocatable GPUs",
        "``nvidia-smi`` works on the host, and ``Allocatable`` of the node has no GPU.",
        (_NODE, _PLUGIN),
        ("pl.daemonset", "pl.log", "kl.socket", "kernel.other_files", "kernel.inotify", "kernel.partitions"),
    ),
    Symptom(
        "A node has too few allocatable GPUs",
        "``Allocatable`` has some of the GPUs. One is broken or unhealthy, or the device plugin counts in another way.",
        (_NODE, "# nvidia-smi --list-gpus"),
        ("pl.count", "kl.unhealthy", "lib.serves"),
    ),
    Symptom(
        "GPUs are counted wrongly",
        "A GPU has two pods, or its memory is in use and no pod has requested it.",
        (_SHOW, "# nvidia-smi"),
        ("pl.twice", "pod.bypass"),
    ),
    Symptom(
        "A node is NotReady",
        "Nothing on the GPUs can be fixed from the cluster before the kubelet and the container runtime work.",
        (_NODE, "# journalctl --unit kubelet --unit containerd --since -10min"),
        ("kl.ready", "rt.answers"),
    ),
    Symptom(
        "The driver is not loaded",
        "``nvidia-smi`` is missing, or reports that it cannot communicate with the driver.",
        ("# nvidia-smi", "# modprobe nvidia", _LOG),
        (
            "kernel.module_built",
            "kernel.module_loaded",
            "kernel.secure_boot",
            "kernel.conflict",
            "lib.present",
            "kernel.other_driver",
        ),
    ),
    Symptom(
        "Versions of the driver do not match",
        "``nvidia-smi`` has worked before, and now reports ``Driver/library version mismatch``.",
        ("# nvidia-smi", "# cat /proc/driver/nvidia/version"),
        ("kernel.mismatch", "lib.held", "lib.twice", "lib.fm_version"),
    ),
    Symptom(
        "The driver finds no GPU",
        "``nvidia-smi`` reports ``No devices were found``, or ``lspci`` does not show the GPU.",
        ("# lspci -nn -d 10de:", _LOG),
        ("hw.pci_count", "kernel.flavour", "kernel.legacy", "kernel.probe_failed", "hw.bar"),
    ),
    Symptom(
        "nvidia-smi hangs or is slow",
        "A program that uses the GPU does not end, not even after ``kill -9``.",
        ("# timeout 30 nvidia-smi", _LOG),
        ("kernel.dstate", "lib.answers", "lib.persistence"),
    ),
    Symptom(
        "A GPU is lost or reports errors",
        "Jobs on one GPU fail, and the kernel log has an Xid. Cordon the node before you search further.",
        ("# nvidia-smi --query --display=ECC,ROW_REMAPPER", _LOG),
        ("hw.pci_alive", "kernel.fallen", "kernel.xid", "kernel.sxid", "hw.ecc", "hw.remap", "hw.recovery"),
    ),
    Symptom(
        "Jobs are slow",
        "The same job takes longer on one node than on the others.",
        ("# nvidia-smi --query --display=PERFORMANCE,TEMPERATURE,POWER", "# nvidia-smi topo --matrix"),
        ("hw.throttle", "hw.pci_link", "hw.nvlink"),
    ),
    Symptom(
        "Prometheus shows no GPUs",
        "Dashboards are empty, or no alert fires where one should. GPUs work without monitoring.",
        ("$ kubectl get pods --all-namespaces --selector app.kubernetes.io/name=gpu-exporter",),
        ("mon.exporter", "mon.scraped", "mon.rules"),
    ),
    Symptom(
        "A change of MIG or ECC has no effect",
        "``nvidia-smi`` shows a pending mode that differs from the current one.",
        ("# nvidia-smi --query",),
        ("hw.mig_pending",),
    ),
)

HEAD = f"""..
  Copyright (c) 2026, the gpu.kubernetes authors
  SPDX-License-Identifier: GPL-3.0-or-later

.. This page is generated from the doctor's checks by python -m gates.codes --write.

.. _{DOCSITE}.guide_troubleshooting:

Troubleshooting
===============

Find what you see below. Each check of the doctor is listed once, with the messages of programs, the cause and the remedy.

These two commands do the search for you, and change nothing. The first one examines hosts and cluster. The second one explains a message.

.. code-block:: console

    $ ansible-playbook gpu.kubernetes.diagnose_gpu_nodes -i inventory.yml
    $ ansible-playbook gpu.kubernetes.diagnose_gpu_nodes -e '{{"gpu_doctor_symptom": "Driver/library version mismatch"}}'

Several symptoms often have one cause. Begin with the layer nearest to the hardware, as the doctor does:
:ref:`the guide on diagnosis <{DOCSITE}.guide_doctor>` has all checks in that order.

In the blocks below, ``$`` is a command on your machine, and ``#`` is one on the node as root. In messages, ``…`` stands for any text.

.. contents::
   :local:
"""
TAIL = f"""
A run ends with an error
------------------------

A run that stops before any change has found a reason, and names the host, the cause and the remedy in one sentence. Correct that and repeat the run.
A run that stops later gives a daemon that fails its former configuration back, and leaves a node between two sharing strategies cordoned. Repeat it after
the correction, and it resumes.
:ref:`The guide on inventories <{DOCSITE}.guide_inventory>` explains tags, check mode and the report.

* ``ansible-playbook`` ends with the status 2 if a GPU is lost or GPUs of a node are not allocatable. The report names them.
* A run that meets the lease of another run names it, and the time at which it expires.
"""


def render(checks: Sequence[Any]) -> str:
    """The page; KeyError if a row names a check that is not there."""
    by_id = {check.id: check for check in checks}
    lines = [HEAD.rstrip("\n"), ""]
    for symptom in SYMPTOMS:
        lines += [symptom.title, "-" * len(symptom.title), "", symptom.text, "", ".. code-block:: console", ""]
        lines += [f"    {command}" for command in symptom.commands]
        lines += ["", *_render_checks(by_id[name] for name in symptom.checks)]
    return "\n".join(lines) + TAIL


def _render_checks(checks: Iterable[Any]) -> Iterator[str]:
    yield from (".. list-table::", "    :header-rows: 1", "    :widths: 32 26 30 12", "")
    yield from ("    * - Message", "      - Cause", "      - Remedy", "      - Check")
    for check in checks:
        yield f"    * - {', '.join(f'``{words}``' for words in check.words)}"
        yield f"      - {check.cause}"
        remedy = PLAYBOOK.sub(r"``\1``", check.remedy)
        yield f"      - {remedy}"
        yield f"      - :ref:`{check.id} <{DOCSITE}.{check.anchor}>`"
    yield ""


def find_misplaced(ids: Iterable[str]) -> list[str]:
    """A sentence for each check that is not under exactly one symptom, and for each unknown one."""
    known = list(ids)
    placed = [name for symptom in SYMPTOMS for name in symptom.checks]
    return [
        f"The check {name} is under {placed.count(name)} symptoms and {known.count(name)} times in the registry."
        for name in sorted({*known, *placed})
        if placed.count(name) != 1 or known.count(name) != 1
    ]
