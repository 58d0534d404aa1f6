# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Brings the GPUs of a node to their desired MIG state. Nothing is recorded but what was met: an interrupted run resumes by reading the GPUs."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Container, ContextManager, Mapping, NamedTuple, Sequence, Tuple

from .._nvml.mig import IN_USE, INSUFFICIENT_RESOURCES, Change, Mig, MigError
from .._nvml.partitions import Gpu
from . import holders
from .layout import Desired, LayoutError, count_devices, count_slots
from .plan import GpuPlan, find_disturbed, plan_gpu

Run = Callable[[Sequence[str]], Tuple[int, str, str]]
Plans = Sequence[Tuple[Gpu, GpuPlan]]


class ApplyError(Exception):
    """The GPUs cannot be changed; the text is a clause. ``holders`` are the processes in the way."""

    def __init__(self, text: str, found: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(text)
        self.holders = list(found)


class Permissions(NamedTuple):
    """Whether GPUs may be reset, whether a change of mode may wait for a reboot by the caller, and whether pods may be there in check mode."""

    reset: bool = False
    reboot: bool = False
    pods: bool = False


class Outcome(NamedTuple):
    """The GPUs before and after (dictionaries by gpu), and whether a change of mode waits for a reset or, without one, for a reboot."""

    changed: bool
    gpus: list[dict[str, Any]]
    reset_required: bool = False
    reboot_required: bool = False
    holders: list[dict[str, Any]] = []


class Node(NamedTuple):
    """The node: NVML, nvidia-smi (None if there is none), the root of /proc, what runs a command, and what stops services meanwhile."""

    mig: Mig
    nvidia_smi: str | None
    run: Run
    root: str = "/"
    quiet: Callable[[], ContextManager[None]] = contextlib.nullcontext


def plan_node(gpus: Sequence[Gpu], desired: Mapping[int, Desired]) -> list[tuple[Gpu, GpuPlan]]:
    """The plans of the GPUs that have a desired state. Raises LayoutError."""
    return [(gpu, plan_gpu(gpu, desired[gpu.index])) for gpu in gpus if gpu.index in desired]


def bring(
    node: Node,
    gpus: Sequence[Gpu],
    desired: Mapping[int, Desired],
    permissions: Permissions,
    check_mode: bool = False,
    before: Callable[[], None] = lambda: None,
) -> Outcome:
    """Change the *gpus*, as read before, to their *desired* states by index. *before* is called before the first change.

    Raises LayoutError or ApplyError, if possible before anything has changed, and MigError.
    """
    plans = [(gpu, plan) for gpu, plan in plan_node(gpus, desired) if plan.changes]
    found = holders.read_holders(node.root, [gpu for gpu, _plan in plans]) if plans else []
    leaving = {each["pid"] for each in found if each["pod_uid"]} if check_mode and permissions.pods else set()
    _refuse_processes(plans, found, leaving)
    _refuse_modes(node, plans, permissions, found)
    if not plans:
        return Outcome(False, [_report(gpu, gpu) for gpu in gpus])
    if check_mode:
        waits = any(plan.needs_reset for _gpu, plan in plans)
        after = {gpu.index: _predict(gpu, plan, permissions) for gpu, plan in plans}
        reports = [_report(gpu, gpu, after.get(gpu.index)) for gpu in gpus]
        return Outcome(True, reports, waits, waits and not permissions.reset, found)
    before()
    with node.quiet():
        _refuse_users(node, plans, permissions)
        _change(node, plans, permissions)
    now = node.mig.read()
    waiting = _find_waiting(now, desired) if permissions.reboot else set()
    _verify(now, desired, waiting)
    if node.nvidia_smi:
        # It creates the devices of MIG below /dev/nvidia-caps.
        node.run([node.nvidia_smi, "-L"])
    current = {gpu.uuid: gpu for gpu in now}
    reports = [_report(gpu, current.get(gpu.uuid, gpu)) for gpu in gpus]
    return Outcome(True, reports, bool(waiting), bool(waiting), found)


# -- refusals


def _refuse_processes(plans: Plans, found: Sequence[Mapping[str, Any]], leaving: Container[int]) -> None:
    """Raise ApplyError for processes that would be disturbed, but for those that are *leaving*, by their numbers."""
    for gpu, plan in plans:
        staying = [each for each in find_disturbed(gpu, plan) if each.pid not in leaving]
        if staying:
            disturbed = [{"pid": each.pid, "program": holders.clean(each.name)} for each in staying]
            names = holders.format_holders(disturbed)
            raise ApplyError(
                f"GPU {gpu.index} is in use by {names}; end these processes, or drain the node, and run again", found
            )


def _refuse_modes(node: Node, plans: Plans, permissions: Permissions, found: Sequence[Mapping[str, Any]]) -> None:
    """Raise ApplyError for a change of mode that is not permitted or not possible."""
    waiting = [gpu for gpu, plan in plans if plan.needs_reset]
    if not waiting or permissions.reboot:
        return
    if not permissions.reset:
        raise ApplyError(
            f"the change of MIG mode on {_name(waiting)} takes effect after a reset of the GPU or a reboot, and neither is allowed; set"
            " allow_gpu_reset or allow_reboot (in an inventory gpu_sharing_allow_gpu_reset or gpu_sharing_allow_reboot) to true",
            found,
        )
    if not node.nvidia_smi:
        raise ApplyError("nvidia-smi, which resets GPUs, does not exist; install it with the driver, or allow a reboot")


def _name(gpus: Sequence[Gpu]) -> str:
    """The GPUs for a sentence: ``GPU 0 and 1 (NVIDIA A100-SXM4-40GB)``."""
    return f"GPU {' and '.join(str(gpu.index) for gpu in gpus)} ({', '.join(dict.fromkeys(gpu.name for gpu in gpus))})"


def _refuse_users(node: Node, plans: Plans, permissions: Permissions) -> None:
    """Raise ApplyError if programs hold a GPU that is to be reset, once the services are stopped."""
    resets = [gpu for gpu, plan in plans if plan.needs_reset]
    if not resets or not permissions.reset or permissions.reboot:
        return
    if not node.nvidia_smi:
        raise ApplyError("nvidia-smi, which resets GPUs, does not exist; install it with the driver, or allow a reboot")
    found = holders.read_holders(node.root, resets)
    if found:
        raise ApplyError(
            f"{_name(resets)} cannot be reset, because {holders.format_holders(found)} has it open; stop it (services: the option services, in an"
            " inventory mig_services), or allow a reboot",
            found,
        )


# -- changes


def _change(node: Node, plans: Plans, permissions: Permissions) -> None:
    """Remove the instances of GPUs that lose MIG, change the modes, reset what is to be reset, then change the other instances."""
    for gpu, plan in plans:
        if not plan.desired.mode and plan.change.remove:
            _change_instances(node, gpu, plan.change)
    for gpu, plan in plans:
        if plan.set_mode is not None:
            _set_mode(node, gpu, plan.set_mode)
    _require_modes(node, plans)
    _reset(node, [gpu for gpu, plan in plans if plan.needs_reset], plans, permissions)
    desired = {gpu.index: plan.desired for gpu, plan in plans}
    now = [gpu for gpu in node.mig.read() if gpu.mode and desired.get(gpu.index, Desired(False)).mode]
    try:
        current = plan_node(now, desired)
    except LayoutError:
        _restore_modes(node, plans)
        raise
    for gpu, plan in current:
        if plan.change != Change():
            _change_instances(node, gpu, plan.change)


def _set_mode(node: Node, gpu: Gpu, enabled: bool) -> None:
    try:
        node.mig.set_mode(gpu.index, enabled)
    except MigError as error:
        raise _explain(node, gpu, error) from None


def _change_instances(node: Node, gpu: Gpu, change: Change) -> None:
    try:
        node.mig.change(gpu.index, change)
    except MigError as error:
        raise _explain(node, gpu, error) from None


def _explain(node: Node, gpu: Gpu, error: MigError) -> ApplyError:
    found = holders.read_holders(node.root, [gpu]) if error.code == IN_USE else []
    if found:
        return ApplyError(f"{error}; it is held by {holders.format_holders(found)}; stop that and run again", found)
    if error.code == INSUFFICIENT_RESOURCES:
        return ApplyError(
            f"{error}; the profiles of the layout need more engines than the GPU has; compare nvidia-smi mig -lgip"
        )
    return ApplyError(f"{error}; correct that and run again")


def _restore_modes(node: Node, plans: Plans) -> None:
    """Request the former modes again."""
    for gpu, plan in plans:
        if plan.set_mode is not None:
            with contextlib.suppress(MigError):
                node.mig.set_mode(gpu.index, not plan.set_mode)


def _require_modes(node: Node, plans: Plans) -> None:
    """Raise ApplyError if a GPU that changes its mode without a reset has not done so, because it is in use."""
    now = {gpu.index: gpu.mode for gpu in node.mig.read()}
    failed = [gpu for gpu, plan in plans if not plan.needs_reset and now.get(gpu.index) != plan.desired.mode]
    if failed:
        _restore_modes(node, plans)
        found = holders.read_holders(node.root, failed)
        names = holders.format_holders(found) or "a process that this host does not show"
        raise ApplyError(
            f"{_name(failed)} did not change its MIG mode, because {names} has it open; stop that and run again", found
        )


def _reset(node: Node, gpus: Sequence[Gpu], plans: Plans, permissions: Permissions) -> None:
    """Reset the GPUs, and only these. What does not succeed waits for the reboot, if that is permitted."""
    if not gpus or not permissions.reset or not node.nvidia_smi:
        return
    status, output, errors = node.run([node.nvidia_smi, "--gpu-reset", "-i", ",".join(gpu.pci_address for gpu in gpus)])
    if status and not permissions.reboot:
        _restore_modes(node, plans)
        words = " ".join((output + errors).split()[:60])
        raise ApplyError(
            f"nvidia-smi does not reset {_name(gpus)} ({words or f'exit status {status}'}); stop what uses it, or allow a reboot"
        )


# -- results


def _find_waiting(gpus: Sequence[Gpu], desired: Mapping[int, Desired]) -> set[int]:
    """The GPUs whose requested mode is the desired one, and which wait for a reset."""
    return {
        gpu.index
        for gpu in gpus
        if gpu.index in desired and gpu.mode != desired[gpu.index].mode == gpu.pending and gpu.needs_reset
    }


def _verify(gpus: Sequence[Gpu], desired: Mapping[int, Desired], waiting: set[int]) -> None:
    for gpu, plan in plan_node([gpu for gpu in gpus if gpu.index not in waiting], desired):
        if plan.changes:
            raise ApplyError(
                f"GPU {gpu.index} does not have the desired MIG layout after the change; run again, and look into the kernel log"
            )


def _predict(gpu: Gpu, plan: GpuPlan, permissions: Permissions) -> dict[str, Any]:
    if plan.needs_reset and not permissions.reset:
        return _format(gpu.mode, plan.desired.mode, {} if not plan.desired.mode else count_devices(gpu.partitions))
    return _format(plan.desired.mode, plan.desired.mode, count_slots(plan.desired.slots))


def _report(gpu: Gpu, after: Gpu, predicted: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "index": gpu.index,
        "uuid": gpu.uuid,
        "pci_address": gpu.pci_address,
        "name": gpu.name,
        "before": _format(gpu.mode, gpu.pending, count_devices(gpu.partitions)),
        "after": predicted or _format(after.mode, after.pending, count_devices(after.partitions)),
    }


def _format(mode: bool | None, pending: bool | None, profiles: dict[str, int]) -> dict[str, Any]:
    words = {True: "enabled", False: "disabled", None: None}
    return {"mode": words[mode], "mode_pending": words[pending], "profiles": profiles}
