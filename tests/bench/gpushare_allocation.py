# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cost of gpushare_info on a cluster of 5,000 nodes with 8 GPUs each, every second one with time slicing, and 100,000 pods of 3.8 KiB.

    make bench-gpushare

An API server on the loopback sends the same pages to three clients, each in a fresh process: the module, a client that only parses
each page, and a client that only reads the bytes. The differences are the cost of the module. It prints seconds, the peak memory of
the client, the processor time relative to the client that parses, and each problem of an answer.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from fakes.loopback_api import LoopbackApi, Source, serve_in_thread, write_kubeconfig
from rich.console import Console
from rich.table import Table

GPUS, UNITS, REPLICAS = 8, 80, 4
SLICED = "nvidia.com/gpu"
# The size of a pod in the measurements of other tools.
POD_BYTES = 3891
FIELDS = {
    "f:metadata": {"f:annotations": {}, "f:labels": {"f:app": {}}},
    "f:spec": {"f:containers": {}},
    "f:status": {},
}

# Each client is a process, as Ansible starts a module.
PEAK_MEMORY = """
import atexit, sys
atexit.register(lambda: [sys.stderr.write(line) for line in open("/proc/self/status") if line.startswith("VmHWM")])
"""
MODULE = """
import pkgutil
import ansible_collections
ansible_collections.__path__ = pkgutil.extend_path(ansible_collections.__path__, "ansible_collections")
from ansible.module_utils import basic
basic._ANSIBLE_ARGS, basic._ANSIBLE_PROFILE = sys.argv[1].encode(), "legacy"
from ansible_collections.gpu.kubernetes.plugins.modules import gpushare_info
gpushare_info.main()
"""
READER = """
import http.client, json, re, urllib.parse
server = urllib.parse.urlsplit(sys.argv[1])
connection = http.client.HTTPConnection(server.hostname, server.port)
for path in ("nodes", "pods"):
    token = ""
    while token is not None:
        connection.request("GET", f"/api/v1/{path}?limit=500" + (f"&continue={token}" if token else ""))
        page = connection.getresponse().read()
        sys.argv[2:] and json.loads(page)
        found = re.search(rb'"continue": "(\\d+)"', page[:200])
        token = found.group(1).decode() if found else None
"""


def is_sliced(node: int) -> bool:
    """Whether the node has time slicing instead of gpushare."""
    return node % 2 == 1


