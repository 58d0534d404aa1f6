# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What tests/gpu/check.sh compares of neighbours, GPU instances, links and processes."""

from __future__ import annotations

from typing import Any

import pytest
from gpu import compare, smi_log, smi_query

from ansible_collections.gpu.kubernetes.tests.unit.gpu.smi_samples import HEADING, Smi

MIB, GIB = smi_log.MIB, smi_log.GIB
# Of which matrix a row is says what is between the two GPUs.
ROW = r"(?m)^(GPU0\t X \tPXB\t.*)"
# What is said, what is said instead, and the difference that this is.
CHANGES = [
    (r"PXB(?=\tSYS\tNODE\t16)", "PIX", "GPU 0 peer 1 level: PXB here, PIX there"),
    (r"(PXB\t)SYS(?=\tNODE\t16)", r"\1NODE", "GPU 0 peer 2 level: SYS here, NODE there"),
    (ROW + "16-31,", r"\g<1>16-30,", "GPU 0 cpu_affinity: 16-31,48-63 here, 16-30,48-63 there"),
    (ROW + r"1\t\t2$", r"\g<1>0\t\t2", "GPU 0 numa_node: 1 here, 0 there"),
    (ROW + r"\t2$", r"\1\t5", "GPU 0 memory_numa_node: 2 here, 5 there"),
    ("C4:00.0", "C6:00.0", "GPU 0 nvlink 0 remote_pci_address: 0000:c4:00.0 here, 0000:c6:00.0 there"),
    ("3(?= +5:1)", "7", "GPU 0 gpu_instance 3 is known to one side alone"),
    ("3(?= +5:1)", "7", "GPU 0 gpu_instance 7 is known to one side alone"),
    ("9(?= +1 +0:3)", "5", "GPU 0 gpu_instance 1 profile_id: 9 here, 5.0 there"),
    ("3(?=g.40gb +9 +1 )", "4", "GPU 0 gpu_instance 1 slices: 3 here, 4.0 there"),
    ("0:3", "4:3", "GPU 0 gpu_instance 1 placement_start: 0 here, 4.0 there"),
    ("3:2", "3:1", "GPU 0 gpu_instance 2 placement_size: 2 here, 1.0 there"),
    ("39.50", "39.25", f"GPU 0 gpu_instance 1 memory_total_bytes: {40448 * MIB} here, {39.25 * GIB} there"),
    ("<pid>977", "<pid>978", "GPU 0 process_info 977 graphics is known to one side alone"),
    ("<pid>977", "<pid>978", "GPU 0 process_info 978 compute is known to one side alone"),
    (r"<type>C\+G", "<type>C", "GPU 0 process_info 977 graphics is known to one side alone"),
    (r"<type>C\+G", "<type>M+G", "GPU 0 process_info 977 mps is known to one side alone"),
    (
        "10240 MiB",
        "10000 MiB",
        f"GPU 0 process_info 4242 compute used_memory_bytes: {10240 * MIB} here, {float(10000 * MIB)} there",
    ),
    (
        "2048 MiB",
        "2148 MiB",
        f"GPU 0 process_info 4242 compute (2) used_memory_bytes: {2048 * MIB} here, {float(2148 * MIB)} there",
    ),
    (
        r"2(?=</gpu_instance_id><compute_instance_id>0</compute_instance_id>\s*<pid>)",
        "5",
        "GPU 0 process_info 4242 compute (2) gpu_instance_id: 2 here, 5.0 there",
    ),
    (
        r"0(?=</compute_instance_id>\s*<pid>4242</pid>)",
        "1",
        "GPU 0 process_info 4242 compute (2) compute_instance_id: 0 here, 1.0 there",
    ),
]


@pytest.mark.parametrize(("old", "new", "difference"), CHANGES)
def test_a_difference(facts: Any, smi: Smi, old: str, new: str, difference: str) -> None:
    assert compare.compare(facts, smi.log()).different == []
    smi.change(old, new)
    assert difference in compare.compare(facts, smi.log()).different


