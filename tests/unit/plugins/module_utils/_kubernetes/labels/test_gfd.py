# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The values of GPU feature discovery v0.20, by GPUs and by the configuration of the device plugin."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.labels.gfd import (
    MIB,
    build_gfd_labels,
    build_machine_label,
    build_version_labels,
    find_family,
    find_mode,
    format_product,
)

A100 = {
    "name": "NVIDIA A100-SXM4-40GB",
    "memory_total_bytes": 40960 * MIB,
    "compute_capability": "8.0",
    "mig_mode": "disabled",
    "mig_devices": [],
    "pci_class": "0x030200",
}
PRODUCT = "NVIDIA-A100-SXM4-40GB"
BASE = {
    "gpu.compute.major": "8",
    "gpu.compute.minor": "0",
    "gpu.count": "1",
    "gpu.family": "ampere",
    "gpu.memory": "40960",
    "gpu.mode": "compute",
    "gpu.product": PRODUCT,
    "gpu.replicas": "1",
    "gpu.sharing-strategy": "none",
    "mig.capable": "true",
}


def mig(*profiles: str) -> dict[str, Any]:
    devices = [
        {"name": f"NVIDIA A100-SXM4-40GB MIG {profile}", "memory_total_bytes": 4864 * MIB} for profile in profiles
    ]
    return {**A100, "mig_mode": "enabled", "mig_devices": devices}


def share(section: str, replicas: Any, name: str = "nvidia.com/gpu", flags: Any = None, **more: Any) -> dict[str, Any]:
    return {"flags": flags, "sharing": {section: {"resources": [{"name": name, "replicas": replicas}], **more}}}


SINGLE, MIXED = {"flags": {"migStrategy": "single"}}, {"flags": {"migStrategy": "mixed"}}
SLICED = mig("1g.5gb", "1g.5gb")
ONE_PROFILE = {
    "gpu.count": "2",
    "gpu.memory": "4864",
    "gpu.product": f"{PRODUCT}-MIG-1g.5gb",
    "gpu.slices.ci": "1",
    "gpu.slices.gi": "1",
    "mig.strategy": "single",
}
INVALID = {
    "gpu.count": "0",
    "gpu.memory": "0",
    "gpu.product": f"{PRODUCT}-MIG-INVALID",
    "gpu.replicas": "0",
    "gpu.sharing-strategy": "",
    "mig.strategy": "single",
}
WHOLE_OFF = {"gpu.replicas": "0", "mig.strategy": "mixed"}
ME = {
    "mig-1g.5gb.me.count": "1",
    "mig-1g.5gb.me.memory": "4864",
    "mig-1g.5gb.me.product": f"{PRODUCT}-MIG-1g.5gb.me",
    "mig-1g.5gb.me.replicas": "1",
    "mig-1g.5gb.me.sharing-strategy": "none",
    "mig-1g.5gb.me.slices.ci": "1",
    "mig-1g.5gb.me.slices.gi": "1",
}


@pytest.mark.parametrize(
    ("gpus", "config", "changes"),
    [
        ([A100], {}, {}),
        ([A100, A100], {"version": "v1"}, {"gpu.count": "2"}),
        # Shared GPUs: the product has the suffix unless the resource has another name.
        (
            [A100],
            share("timeSlicing", 4),
            {"gpu.replicas": "4", "gpu.sharing-strategy": "time-slicing", "gpu.product": PRODUCT + "-SHARED"},
        ),
        (
            [A100],
            share("mps", "10", name="gpu"),
            {"gpu.replicas": "10", "gpu.sharing-strategy": "mps", "gpu.product": PRODUCT + "-SHARED"},
        ),
        (
            [A100],
            share("timeSlicing", 4, renameByDefault=True),
            {"gpu.replicas": "4", "gpu.sharing-strategy": "time-slicing"},
        ),
        ([A100], share("timeSlicing", 1), {}),
        ([A100], share("timeSlicing", 4, name="nvidia.com/mig-1g.5gb"), {}),
        # MIG devices.
        ([A100], SINGLE, {"mig.strategy": "single"}),
        ([SLICED], {}, {"gpu.replicas": "0"}),
        ([SLICED], SINGLE, ONE_PROFILE),
        (
            [SLICED],
            share("timeSlicing", 2, flags={"migStrategy": "single"}),
            {
                **ONE_PROFILE,
                "gpu.product": f"{PRODUCT}-MIG-1g.5gb-SHARED",
                "gpu.replicas": "2",
                "gpu.sharing-strategy": "time-slicing",
            },
        ),
        ([mig("1g.5gb", "2g.10gb")], SINGLE, INVALID),
        ([mig()], SINGLE, INVALID),
        ([SLICED, A100], SINGLE, INVALID),
        (
            [mig("1c.3g.20gb")],
            SINGLE,
            {**ONE_PROFILE, "gpu.count": "1", "gpu.product": f"{PRODUCT}-MIG-1c.3g.20gb", "gpu.slices.gi": "3"},
        ),
        ([mig("1g.5gb+me")], MIXED, {**WHOLE_OFF, **ME}),
        ([mig()], MIXED, WHOLE_OFF),
        ([mig("1g.5gb+me"), A100], MIXED, {**ME, "gpu.count": "2", "mig.strategy": "mixed"}),
        # What the facts do not tell is left out.
        ([{"name": "Tesla T4"}], {}, None),
    ],
)
def test_labels_by_configuration(gpus: list[dict[str, Any]], config: Any, changes: dict[str, str] | None) -> None:
    found = build_gfd_labels(gpus, gpus[0], config, True)
    expected = (
        {
            "gpu.count": "1",
            "gpu.mode": "unknown",
            "gpu.product": "Tesla-T4",
            "gpu.replicas": "1",
            "gpu.sharing-strategy": "none",
            "mig.capable": "false",
        }
        if changes is None
        else {**BASE, **changes}
    )
    assert found == {f"nvidia.com/{name}": value for name, value in expected.items()}


