# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The source that is used, and the explanation if a better one fails."""

from __future__ import annotations

import re
import shutil
import time
from typing import TYPE_CHECKING, NoReturn

import pytest
from lab import wait

from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml import collect, isolation, pci
from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml.collect import Options

if TYPE_CHECKING:
    from pathlib import Path

    from fakes.nvml.simulated import NvmlBuilder

ABSENT = "/nonexistent/file"
NOWHERE = Options(library=ABSENT, nvidia_smi=ABSENT, pci_path=ABSENT, module_version=ABSENT)
SMI = """#!/bin/sh
echo "0, GPU-1, Tesla T4, 00000000:00:1E.0, 570.124.06, 15360, 0, 14911, [N/A], 7.5, 36, 13.87, 0, 0"
"""


def smi(folder: Path, text: str = SMI) -> str:
    path = folder / "nvidia-smi"
    path.write_text(text, encoding="ascii")
    path.chmod(0o755)
    return str(path)


def test_gather_facts_with_nvml_prefers_it(nvml_builder: NvmlBuilder, tmp_path: Path) -> None:
    options = NOWHERE._replace(
        library=nvml_builder.library("a100-40g"), nvidia_smi=smi(tmp_path, "#!/bin/sh\nexit 9\n")
    )
    facts = collect.gather_facts(options)
    assert (facts.source, len(facts.gpus), facts.error) == ("nvml", 8, None)


def test_gather_facts_without_library_uses_nvidia_smi(nvml_builder: NvmlBuilder, tmp_path: Path) -> None:
    facts = collect.gather_facts(NOWHERE._replace(nvidia_smi=smi(tmp_path), pci_path=nvml_builder.pci("t4")))
    assert (facts.source, facts.driver_version, facts.error) == ("nvidia_smi", "570.124.06", None)
    assert [(gpu.uuid, gpu.pci_device_id) for gpu in facts.gpus] == [("GPU-1", "1eb8")]


def test_gather_facts_without_driver_uses_pci_bus(nvml_builder: NvmlBuilder) -> None:
    facts = collect.gather_facts(NOWHERE._replace(pci_path=nvml_builder.pci("mixed")))
    assert (facts.source, facts.driver_version) == ("pci", None)
    assert [(gpu.index, gpu.uuid, gpu.pci_address, gpu.pci_device_id, gpu.name) for gpu in facts.gpus] == [
        (None, None, "0000:3b:00.0", "20f1", "NVIDIA A100-PCIE-40GB"),
        (None, None, "0000:af:00.0", "1eb8", "Tesla T4"),
    ]
    assert facts.error == f"NVIDIA GPUs are present but {ABSENT} cannot be loaded; install the NVIDIA driver."


def test_gather_facts_adds_nvswitches_and_device_ids(nvml_builder: NvmlBuilder, tmp_path: Path) -> None:
    for address, device, kind in (("0000:c4:00.0", "0x1af1", "0x068000"), ("0000:47:00.0", "0x20b0", "0x030200")):
        (tmp_path / address).mkdir()
        for name, value in (("vendor", "0x10de"), ("device", device), ("class", kind)):
            (tmp_path / address / name).write_text(f"{value}\n", encoding="ascii")
    facts = collect.gather_facts(NOWHERE._replace(library=nvml_builder.library("lost-gpu"), pci_path=str(tmp_path)))
    assert facts.nvswitches == 1
    assert [gpu.pci_device_id for gpu in facts.gpus] == ["20b0"] * 4


def test_gather_facts_reads_the_product_name_of_the_machine(nvml_builder: NvmlBuilder, tmp_path: Path) -> None:
    options = NOWHERE._replace(pci_path=nvml_builder.pci("none"), root=str(tmp_path))
    assert collect.gather_facts(options).machine is None
    path = tmp_path / "sys/class/dmi/id/product_name"
    path.parent.mkdir(parents=True)
    path.write_text("PowerEdge R7525\n")
    assert collect.gather_facts(options).machine == "PowerEdge R7525"


@pytest.mark.parametrize("profile", ["", "no-driver"])
def test_gather_facts_without_gpus_has_no_error(nvml_builder: NvmlBuilder, profile: str) -> None:
    library = nvml_builder.library(profile) if profile else ABSENT
    facts = collect.gather_facts(NOWHERE._replace(library=library, pci_path=nvml_builder.pci("none")))
    assert (facts.source, facts.gpus, facts.error) == ("none", (), None)


