# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What tests/gpu/check.sh calls the same and different, of GPUs that are simulated and logs that are made up."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from gpu import compare, smi_log

from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml import collect
from ansible_collections.gpu.kubernetes.tests.unit.gpu.smi_samples import Smi, parsed

if TYPE_CHECKING:
    from fakes.nvml.simulated import Workshop

# What is said, what is said instead, and the difference that this is.
CHANGES = [
    ("(?<=<driver_version>)570.124.06", "1.2", "driver_version: 570.124.06 here, 1.2 there"),
    ("(?<=<driver_version>)570.124.06", "1.2", "driver.module_version: 570.124.06 here, 1.2 there"),
    (r"(?<=NVML version        : )570\.124", "570.86", "nvml_version: 570.124 here, 570.86 there"),
    (r"(?<=NVML version        : )570\.124", "570.86", "driver.library_version: 570.124 here, 570.86 there"),
    (r"GPU 0(?=:.*\n  MIG)", "GPU 7", "GPU 0 index: 0 here, 7.0 there"),
    ("<product_name>.*<", "<product_name>Tesla T5<", "GPU 0 name: NVIDIA H100 80GB HBM3 here, Tesla T5 there"),
    (r"\b9\.0", "9.1", "GPU 0 compute_capability: 9.0 here, 9.1 there"),
    (">Hopper", ">Ada Lovelace", "GPU 0 architecture: hopper here, ada there"),
    ("mode>None", "mode>Pass-Through", "GPU 0 virtualization_mode: none here, passthrough there"),
    ("2330(?=10DE)", "2331", "GPU 0 pci_device_id: 2330 here, 2331 there"),
    ("81559", "81560", f"GPU 0 memory_total_bytes: {81559 << 20} here, {float(81560 << 20)} there"),
    ("<current_mig>En", "<current_mig>Dis", "GPU 0 mig_mode: enabled here, disabled there"),
    ("<pending_mig>Dis", "<pending_mig>En", "GPU 0 mig_mode_pending: disabled here, enabled there"),
    ("<gpu_instance_id>1", "<gpu_instance_id>5", "GPU 0 mig_device 0 gpu_instance_id: 1 here, 5.0 there"),
    ("<compute_instance_id>0", "<compute_instance_id>1", "GPU 0 mig_device 0 compute_instance_id: 0 here, 1.0 there"),
    ("20096", "20097", f"GPU 0 mig_device 1 memory_total_bytes: {20096 << 20} here, {float(20097 << 20)} there"),
    (
        r"MIG-\w*",
        "MIG-1",
        "GPU 0 mig_device 0 uuid: MIG-0ac294b2-96b5-5605-9a93-ec160fa022c7 here, MIG-1-96b5-5605-9a93-ec160fa022c7 there",
    ),
    (
        "3g.40gb(?= +Device)",
        "4g.40gb",
        "GPU 0 mig_device 0 name: NVIDIA H100 80GB HBM3 MIG 3g.40gb here, NVIDIA H100 80GB HBM3 MIG 4g.40gb there",
    ),
    ("<index>1", "<index>4", "GPU 0 mig_device 1 is known to one side alone"),
    (
        "idle>Not Active",
        "idle>Active",
        "GPU 0 clocks.event_reasons: ['display_clock_setting', 'sw_power_cap'] here, ['display_clock_setting', 'gpu_idle', 'sw_power_cap'] there",
    ),
    ("<current_ecc>En", "<current_ecc>Dis", "GPU 0 ecc.mode: enabled here, disabled there"),
    ("<pending_ecc>Dis", "<pending_ecc>En", "GPU 0 ecc.mode_pending: disabled here, enabled there"),
    (", 1, ", ", 2, ", "GPU 0 ecc.corrected_volatile: 1 here, 2.0 there"),
    (", 20, ", ", 2, ", "GPU 0 ecc.corrected_aggregate: 20 here, 2.0 there"),
    (", 3, ", ", 2, ", "GPU 0 ecc.uncorrected_volatile: 3 here, 2.0 there"),
    (", 40", ", 2", "GPU 0 ecc.uncorrected_aggregate: 40 here, 2.0 there"),
    ("pending_retirement>No", "pending_retirement>Yes", "GPU 0 retired_pages.pending: False here, True there"),
    ("Completed", "In Progress", "GPU 0 fabric.state: completed here, in_progress there"),
    ("Success", "Insufficient Resources", "GPU 0 fabric.status: False here, True there"),
    ("<cliqueId>0", "<cliqueId>2", "GPU 0 fabric.clique_id: 0 here, 2.0 there"),
    (
        "<clusterUuid>0{8}",
        "<clusterUuid>0000000A",
        "GPU 0 fabric.cluster_uuid: nothing here, 0000000a-0000-0000-0000-000000000000 there",
    ),
    ("26.562 GB/s", "<inactive>", "GPU 0 nvlink 0 active: True here, False there"),
    ("<inactive>", "26.562 GB/s", "GPU 0 nvlink 1 active: False here, True there"),
    ("Link 1(?=: <)", "Link 17", "GPU 0 nvlink 17 is known to one side alone"),
]


