# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``nvidia-smi -q -x`` leaves out and other commands of nvidia-smi tell, put where smi_log looks for it. Runs on Python 3.8."""

from __future__ import annotations

import re
from typing import Callable, Iterator, Mapping, Sequence
from xml.etree import ElementTree

from gpu import smi_log

Element = ElementTree.Element
Ask = Callable[[Sequence[str]], str]
#: What of ``--query-gpu`` the log has not, or not always.
QUERY = (
    "uuid",
    "compute_cap",
    *(smi_log.query(kind, since) for kind in ("corrected", "uncorrected") for since in ("volatile", "aggregate")),
)
VERSIONS = ("--version",)
LISTING = ("-L",)
STATUS = ("nvlink", "--status")
REMOTES = ("nvlink", "--pcibusid")
TOTALS = (f"--query-gpu={','.join(QUERY)}", "--format=csv,noheader,nounits")
#: The second leaves NVLinks out, of which the first draws no more than how many they are.
MATRICES = (("topo", "-m"), ("topo", "-mp"))
#: Of GPU instances and their kinds; root is told.
INSTANCES = ("mig", "-lgi")
PROFILES = ("mig", "-lgip")

NVML = re.compile(r"^NVML version\s*:\s*(\S+)", re.MULTILINE)
HEADING = re.compile(r"GPU (\d+): .*\(UUID: (\S+)\)")
MIG = re.compile(r"^\s+MIG (\S+)\s+Device\s+(\d+): \(UUID: (\S+)\)", re.MULTILINE)
NVLINK = re.compile(r"^\s+Link (\d+): (.+)$", re.MULTILINE)
ADDRESS = re.compile(r"\b[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]\b", re.IGNORECASE)
# GPU, profile's slices and id, its own id, placement
INSTANCE = re.compile(r"^\|\s+(\d+)\s+MIG (\d+)g\S*\s+(\d+)\s+(\d+)\s+(\d+):(\d+)\s+\|", re.MULTILINE)
# GPU, id, GiB
PROFILE = re.compile(r"^\|\s+(\d+)\s+MIG \S+\s+(\d+)\s+\d+/\d+\s+([\d.]+)\s", re.MULTILINE)
#: nvidia-smi underlines the heading of a matrix, on whatever it writes.
UNDERLINE = re.compile(r"\x1b\[[\d;]*m")
CELLS = re.compile(r"\s{2,}|\t")
GPU = re.compile(r"GPU(\d+)")
BONDED = re.compile(r"NV\d+")
NEAR = {"CPU Affinity": "cpu_affinity", "NUMA Affinity": "numa_affinity", "GPU NUMA ID": "gpu_numa_id"}


def complete(log: Element, ask: Ask) -> None:
    """Put into a log what nvidia-smi tells when it is asked with other arguments."""
    version = NVML.search(ask(VERSIONS))
    if version:
        _put(log, {"nvml_version": version.group(1)})
    gpus = {gpu.findtext("uuid", ""): gpu for gpu in log.iterfind("gpu")}
    _number(gpus, ask)
    _link(gpus, ask)
    for line in ask(TOTALS).splitlines():
        its_uuid, *values = line.split(", ")
        if its_uuid in gpus:
            _put(gpus[its_uuid], dict(zip(QUERY[1:], values)))
    numbered = {gpu.findtext("index", ""): gpu for gpu in gpus.values()}
    _divide(numbered, ask)
    _place(numbered, ask)


def matrix(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """(number of a GPU, its cells by their heading) of each row that is a GPU's.

    A row of another length than the heading lacks something behind the GPUs, which are drawn first: only they are taken.
    """
    heading: list[str] = []
    for line in UNDERLINE.sub("", text).splitlines():
        name, *cells = CELLS.split(line.strip())
        row = GPU.fullmatch(name)
        if row and "CPU Affinity" in cells:
            heading = [name, *cells]
        elif row and heading:
            known = len(heading) if len(cells) == len(heading) else sum(1 for each in heading if GPU.fullmatch(each))
            yield row.group(1), dict(list(zip(heading, cells))[:known])


def _number(gpus: Mapping[str, Element], ask: Ask) -> None:
    for gpu, index, block in _blocks(ask(LISTING), gpus):
        _put(gpu, {"index": index})
        for profile, number_on_gpu, its_uuid in MIG.findall(block):
            part = gpu.find(f"mig_devices/mig_device[index='{number_on_gpu}']")
            if part is not None:
                _put(part, {"uuid": its_uuid, "name": f"{gpu.findtext('product_name')} MIG {profile}"})


def _link(gpus: Mapping[str, Element], ask: Ask) -> None:
    for gpu, _index, block in _blocks(ask(STATUS), gpus):
        links = NVLINK.findall(block)
        if links:
            place = ElementTree.SubElement(gpu, "nvlinks")
            for link, state in links:
                _put(ElementTree.SubElement(place, "nvlink"), {"link": link, "state": state})
    for gpu, _index, block in _blocks(ask(REMOTES), gpus):
        for link, text in NVLINK.findall(block):
            part, remote = gpu.find(f"nvlinks/nvlink[link='{link}']"), ADDRESS.search(text)
            # an inactive link has no other end
            if part is not None and remote and smi_log.works(part.findtext("state", "-")):
                _put(part, {"remote": remote.group()})


def _divide(gpus: Mapping[str, Element], ask: Ask) -> None:
    """GPU instances; where none is listed at all, it is not known whether there are none."""
    found = INSTANCE.findall(ask(INSTANCES))
    memory = {(gpu, profile): gib for gpu, profile, gib in PROFILE.findall(ask(PROFILES))}
    for index, gpu in gpus.items() if found else ():
        place = ElementTree.SubElement(gpu, "gpu_instances")
        for _index, slices, profile, its_id, start, size in (row for row in found if row[0] == index):
            texts = {"id": its_id, "profile_id": profile, "slices": slices, "memory": memory.get((index, profile), "")}
            texts.update(placement_start=start, placement_size=size)
            _put(ElementTree.SubElement(place, "gpu_instance"), texts)


def _place(gpus: Mapping[str, Element], ask: Ask) -> None:
    """What is near a GPU, and its peers: of those that are linked nothing is known if only the links are drawn."""
    rows: dict[str, dict[str, str]] = {}
    for arguments in MATRICES:
        for index, cells in matrix(ask(arguments)):
            drawn = {name: "" if BONDED.fullmatch(cell) else cell for name, cell in cells.items()}
            before = rows.get(index, {})
            rows[index] = {name: drawn.get(name) or before.get(name, "") for name in [*before, *drawn]}
    for index, cells in rows.items():
        if index not in gpus:
            continue
        near = ElementTree.SubElement(gpus[index], "topology")
        _put(near, {name: cells[heading] for heading, name in NEAR.items() if heading in cells})
        peers = ElementTree.SubElement(gpus[index], "peers")
        for name, level in cells.items():
            other = GPU.fullmatch(name)
            if other and other.group(1) != index:
                _put(ElementTree.SubElement(peers, "peer"), {"index": other.group(1), "level": level})


def _blocks(text: str, gpus: Mapping[str, Element]) -> Iterator[tuple[Element, str, str]]:
    """(GPU, its index, what follows) of each ``GPU 0: NAME (UUID: ...)``."""
    for block in re.split(r"^(?=GPU \d)", text, flags=re.MULTILINE):
        heading = HEADING.match(block)
        if heading and heading.group(2) in gpus:
            yield gpus[heading.group(2)], heading.group(1), block


def _put(place: Element, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        ElementTree.SubElement(place, name).text = text