def test_gather_facts_with_unloaded_driver_explains_it(nvml_builder: NvmlBuilder) -> None:
    facts = collect.gather_facts(
        NOWHERE._replace(library=nvml_builder.library("no-driver"), pci_path=nvml_builder.pci("no-driver"))
    )
    assert (facts.source, len(facts.gpus), facts.nvml_version) == ("pci", 1, "12.570.124.06")
    assert facts.error == (
        "The NVIDIA kernel module is not loaded; load it (modprobe nvidia) or repair its installation."
    )


@pytest.mark.parametrize(
    ("loaded", "words"), [("570.86.10\n", "is 570.86.10 and"), ("", "is another version and"), (None, "is another")]
)
def test_gather_facts_with_version_mismatch_names_versions(
    nvml_builder: NvmlBuilder, tmp_path: Path, loaded: str | None, words: str
) -> None:
    version = tmp_path / "version"
    if loaded is not None:
        version.write_text(loaded, encoding="ascii")
    facts = collect.gather_facts(
        NOWHERE._replace(
            library=nvml_builder.library("version-mismatch"),
            pci_path=nvml_builder.pci("version-mismatch"),
            module_version=str(version),
        )
    )
    assert (facts.source, len(facts.gpus), facts.driver_version) == ("pci", 2, (loaded or "").strip() or None)
    assert facts.error is not None
    assert "mismatch" in facts.error
    assert words in facts.error
    assert "the library is 570.124.06" in facts.error
    assert "reboot" in facts.error


def test_gather_facts_with_other_nvml_error_names_code(nvml_builder: NvmlBuilder) -> None:
    library = nvml_builder.library_of("unknown", "nvml_version = 12.1\ninit_result = unknown\n")
    facts = collect.gather_facts(NOWHERE._replace(library=library))
    assert facts.error == "NVML does not start (Unknown Error, code 999); look for the cause in the kernel log."
    assert facts.source == "none"


@pytest.mark.parametrize("made_by", ["profile", "constructor"])
def test_gather_facts_with_hanging_driver_ends_in_time(nvml_builder: NvmlBuilder, made_by: str) -> None:
    code = "#include <unistd.h>\n__attribute__((constructor)) static void hang(void) { for (;;) pause(); }\n"
    library = nvml_builder.library("hang") if made_by == "profile" else nvml_builder.library_from_c("hanging", code)
    facts = collect.gather_facts(NOWHERE._replace(library=library, pci_path=nvml_builder.pci("t4"), timeout=0.5))
    assert (facts.source, [gpu.name for gpu in facts.gpus]) == ("pci", ["Tesla T4"])
    assert facts.error is not None
    assert facts.error.startswith("The NVIDIA driver did not answer within 0.5 seconds; ")


@pytest.mark.parametrize("made_by", ["profile", "constructor"])
def test_gather_facts_with_crashing_driver_names_signal(nvml_builder: NvmlBuilder, made_by: str) -> None:
    code = "#include <stdlib.h>\n__attribute__((constructor)) static void die(void) { abort(); }\n"
    library = nvml_builder.library("crash") if made_by == "profile" else nvml_builder.library_from_c("crashing", code)
    facts = collect.gather_facts(NOWHERE._replace(library=library, pci_path=nvml_builder.pci("t4")))
    assert (facts.source, len(facts.gpus)) == ("pci", 1)
    assert facts.error is not None
    assert "was ended by SIGABRT" in facts.error


def test_gather_facts_with_own_exception_does_not_blame_driver(
    nvml_builder: NvmlBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_options: Options) -> NoReturn:
        raise ValueError("no\nnumber")

    monkeypatch.setattr(collect, "_query_driver", fail)
    facts = collect.gather_facts(NOWHERE._replace(pci_path=nvml_builder.pci("t4")))
    assert (facts.source, len(facts.gpus)) == ("pci", 1)
    assert re.fullmatch(
        r"gpu\.kubernetes itself failed \(ValueError: no number in test_collect\.py, line \d+\); "
        r"report that to its authors\.",
        facts.error or "",
    )


def test_gather_facts_with_failing_nvidia_smi_explains_it(nvml_builder: NvmlBuilder, tmp_path: Path) -> None:
    options = NOWHERE._replace(pci_path=nvml_builder.pci("t4"), timeout=0.5)
    hung = collect.gather_facts(options._replace(nvidia_smi=smi(tmp_path, "#!/bin/sh\nexec sleep 60\n")))
    assert (hung.source, hung.error is not None and "did not answer" in hung.error) == ("pci", True)
    path = smi(tmp_path, "#!/bin/sh\necho Failed to initialize NVML: Unknown Error\nexit 255\n")
    failed = collect.gather_facts(options._replace(nvidia_smi=path, timeout=10))
    assert failed.source == "pci"
    assert failed.error == (
        f"{path} failed (Failed to initialize NVML: Unknown Error); repair or reinstall the NVIDIA driver."
    )