def test_the_same(facts: Any, smi: Smi) -> None:
    verdict = compare.compare(facts, smi.log())
    assert verdict.different == []
    compared = {difference.split(": ")[0] for *_change, difference in CHANGES if "alone" not in difference}
    assert compared <= set(verdict.same)
    assert "GPU 0 serial" in verdict.untold, "what is N/A there is no match"


@pytest.mark.parametrize(("old", "new", "difference"), CHANGES)
def test_a_difference(facts: Any, smi: Smi, old: str, new: str, difference: str) -> None:
    smi.change(old, new)
    assert difference in compare.compare(facts, smi.log()).different


def test_what_nvidia_smi_alone_knows_is_a_difference(facts: Any, smi: Smi) -> None:
    smi.change("<fabric>", "<remapped_rows><remapped_row_pending>No</remapped_row_pending></remapped_rows><fabric>")
    assert compare.compare(facts, smi.log()).different == ["GPU 0 row_remapping.pending: nothing here, False there"]


def test_words_where_a_number_was_expected(facts: Any, smi: Smi) -> None:
    smi.change("35 C", "GPU requires reset")
    smi.change("81559 MiB", "[Unknown Error]")
    verdict = compare.compare(facts, smi.log())
    assert verdict.different == ["GPU 0 temperature_celsius: 33 here, GPU requires reset there"]
    assert "GPU 0 memory_total_bytes" in verdict.untold


def test_a_gpu_that_one_side_does_not_know(facts: Any, smi: Smi) -> None:
    verdict = compare.compare({**facts, "gpus": []}, smi.log())
    assert verdict.different == ["GPU 0000:1b:00.0 is known to one side alone"]
    assert verdict.same == [field.fact for field in smi_log.NODE]


def test_a_log_alone_tells_less(facts: Any, smi: Smi) -> None:
    """A file has no UUIDs of partitions, no links, no neighbours, and of this GPU no totals of errors: none of them is a difference."""
    verdict = compare.compare(facts, parsed(smi.said["-q", "-x"]))
    assert verdict.different == []
    names = (
        "index",
        "compute_capability",
        "nvlinks",
        "peers",
        "cpu_affinity",
        "numa_node",
        "gpu_instances",
        "mig_device 1 uuid",
        "ecc.corrected_volatile",
        "ecc.uncorrected_volatile",
    )
    assert {f"GPU 0 {name}" for name in names} <= set(verdict.untold)


def test_a_gpu_without_links(facts: Any, smi: Smi) -> None:
    smi.change(r"(?s)\n\t Link 0: 26.*", " Device does not have or support Nvlink\n")
    verdict = compare.compare(facts, smi.log())
    assert verdict.different == []
    assert "GPU 0 nvlinks" in verdict.untold