def make_node(number: int) -> dict[str, Any]:
    """A node with its GPUs."""
    amounts = {"cpu": "128", "memory": "1056Gi", "pods": "110"}
    if is_sliced(number):
        amounts[SLICED] = str(GPUS * REPLICAS)
    else:
        amounts.update({"aliyun.com/gpu-mem": str(GPUS * UNITS), "aliyun.com/gpu-count": str(GPUS)})
    addresses = [{"type": "InternalIP", "address": f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"}]
    conditions = [{"type": "Ready", "status": "True", "message": "kubelet is posting ready status"}]
    return {
        "metadata": {
            "name": f"node-{number:05}",
            "labels": {"nvidia.com/gpu.count": str(GPUS)},
            "resourceVersion": "1",
        },
        "spec": {"podCIDR": "10.244.0.0/24"},
        "status": {"capacity": amounts, "allocatable": amounts, "addresses": addresses, "conditions": conditions},
    }


def make_pod(number: int, nodes: int) -> dict[str, Any]:
    """A pod with 5 units of a GPU, or with a replica; each GPU has the same number of pods."""
    place = number % (nodes * GPUS)
    sliced = is_sliced(place % nodes)
    resource, units = (SLICED, "1") if sliced else ("aliyun.com/gpu-mem", "5")
    annotations = (
        {}
        if sliced
        else {
            "ALIYUN_COM_GPU_MEM_IDX": str(place // nodes),
            "ALIYUN_COM_GPU_MEM_POD": "5",
            "ALIYUN_COM_GPU_MEM_DEV": str(UNITS),
            "ALIYUN_COM_GPU_MEM_ASSIGNED": "true",
            "ALIYUN_COM_GPU_MEM_ASSUME_TIME": f"17{number:017}",
        }
    )
    mounts = [
        {"name": "kube-api-access", "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
    ]
    container = {
        "name": "main",
        "image": "registry.example.com/team/inference-server:2.4.1",
        "command": ["/usr/bin/serve", "--port", "8080"],
        "env": [{"name": f"SETTING_{each}", "value": f"value-{each}"} for each in range(8)],
        "resources": {
            "limits": {resource: units, "cpu": "2"},
            "requests": {resource: units, "cpu": "1"},
        },
        "volumeMounts": mounts,
    }
    found: dict[str, Any] = {
        "metadata": {
            "name": f"inference-{number:06}",
            "namespace": f"team-{number % 97}",
            "uid": f"{number:08x}-0000-4000-8000-{number:012x}",
            "resourceVersion": str(number),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": "inference", "pod-template-hash": "6d4cf56db6"},
            "annotations": annotations,
            "managedFields": [
                {
                    "manager": who,
                    "operation": "Update",
                    "apiVersion": "v1",
                    "time": "2026-01-01T00:00:00Z",
                    "fieldsV1": FIELDS,
                }
                for who in ("kube-controller-manager", "gpushare-schd-extender", "kubelet")
            ],
        },
        "spec": {
            "nodeName": f"node-{place % nodes:05}",
            "containers": [container],
            "volumes": [{"name": "kube-api-access", "projected": {"defaultMode": 420}}],
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
            "serviceAccountName": "default",
        },
        "status": {
            "phase": "Running",
            "podIP": "10.244.0.2",
            "conditions": [
                {"type": kind, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
                for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
            ],
        },
    }
    annotations["example.com/note"] = "x" * (POD_BYTES - len(json.dumps(found)) - len('"example.com/note": "", '))
    return found


def encode_list(count: int, make: Any) -> Source:
    """A list that is encoded before the first request, so that the server costs little."""
    items = [json.dumps(make(number)).encode() for number in range(count)]
    return count, lambda first, last: b",".join(items[first:last])


def serve(nodes: int, pods: int) -> None:
    """Serve until stdin is closed. For each line of it, print counts since the last one: requests, repeated pages, methods."""
    lists = {
        "/api/v1/nodes": encode_list(nodes, make_node),
        "/api/v1/pods": encode_list(pods, lambda number: make_pod(number, nodes)),
    }
    with serve_in_thread(LoopbackApi(lists)) as server:
        print(server.url, flush=True)
        for _line in sys.stdin:
            pages = [(path, query.get("continue", "")) for _method, path, query in server.requests]
            methods = sorted({method for method, _path, _query in server.requests})
            counts = {"requests": len(pages), "twice": len(pages) - len({*pages}), "methods": methods}
            print(json.dumps(counts), flush=True)
            server.requests.clear()


MODULES = {"gpushare_info": True, "gpushare_info, pods: false": False}
PARSES, READS = "parses the pages only", "reads the bytes only"


class Cost(NamedTuple):
    """The cost of a client: seconds on the clock, seconds of a processor, peak memory in MiB."""

    wall: float
    cpu: float
    mib: float

    def cells(self) -> list[str]:
        """For a table."""
        return [f"{self.wall:.1f}", f"{self.cpu:.1f}", f"{self.mib:.0f}"]


def measure(program: str, *arguments: str, output: int = subprocess.DEVNULL) -> Cost:
    """Run a Python program that prints its peak memory on stderr: the value of wait4() includes this process."""
    begin = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", PEAK_MEMORY + program, *arguments], stdout=output, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    errors = process.stderr.read()
    _pid, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"the client ended with {process.returncode}: {errors}")
    wall = time.perf_counter() - begin
    return Cost(wall, usage.ru_utime + usage.ru_stime, int(errors.split()[-2]) / 1024)


def read_counts(server: subprocess.Popen[str]) -> dict[str, Any]:
    """Read the server's counts since the last call."""
    assert server.stdin is not None
    assert server.stdout is not None
    print(file=server.stdin, flush=True)
    return dict(json.loads(server.stdout.readline()))


def find_problems(answer: dict[str, Any], counts: dict[str, Any], nodes: int, pods: int) -> list[str]:
    """The problems of an answer and of its requests."""
    found = []
    sliced = sum(is_sliced(number % (nodes * GPUS) % nodes) for number in range(pods))
    sums = [answer["cluster"], *answer["totals"]]
    expected = [(5 * (pods - sliced), (nodes - nodes // 2) * GPUS * UNITS), (sliced, nodes // 2 * GPUS * REPLICAS)]
    if [(each["allocated"], each["total"]) for each in sums] != expected:
        found.append(f"the cluster has {sums}, not {expected}")
    shown = len(answer["nodes"]) + len(answer["resources"])
    if shown != nodes or answer["findings"] or answer["unit"] != "GiB":
        found.append(f"{shown} nodes, {len(answer['findings'])} findings, unit {answer['unit']!r}")
    if counts["twice"] or counts["methods"] != ["GET"]:
        found.append(f"{counts['twice']} pages were fetched twice, by {counts['methods']}")
    return found


def compute_ratios(costs: dict[str, list[Cost]]) -> list[str]:
    """The processor time of each module relative to parsing; the best round counts."""
    parsing = min(cost.cpu for cost in costs[PARSES])
    return [
        f"{name}: {min(cost.cpu for cost in costs[name]) / parsing:.1f} times as long as parsing" for name in MODULES
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench.gpushare_allocation", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--serve", action="store_true", help="be the server")
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.nodes, arguments.pods)
        return
    sizes = ["--nodes", str(arguments.nodes), "--pods", str(arguments.pods)]
    command = [sys.executable, "-m", "bench.gpushare_allocation", "--serve", *sizes]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server,
        tempfile.TemporaryDirectory() as scratch,
    ):
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        kubeconfig = write_kubeconfig(url, Path(scratch, "kubeconfig"))
        view = Table("client", "seconds", "of a processor", "MiB", "requests")
        found: list[str] = []
        costs: dict[str, list[Cost]] = {name: [] for name in (*MODULES, PARSES, READS)}
        for _round in range(arguments.rounds):
            for name, measured in costs.items():
                if name in MODULES:
                    module = {"ANSIBLE_MODULE_ARGS": {"kubeconfig": str(kubeconfig), "pods": MODULES[name]}}
                    with open(Path(scratch, "answer"), "wb") as output:
                        measured.append(measure(MODULE, json.dumps(module), output=output.fileno()))
                else:
                    measured.append(measure(READER, url, *(["parse"] if name == PARSES else [])))
                counts = read_counts(server)
                if name in MODULES:
                    answer = json.loads(Path(scratch, "answer").read_text(encoding="utf-8"))
                    found += find_problems(answer, counts, arguments.nodes, arguments.pods)
                view.add_row(name, *measured[-1].cells(), str(counts["requests"]))
        Console(width=None if sys.stdout.isatty() else 120).print(view)
    for line in (*compute_ratios(costs), *(f"wrong: {problem}" for problem in found)):
        print(line)


if __name__ == "__main__":
    main()