def test_gather_facts_with_lost_gpu_names_it(nvml_builder: NvmlBuilder) -> None:
    facts = collect.gather_facts(NOWHERE._replace(library=nvml_builder.library("lost-gpu")))
    assert facts.source == "nvml"
    assert facts.error == (
        "1 of 4 GPUs are lost to the driver (0000:47:00.0); "
        "reboot the node and look for NVRM in the kernel log, such as Xid 79 of one that fell off the bus."
    )


@pytest.mark.parametrize(("on_the_bus", "address"), [("mixed", "0000:af:00.0"), ("h200", None), ("none", None)])
def test_gather_facts_with_lost_gpu_without_handle_locates_it(
    nvml_builder: NvmlBuilder, on_the_bus: str, address: str | None
) -> None:
    text = "[gpu]\npci_addresses = 0000:3b:00.0\n[gpu]\npci_addresses = 0000:af:00.0\nfault = lost_handle\n"
    library = nvml_builder.library_of("lost-handle", text)
    facts = collect.gather_facts(NOWHERE._replace(library=library, pci_path=nvml_builder.pci(on_the_bus)))
    assert [(gpu.lost, gpu.pci_address) for gpu in facts.gpus] == [(False, "0000:3b:00.0"), (True, address)]
    assert facts.error is not None
    assert f"({address or 'index 1'})" in facts.error


@pytest.mark.parametrize(("driver", "is_lost"), [("", True), ("nvidia", True), ("vfio-pci", False), ("nouveau", False)])
@pytest.mark.parametrize("words", ["No devices were found", SMI.splitlines()[1][6:-1]])
def test_gather_facts_with_unserved_gpus_reports_them(
    nvml_builder: NvmlBuilder, tmp_path: Path, driver: str, is_lost: bool, words: str
) -> None:
    bus = tmp_path / "bus"
    shutil.copytree(nvml_builder.pci("t4"), bus)
    places = sorted(path.name for path in bus.iterdir())
    shutil.copytree(bus / places[0], bus / "0000:9f:00.0")
    if driver:
        (bus / "0000:9f:00.0" / "driver").symlink_to(f"../../drivers/{driver}")
    facts = collect.gather_facts(
        NOWHERE._replace(nvidia_smi=smi(tmp_path, f"#!/bin/sh\necho '{words}'\n"), pci_path=str(bus))
    )
    lost = [gpu.pci_address for gpu in facts.gpus if gpu.lost]
    assert ("0000:9f:00.0" in lost) is is_lost
    assert (f"The NVIDIA driver does not serve {len(lost)} of {len(facts.gpus)} GPUs" in str(facts.error)) is bool(lost)


def put_gpu(folder: Path, vendor: str) -> str:
    """Put a GPU on a PCI bus in *folder*; return the bus."""
    device = folder / "devices" / "0000:c1:00.0"
    device.mkdir(parents=True)
    for name, value in (("vendor", vendor), ("class", "0x038000"), ("device", "0xffff")):
        (device / name).write_text(f"{value}\n", encoding="ascii")
    return str(device.parent)


def test_gather_other_gpus_finds_amd_gpu(tmp_path: Path) -> None:
    [found], warnings = collect.gather_other_gpus(put_gpu(tmp_path, "0x1002"), wait.LIMIT)
    assert (found["vendor"], found["pci_address"], warnings) == ("amd", "0000:c1:00.0", [])


def test_gather_other_gpus_with_hanging_bus_warns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bus = put_gpu(tmp_path, "0x1002")
    monkeypatch.setattr(pci, "read_other_gpus", lambda _path: time.sleep(wait.LIMIT))
    assert collect.gather_other_gpus(bus, 0.2) == (
        [],
        [f"GPUs of AMD and Intel are not reported, because {bus} did not answer in time; look into the kernel log."],
    )


def test_gather_other_gpus_without_other_vendors_starts_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bus = put_gpu(tmp_path, "0x10de")
    monkeypatch.setattr(isolation, "call", lambda *_arguments: pytest.fail("a process was started"))
    assert collect.gather_other_gpus(bus, wait.LIMIT) == ([], [])