@pytest.mark.parametrize(
    "counted",
    [
        pytest.param(
            "<single_bit><l2_cache>1</l2_cache><total>{}</total></single_bit><double_bit><total>{}</total></double_bit>",
            id="up to Volta",
        ),
        pytest.param(
            "<sram_correctable>0</sram_correctable><sram_uncorrectable>0</sram_uncorrectable>"
            "<dram_correctable>{}</dram_correctable><dram_uncorrectable>{}</dram_uncorrectable>",
            id="Turing, and Ampere up to 535: DRAM",
        ),
        pytest.param(
            "<sram_correctable>{}</sram_correctable><sram_uncorrectable>{}</sram_uncorrectable>"
            "<dram_correctable>0</dram_correctable><dram_uncorrectable>0</dram_uncorrectable>",
            id="Turing, and Ampere up to 535: SRAM",
        ),
    ],
)
def test_errors_of_the_log(facts: Any, smi: Smi, counted: str) -> None:
    """Where the log has what NVML's total is the sum of, it is compared without another question."""
    name = "GPU 0 ecc.{}corrected_volatile"
    for kinds, difference in (((1, 3), []), ((1, 2), ["un"]), ((2, 3), [""])):
        text = re.sub(
            r"(?s)<volatile>.*</volatile>", f"<volatile>{counted.format(*kinds)}</volatile>", smi.said["-q", "-x"]
        )
        verdict = compare.compare(facts, parsed(text))
        assert [line.split(":")[0] for line in verdict.different] == [name.format(kind) for kind in difference]
        assert len([line for line in verdict.same if line.endswith("corrected_volatile")]) == 2 - len(difference)


def test_reasons_were_called_throttling(facts: Any, smi: Smi) -> None:
    smi.said["-q", "-x"] = smi.said["-q", "-x"].replace("clocks_event_reason", "clocks_throttle_reason")
    assert "GPU 0 clocks.event_reasons" in compare.compare(facts, smi.log()).same
    smi.change("cap>Active", "cap>Not Active")
    assert [line.split(":")[0] for line in compare.compare(facts, smi.log()).different] == [
        "GPU 0 clocks.event_reasons"
    ]


def test_every_fact_is_compared_or_said_not_to_be(facts: Any) -> None:
    gpu = facts["gpus"][0]
    lists = {parts.fact for parts in smi_log.PARTS}
    assert all(gpu[name] for name in lists), "an empty list has no facts to look at"
    there = {
        f"{name}.{key}" if key else name
        for name, value in gpu.items()
        for part in (value if name in lists else [value])
        for key in (part if isinstance(part, dict) else [""])
    }
    compared = {field.fact for field in smi_log.FIELDS}
    compared |= {
        f"{parts.fact}.{name}"
        for parts in smi_log.PARTS
        for name in (*parts.keys, *(field.fact for field in parts.fields))
    }
    assert compared | set(smi_log.NOT_COMPARED) == there
    assert not compared & set(smi_log.NOT_COMPARED)


def test_every_fact_of_a_node_is_compared_or_said_not_to_be(facts: Any) -> None:
    there = {
        f"{name}.{key}" if key else name
        for name, value in facts.items()
        for key in (value if isinstance(value, dict) else [""])
    }
    compared = {field.fact for field in smi_log.NODE}
    assert compared | set(smi_log.NODE_NOT_COMPARED) == there - {"gpus"}
    assert not compared & set(smi_log.NODE_NOT_COMPARED)


# Of an idle GPU, and of the same one at work; of each what is told in such units.
MOVING = {
    "memory_used_bytes": (450 << 20, 15 << 30),
    "memory_free_bytes": (15 << 30, 450 << 20),
    "bar1.used_bytes": (2 << 20, 200 << 20),
    "bar1.free_bytes": (254 << 20, 56 << 20),
    "temperature_celsius": (30, 60),
    "power_draw_watts": (10, 70),
    "utilization_gpu_percent": (0, 60),
    "utilization_memory_percent": (0, 50),
    "clocks.graphics_mhz": (300, 1590),
    "clocks.sm_mhz": (300, 1590),
    "clocks.memory_mhz": (405, 5000),
    "clocks.video_mhz": (540, 1470),
}