def test_what_is_not_told_is_no_match(facts: Any, smi: Smi) -> None:
    """A process outside of MIG is in no instance, an inactive link has no other end, and of all else something is told."""
    names = ("gpu_instance ", "nvlink ", "peer ", "process_info ")
    verdict = compare.compare(facts, smi.log())
    assert {name for name in verdict.untold if name.startswith(tuple(f"GPU 0 {name}" for name in names))} == {
        "GPU 0 nvlink 1 remote_pci_address",
        *(f"GPU 0 process_info 977 {kind} {name}" for kind in ("compute", "graphics") for name in smi_log.INSTANCES),
    }


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("", []),
        ("Failed to initialize NVML\n", []),
        (
            "\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t0-7\t\tN/A\t\tN/A\n",
            [("0", {"GPU0": "X", "CPU Affinity": "0-7", "NUMA Affinity": "N/A", "GPU NUMA ID": "N/A"})],
        ),
        # the line is underlined, and drivers up to 530 have no last column
        (
            "\x1b[4m\tGPU0\tmlx5_0\tCPU Affinity\tNUMA Affinity\x1b[0m\nGPU0\t X \tPIX\t0-7\t0-1\nmlx5_0\tPIX\t X \t\t\n",
            [("0", {"GPU0": "X", "mlx5_0": "PIX", "CPU Affinity": "0-7", "NUMA Affinity": "0-1"})],
        ),
        # no telling which of the cells is empty
        (
            "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tPHB\t\t0\nGPU1\tPHB\t X \t\t\n",
            [("0", {"GPU0": "X", "GPU1": "PHB"}), ("1", {"GPU0": "PHB", "GPU1": "X"})],
        ),
        (
            "        GPU0    GPU1    CPU Affinity    NUMA Affinity\nGPU0     X      NODE    0-7,16-23       0\n",
            [("0", {"GPU0": "X", "GPU1": "NODE", "CPU Affinity": "0-7,16-23", "NUMA Affinity": "0"})],
        ),
    ],
)
def test_matrix(text: str, rows: list[Any]) -> None:
    assert list(smi_query.matrix(text)) == rows


def test_links_hide_what_is_below_them(facts: Any, smi: Smi) -> None:
    """A driver that does not know the second question draws NVLinks alone: no level, and no difference."""
    smi.said["topo", "-mp"] = ""
    verdict = compare.compare(facts, smi.log())
    assert verdict.different == []
    assert "GPU 0 peer 1 level" in verdict.untold
    assert {"GPU 0 peer 2 level", "GPU 0 cpu_affinity"} <= set(verdict.same)


def test_a_peer_that_one_side_does_not_know(facts: Any, smi: Smi) -> None:
    facts["gpus"][0]["peers"] = facts["gpus"][0]["peers"][:1]
    assert compare.compare(facts, smi.log()).different == ["GPU 0 peer 2 is known to one side alone"]


def test_two_gpus_on_a_board(facts: Any, smi: Smi) -> None:
    smi.change(r"PXB(?=\tSYS\tNODE\t16)", "PIX")
    facts["gpus"][0]["peers"][0]["level"] = "internal"
    assert compare.compare(facts, smi.log()).different == []
    facts["gpus"][0]["peers"][0]["level"] = None
    assert compare.compare(facts, smi.log()).different == ["GPU 0 peer 1 level: nothing here, PIX there"]


@pytest.mark.parametrize(
    ("fact", "told", "found"),
    [
        (0, "0", "same"),
        (1, "0", "different"),
        (None, "0", "same"),
        (None, "1", "different"),
        (0, "0-1", "untold"),
        (0, "N/A", "untold"),
    ],
)
def test_numa_node(facts: Any, smi: Smi, fact: int | None, told: str, found: str) -> None:
    facts["gpus"][0]["numa_node"] = fact
    smi.said["topo", "-m"] = smi.said["topo", "-mp"] = f"{HEADING}GPU0\t X \tSYS\tSYS\tSYS\t0-7\t{told}\t\tN/A\n"
    verdict = compare.compare(facts, smi.log())
    names = {kind: {line.split(":")[0] for line in getattr(verdict, kind)} for kind in ("same", "different", "untold")}
    assert [kind for kind in names if "GPU 0 numa_node" in names[kind]] == [found]