def test_labels_without_the_device_plugin_of_nvidia_name_no_sharing() -> None:
    found = build_gfd_labels([SLICED], SLICED, None, True)
    names = BASE.keys() - {"gpu.replicas", "gpu.sharing-strategy"}
    assert found == {f"nvidia.com/{name}": BASE[name] for name in names}


def test_labels_without_the_list_of_mig_devices_name_none() -> None:
    found = build_gfd_labels([mig()], A100, SINGLE, False)
    assert (found["nvidia.com/gpu.product"], found["nvidia.com/gpu.count"]) == (PRODUCT, "1")


@pytest.mark.parametrize(
    ("capability", "family"),
    [
        ("1.3", "tesla"),
        ("2.0", "fermi"),
        ("3.7", "kepler"),
        ("5.2", "maxwell"),
        ("6.1", "pascal"),
        ("7.0", "volta"),
        ("7.2", "volta"),
        ("7.5", "turing"),
        ("8.0", "ampere"),
        ("8.6", "ampere"),
        ("8.9", "ada-lovelace"),
        ("9.0", "hopper"),
        ("10.0", "blackwell"),
        ("12.0", "blackwell"),
        ("13.0", "rubin"),
        ("0.9", "undefined"),
        (None, "undefined"),
    ],
)
def test_find_family_by_compute_capability(capability: Any, family: str) -> None:
    assert find_family(capability) == family


@pytest.mark.parametrize(
    ("classes", "mode"),
    [
        (["0x030000"], "graphics"),
        (["0x030200", "0x030200"], "compute"),
        (["0x030200", "0x030000"], "unknown"),
        (["0x038000"], "unknown"),
        ([None], "unknown"),
    ],
)
def test_find_mode_by_class(classes: list[Any], mode: str) -> None:
    assert find_mode(classes) == mode


@pytest.mark.parametrize(
    ("driver", "cuda", "labels"),
    [
        (
            "570.124.06",
            "12.8",
            {
                "driver-version.major": "570",
                "driver-version.minor": "124",
                "driver-version.revision": "06",
                "driver-version.full": "570.124.06",
                "runtime-version.major": "12",
                "runtime-version.minor": "8",
                "runtime-version.full": "12.8",
            },
        ),
        (
            "610.43",
            None,
            {
                "driver-version.major": "610",
                "driver-version.minor": "43",
                "driver-version.revision": "",
                "driver-version.full": "610.43",
            },
        ),
        ("beta", "12", {}),
        (None, None, {}),
    ],
)
def test_build_version_labels(driver: Any, cuda: Any, labels: dict[str, str]) -> None:
    assert build_version_labels(driver, cuda) == {f"nvidia.com/cuda.{name}": value for name, value in labels.items()}


@pytest.mark.parametrize(
    ("name", "suffix", "product"),
    [
        ("NVIDIA A100 80GB  PCIe", "", "NVIDIA-A100-80GB-PCIe"),
        ("Quadro(R) K2/x_1.0", "-SHARED", "QuadroR-K2x_1.0-SHARED"),
        ("x" * 70, "-SHARED", "x" * 56 + "-SHARED"),
        ("", "-SHARED", ""),
    ],
)
def test_format_product_as_a_label_value(name: str, suffix: str, product: str) -> None:
    assert format_product(name, suffix) == product


@pytest.mark.parametrize(
    ("machine", "value"),
    [
        ("PowerEdge R7525", "PowerEdge-R7525"),
        ("Standard PC (Q35 + ICH9, 2009)", "Standard-PC-Q35-ICH9-2009"),
        (None, "unknown"),
        ("(?)", "unknown"),
    ],
)
def test_machine_is_a_label_value(machine: Any, value: str) -> None:
    assert build_machine_label(machine) == {"nvidia.com/gpu.machine": value}