def test_an_idle_gpu_is_not_taken_for_one_at_work() -> None:
    """The numbers are those of a T4, whose ranges are the smallest."""
    rounding = {0.01, smi_log.WHOLE}
    fields = {field.fact: field for field in smi_log.FIELDS if field.tolerance and field.tolerance not in rounding}
    assert set(fields) == set(MOVING)
    near = [name for name, (idle, busy) in MOVING.items() if compare.agree(idle, busy, fields[name].tolerance * 2)]
    assert near == []


def verdict(*different: str) -> compare.Verdict:
    return compare.Verdict("", list(different), [], [])


@pytest.mark.parametrize(
    ("looks", "tries", "stays"),
    [
        ([[]], 1, []),
        ([["idle"], []], 2, []),
        # each was alike once
        ([["idle: 1 here"], ["name: a here"], ["name: a here"]], 2, []),
        (
            [["name: a here", "clock: 1 here"], ["name: a here", "clock: 2 here"], *[["name: a here"]] * 3],
            5,
            ["name: a here"],
        ),
        (
            [["clock: 1 here"], ["clock: 2 here"], ["clock: 3 here"], ["clock: 4 here"], ["clock: 5 here"]],
            5,
            ["clock: 5 here"],
        ),
    ],
)
def test_only_a_difference_that_stays_counts(looks: list[list[str]], tries: int, stays: list[str]) -> None:
    left = [verdict(*look) for look in looks]
    assert compare.settled(lambda: left.pop(0)).different == stays
    assert len(looks) - len(left) == tries


T4 = """\
<nvidia_smi_log>
  <gpu id="00000000:00:1E.0">
    <product_name>{name}</product_name><uuid>{uuid}</uuid>
    <clocks_throttle_reasons>
      <clocks_throttle_reason_gpu_idle>Active</clocks_throttle_reason_gpu_idle>
    </clocks_throttle_reasons>
  </gpu>
</nvidia_smi_log>
"""
PROGRAM = """\
#!/bin/sh
cd "${0%/*}"
case $1 in
  -q) cat log ;;
  -L) echo "GPU 0: Tesla T4 (UUID: $(cat uuid))" ;;
  nvlink) echo "GPU 0: Tesla T4 (UUID: $(cat uuid))" && exit 3 ;;
  --query-gpu=uuid,compute_cap,*) echo "$(cat uuid), 7.5, 0, 0, 0, 0" ;;
esac
"""


def test_the_whole_check(workshop: Workshop, tmp_path: Path) -> None:
    library = workshop.library("t4")
    (gpu,) = collect.gather_facts(collect.Options(library=library)).as_dict()["gpus"]
    (tmp_path / "uuid").write_text(gpu["uuid"], encoding="ascii")
    (tmp_path / "nvidia-smi").write_text(PROGRAM, encoding="ascii")
    (tmp_path / "nvidia-smi").chmod(0o755)
    places = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "LD_LIBRARY_PATH": str(Path(library).parent)}

    def check(name: str, *arguments: str) -> tuple[int, list[str]]:
        (tmp_path / "log").write_text(T4.format(name=name, uuid=gpu["uuid"]), encoding="ascii")
        command = ["sh", str(Path(compare.__file__).with_name("check.sh")), *arguments]
        environment = {**os.environ, **places, "PYTHON": sys.executable, "TMPDIR": str(tmp_path)}
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
        return done.returncode, done.stdout.splitlines()

    same = len(["index", "uuid", "name", "compute_capability", "event_reasons", *["ecc"] * 4])
    status, lines = check("Tesla T4")
    assert (status, lines[-1].split(", ")[:3]) == (0, ["1 GPUs", f"source nvml: {same} fields agree", "0 differ"])
    assert "not compared: GPU pci_device_id (1 times nvidia-smi tells nothing of it)" in lines
    assert f"not compared: GPU lost ({smi_log.NOT_COMPARED['lost']})" in lines
    assert f"not compared: xid_errors ({smi_log.NODE_NOT_COMPARED['xid_errors']})" in lines
    status, lines = check("Tesla T5", str(tmp_path / "log"))
    assert (status, lines[0]) == (1, "GPU 0 name: Tesla T4 here, Tesla T5 there")