@pytest.mark.parametrize(
    ("fact", "told", "same"),
    [
        ("0-15,32-47", "0-15,32-47", True),
        ("0,2,4,6,8,10,12,14", "0,2,4,6,8,10", True),
        ("0,2,4,6,8,11,12,14", "0,2,4,6,8,10", False),
        ("0,2,4", "0,2,4,6,8,10", False),
        ("0,2,4,6", "0,2,4", False),
        (None, "0-7", False),
    ],
)
def test_processors(facts: Any, smi: Smi, fact: str | None, told: str, same: bool) -> None:
    facts["gpus"][0]["cpu_affinity"] = fact
    for arguments in smi_query.MATRICES:
        smi.said[arguments] = smi.said[arguments].replace("16-31,48-63", told)
    assert ("GPU 0 cpu_affinity" in compare.compare(facts, smi.log()).same) == same


def test_gpu_instances_are_told_to_root_alone(facts: Any, smi: Smi) -> None:
    smi.said[smi_query.INSTANCES] = ""
    verdict = compare.compare({**facts, "gpus": [{**facts["gpus"][0], "gpu_instances": None}]}, smi.log())
    assert verdict.different == []
    assert "GPU 0 gpu_instances" in verdict.untold


def test_a_gpu_without_instances_beside_one_with_them(facts: Any, smi: Smi) -> None:
    smi.said[smi_query.INSTANCES] = smi.said[smi_query.INSTANCES].replace("|   0  MIG", "|   1  MIG")
    alone = [f"GPU 0 gpu_instance {number} is known to one side alone" for number in (1, 2, 3)]
    assert compare.compare(facts, smi.log()).different == alone
    facts["gpus"][0]["gpu_instances"] = []
    assert compare.compare(facts, smi.log()).different == []


def test_the_other_end_of_a_link_that_nvidia_smi_alone_knows(facts: Any, smi: Smi) -> None:
    facts["gpus"][0]["nvlinks"][0]["remote_pci_address"] = None
    (difference,) = compare.compare(facts, smi.log()).different
    assert difference == "GPU 0 nvlink 0 remote_pci_address: nothing here, 0000:c4:00.0 there"


NOBODY = "(?s)<processes>.*</processes>"


def test_no_process_is_an_answer_and_no_answer_is_none(facts: Any, smi: Smi) -> None:
    smi.change(NOBODY, "<processes>\n    </processes>")
    keys = ("4242 compute", "4242 compute (2)", "977 compute", "977 graphics")
    alone = [f"GPU 0 process_info {key} is known to one side alone" for key in keys]
    assert compare.compare(facts, smi.log()).different == alone
    smi.change(NOBODY, "<processes>N/A</processes>")
    verdict = compare.compare(facts, smi.log())
    assert verdict.different == []
    assert "GPU 0 processes" in verdict.untold
    facts["gpus"][0]["processes"] = None
    smi.change(NOBODY, "<processes/>")
    assert compare.compare(facts, smi.log()).different == []


@pytest.mark.parametrize(
    ("seen", "stays"),
    [
        ([978, 977], []),
        # others each time, as where programs start and end
        ([971, 972, 973, 974, 977], []),
        ([978] * compare.TRIES, [f"{pid} {kind}" for pid in (977, 978) for kind in ("compute", "graphics")]),
    ],
)
def test_only_a_process_that_stays_is_a_difference(facts: Any, smi: Smi, seen: list[int], stays: list[str]) -> None:
    def look() -> compare.Verdict:
        smi.change(r"<pid>97\d", f"<pid>{seen.pop(0)}")
        return compare.compare(facts, smi.log())

    alone = [f"GPU 0 process_info {key} is known to one side alone" for key in stays]
    assert compare.settled(look).different == alone
    assert seen == []


def test_memory_of_processes_may_move_a_little(facts: Any, smi: Smi) -> None:
    smi.change("10240 MiB", "10290 MiB")
    assert compare.compare(facts, smi.log()).different == []
