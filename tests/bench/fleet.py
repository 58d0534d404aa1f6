# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cost of many hosts on the controller: seconds, memory and requests to the API server, and their growth.

    make bench-fleet
    make bench-fleet ARGS="--hosts 5 20 --only plan labels --alone 500"

Playbooks run with stock Ansible against N fake nodes (tests/fakes/fleet), whose modules are answered from a file, and an API server on the
loopback, in its own process. The functions of the controller (labels, plan, readiness, report) are measured over lists of nodes, also for
thousands of them. The memory is that of ansible-playbook itself without its workers, which share most of it. It does not fail: it prints the
cost of one more host (the slope, in milliseconds of a processor), the cost of the most hosts relative to that of the fewest, what is over its limit,
and the errors of a run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fakes.kubernetes_api import GPU, FakeCluster, node, pod
from fakes.loopback_api import serve_in_thread, write_kubeconfig
from fakes.small_cluster import SmallCluster
from rich.console import Console
from rich.table import Table

from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.gpu_labels import build_gpu_labels
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.labels.apply import LabelRun, label_nodes
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.readiness import Query
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.survey import read_sharing_state, survey_nodes
from ansible_collections.gpu.kubernetes.plugins.module_utils._report.build import build_report
from ansible_collections.gpu.kubernetes.plugins.module_utils._report.page import build_page
from ansible_collections.gpu.kubernetes.plugins.module_utils._report.render import render_lines
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.node_state import Cluster
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.plan import plan_sharing, render_plan
from ansible_collections.gpu.kubernetes.plugins.plugin_utils._html_report import render_html

ROOT = Path(__file__).resolve().parents[2]
FLEET = ROOT / "tests" / "fakes" / "fleet"
GPUS = 8
#: The largest memory of the controller.
LIMIT_MB = 600
PLUGIN = {"name": "nvidia-device-plugin-ds"}
#: The largest resident memory of the process itself; forked workers end without atexit.
RECORD_MEMORY = """
import atexit, os, sys
def record(path=sys.argv.pop(1), pid=os.getpid()):
    if os.getpid() == pid:
        with open(path, "w") as file:
            file.write(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
atexit.register(record)
"""
ANSIBLE = f"{RECORD_MEMORY}\nfrom ansible.cli.playbook import main\nmain(['ansible-playbook', *sys.argv[1:]])\n"
FUNCTION = f"{RECORD_MEMORY}\nfrom bench.fleet import run_alone\nrun_alone(*sys.argv[1:])\n"
#: The playbooks of each measurement. The labels are set once before they are measured; kubelet_config runs on the controller and is left out.
PLAYBOOKS = {
    "plan": ["playbooks/plan.yml"],
    "labels": ["playbooks/label_gpu_nodes.yml"],
    "readiness": ["READINESS"],
    "report": ["playbooks/verify_gpu_cluster.yml"],
    "site": ["playbooks/site.yml", "--check", "--skip-tags", "reserve"],
}


class Cost(NamedTuple):
    """The cost of a run: hosts, seconds on the clock, seconds of processors, largest MiB, requests to the API server."""

    hosts: int
    wall: float
    cpu: float
    mib: float
    requests: int


def format_name(number: int) -> str:
    """The name of a host and of its node."""
    return f"gpu{number:04}"


def make_node(number: int) -> dict[str, Any]:
    """A node whose GPUs are all allocatable."""
    item = node(format_name(number), GPUS, labels={"kubernetes.io/hostname": format_name(number)})
    item["status"]["nodeInfo"] = {"containerRuntimeVersion": "containerd://2.1.4", "kubeletVersion": "v1.34.4"}
    return {"kind": "Node", "apiVersion": "v1", **item}


def make_pod(number: int) -> dict[str, Any]:
    """The pod of NVIDIA's device plugin on a node."""
    statuses = [{"name": "main", "ready": True, "state": {"running": {}}}]
    item = pod(
        f"nvidia-device-plugin-{number:04}",
        on=format_name(number),
        namespace="kube-system",
        labels=dict(PLUGIN),
        owner="nvidia-device-plugin-daemonset",
        status={"phase": "Running", "containerStatuses": statuses},
    )
    return {"kind": "Pod", "apiVersion": "v1", **item}


# -- the API server of the playbooks


def serve(hosts: int) -> None:
    """Serve until standard input is closed; each line there is answered with the number of requests since the last one."""
    objects = [
        {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "kube-system"}},
        {"kind": "RuntimeClass", "apiVersion": "node.k8s.io/v1", "metadata": {"name": "nvidia"}, "handler": "nvidia"},
        *map(make_node, range(hosts)),
        *map(make_pod, range(hosts)),
    ]
    cluster, requests = SmallCluster(*objects), []
    handler: Any = cluster.RequestHandlerClass

    class Counting(handler):
        def parse_request(self) -> bool:
            known = super().parse_request()
            requests.append(known)
            return known

    cluster.RequestHandlerClass = Counting
    with serve_in_thread(cluster) as server:
        print(server.url, flush=True)
        for _line in sys.stdin:
            print(sum(requests), flush=True)
            requests.clear()


class Fleet:
    """N fake nodes, their API server, and the files of a run."""

    def __init__(self, hosts: int, folder: Path) -> None:
        self.hosts, self.folder = hosts, folder
        command = [sys.executable, "-m", "bench.fleet", "--serve", str(hosts)]
        self.server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.server.stdout is not None
        kubeconfig = write_kubeconfig(self.server.stdout.readline().strip(), folder / "kubeconfig")
        variables = {
            "ansible_connection": "fake_node",
            "ansible_become": False,
            "ansible_python_interpreter": "/usr/bin/python3",
            "fake_node_answers": str(FLEET / "answers.json"),
            "gpu_kubeconfig": str(kubeconfig),
            "gpu_verify_report_path": str(folder / "report.json"),
            "gpu_verify_fail": False,
        }
        names = {format_name(number): {} for number in range(hosts)}
        (folder / "inventory.yml").write_text(json.dumps({"gpu_nodes": {"hosts": names, "vars": variables}}))
        (folder / "readiness.yml").write_text(json.dumps([self._readiness(str(kubeconfig))]))

    def _readiness(self, kubeconfig: str) -> dict[str, Any]:
        query = {"kubeconfig": kubeconfig, "expected": dict.fromkeys(map(format_name, range(self.hosts)), GPUS)}
        task = {"gpu.kubernetes.gpu_nodes_info": {**query, "wait": True, "wait_timeout": 60}}
        return {"hosts": "localhost", "gather_facts": False, "tasks": [task]}

    def count_requests(self) -> int:
        """The requests to the API server since the last call."""
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        print(file=self.server.stdin, flush=True)
        return int(self.server.stdout.readline())

    def run(self, arguments: Sequence[str]) -> tuple[Cost, str]:
        """Run ansible-playbook: its cost, and the end of its output if it failed."""
        words = [str(self.folder / "readiness.yml") if word == "READINESS" else word for word in arguments]
        environment = {
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_CONNECTION_PLUGINS": str(FLEET),
            "ANSIBLE_LOCALHOST_WARNING": "false",
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_PIPELINING": "1",
        }
        self.count_requests()
        output = self.folder / "output"
        command = [
            sys.executable,
            "-c",
            ANSIBLE,
            str(self.folder / "memory"),
            "-i",
            str(self.folder / "inventory.yml"),
            *words,
        ]
        status, wall, cpu, mib = measure(command, output, self.folder / "memory", environment)
        end = " ".join(output.read_text(encoding="utf-8", errors="replace").split())[-1500:] if status else ""
        return Cost(self.hosts, wall, cpu, mib, self.count_requests()), end

    def close(self) -> None:
        """End the API server."""
        assert self.server.stdin is not None
        self.server.stdin.close()
        self.server.wait()


def measure(
    command: Sequence[str], output: Path, memory: Path, environment: dict[str, str]
) -> tuple[int, float, float, float]:
    """Run a command that records its memory: exit status, seconds on the clock, seconds of processors with its children, MiB."""
    begin = time.perf_counter()
    with output.open("wb") as file:
        process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=file, stderr=file
        )
        _pid, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - begin
    mib = int(memory.read_text()) / 1024 if memory.exists() else 0
    return process.returncode, wall, usage.ru_utime + usage.ru_stime, mib


# -- the functions of the controller


def label_alone(nodes: int, facts: dict[str, Any]) -> int:
    """Label all nodes, and once more without a change; the number of requests of the second time."""
    cluster = FakeCluster(list(map(make_node, range(nodes))))
    run = LabelRun({format_name(number): build_gpu_labels(facts)[0] for number in range(nodes)}, "gpu_node_labels")
    label_nodes(cluster, run)
    cluster.calls.clear()
    label_nodes(cluster, run)
    return len(cluster.calls)


def plan_alone(nodes: int, _facts: dict[str, Any]) -> int:
    """Plan that half of the nodes change their strategy; the number of requests."""
    cluster = FakeCluster(list(map(make_node, range(nodes))), list(map(make_pod, range(nodes))))
    strategies = {format_name(number): "gpushare" if number % 2 else "exclusive" for number in range(nodes)}
    state = read_sharing_state(cluster, strategies)
    hosts = [{"host": name, "node": name, "strategy": strategy, "gpus": GPUS} for name, strategy in strategies.items()]
    render_plan(plan_sharing(hosts, state.nodes, Cluster(labelled=state.labelled)))
    return len(cluster.calls)


def survey_alone(nodes: int, _facts: dict[str, Any]) -> int:
    """Compare the GPUs of all nodes with the expected ones; the number of requests."""
    cluster = FakeCluster(list(map(make_node, range(nodes))), list(map(make_pod, range(nodes))))
    survey_nodes(cluster, Query(), dict.fromkeys(map(format_name, range(nodes)), GPUS))
    return len(cluster.calls)


def observe_alone(nodes: int, facts: dict[str, Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The observations of all nodes, and the cluster, as the report reads them."""
    answers = json.loads((FLEET / "answers.json").read_text(encoding="utf-8"))
    names = list(map(format_name, range(nodes)))
    common = {
        "require_gpu": True,
        "nvml": facts,
        "runtime": answers["container_runtime_health_info"],
        "daemon": "containerd",
        "toolkit": answers["container_runtime_info"]["toolkit"],
        "configuration": answers["containerd_config"],
    }
    entry = {"expected": GPUS, "capacity": GPUS, "allocatable": GPUS, "ready": True, "schedulable": True, "ok": True}
    cluster = {
        "nodes": [{"name": name, **entry, "reason": ""} for name in names],
        "smoke": [{"node": name, "passed": True} for name in names],
        "hosts": names,
        "runtime_class": {"name": "nvidia", "found": True, "handler": "nvidia", "expected_handler": "nvidia"},
        "resource_name": GPU,
    }
    return [{**common, "host": name, "node": name} for name in names], cluster


def report_alone(nodes: int, facts: dict[str, Any]) -> int:
    """Build and render the report and its differences to an earlier one; it makes no request."""
    observations, cluster = observe_alone(nodes, facts)
    names = cluster["hosts"]
    report = build_report(observations, cluster)
    render_lines(build_report(observations, cluster, earlier=report), hosts=names, tested=names)
    return 0


def page_alone(nodes: int, facts: dict[str, Any]) -> int:
    """Build the report and render its page, compared with an earlier one; it makes no request."""
    report = build_report(*observe_alone(nodes, facts))
    render_html(build_page(report, earlier=report), "en", "", "gpu-report.json", 0)
    return 0


FUNCTIONS: dict[str, Callable[[int, dict[str, Any]], int]] = {
    "labels": label_alone,
    "plan": plan_alone,
    "readiness": survey_alone,
    "report": report_alone,
    "page": page_alone,
}


def run_alone(name: str, nodes: str) -> None:
    """Run one of FUNCTIONS in this process, and print the number of requests."""
    answers = json.loads((FLEET / "answers.json").read_text(encoding="utf-8"))
    print(FUNCTIONS[name](int(nodes), answers["nvml_facts"]["ansible_facts"]["nvml"]))


def measure_alone(name: str, nodes: int, folder: Path) -> tuple[Cost, str]:
    """The cost of one of FUNCTIONS in a process of its own, and its output if it failed."""
    output, memory = folder / "output", folder / "memory"
    memory.unlink(missing_ok=True)
    command = [sys.executable, "-c", FUNCTION, str(memory), name, str(nodes)]
    status, wall, cpu, mib = measure(command, output, memory, {})
    text = output.read_text(encoding="utf-8")
    requests = int(text.split()[-1]) if not status else 0
    return Cost(nodes, wall, cpu, mib, requests), " ".join(text.split())[-1500:] if status else ""


# -- the results


def find_slope(costs: Sequence[Cost], value: Callable[[Cost], float]) -> float:
    """The increase of a value for one more host, by least squares."""
    count = len(costs)
    hosts, values = sum(cost.hosts for cost in costs) / count, sum(map(value, costs)) / count
    spread = sum((cost.hosts - hosts) ** 2 for cost in costs)
    return sum((cost.hosts - hosts) * (value(cost) - values) for cost in costs) / spread if spread else 0.0


def find_excess(name: str, costs: Sequence[Cost]) -> list[str]:
    """What grows by more than a tenth above the hosts (processor time), is over LIMIT_MB (memory), or grows at all (requests)."""
    first, last = costs[0], costs[-1]
    return [
        *(["time"] if last.cpu > 1.1 * first.cpu * last.hosts / first.hosts else []),
        *(["memory"] if last.mib * 1.024**2 > LIMIT_MB else []),
        *(["requests"] if name != "site" and last.requests != first.requests else []),
    ]


def add_growth(view: Table, name: str, costs: Sequence[Cost]) -> None:
    """Add the row of one measurement: slopes, the costs of the most hosts relative to those of the fewest, and what is over its limit."""
    first, last = costs[0], costs[-1]
    view.add_row(
        name,
        f"{first.hosts} to {last.hosts}",
        f"{1000 * find_slope(costs, lambda cost: cost.cpu):.1f}",
        f"{1024 * find_slope(costs, lambda cost: cost.mib):.0f}",
        f"{last.cpu / first.cpu:.1f} of {1.1 * last.hosts / first.hosts:.1f}",
        f"{last.mib * 1.024**2:.0f} of {LIMIT_MB}",
        f"{first.requests} to {last.requests}",
        ", ".join(find_excess(name, costs)) or "none",
    )


def add_rows(view: Table, name: str, costs: Sequence[Cost]) -> None:
    """Add a row for each size."""
    for cost in costs:
        view.add_row(
            name, str(cost.hosts), f"{cost.wall:.1f}", f"{cost.cpu:.1f}", f"{cost.mib:.0f}", str(cost.requests)
        )


def run_playbooks(sizes: Sequence[int], names: Sequence[str]) -> tuple[dict[str, list[Cost]], list[str]]:
    """Measure playbooks on fleets of all sizes: costs by name, and errors."""
    costs: dict[str, list[Cost]] = {name: [] for name in names}
    errors = []
    for size in sizes:
        with tempfile.TemporaryDirectory() as scratch:
            fleet = Fleet(size, Path(scratch))
            try:
                if "labels" in names:
                    fleet.run(PLAYBOOKS["labels"])
                for name in names:
                    cost, end = fleet.run(PLAYBOOKS[name])
                    costs[name].append(cost)
                    # What an interrupted run leaves.
                    figures = f"{cost.cpu:.1f} s of processors, {cost.mib:.0f} MiB, {cost.requests} requests"
                    print(f"{name} with {size} hosts: {cost.wall:.0f} s, {figures}", file=sys.stderr, flush=True)
                    errors += [f"{name} with {size} hosts: {end}"] if end else []
            finally:
                fleet.close()
    return costs, errors


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench.fleet", description=__doc__)
    parser.add_argument("--hosts", type=int, nargs="*", default=[50, 200, 500], help="fleets for the playbooks")
    parser.add_argument(
        "--alone", type=int, nargs="*", default=[500, 5000], help="nodes for the functions of the controller"
    )
    parser.add_argument("--only", nargs="*", choices=list(PLAYBOOKS), default=list(PLAYBOOKS), help="the playbooks")
    parser.add_argument("--serve", type=int, help="serve the API of this number of nodes")
    arguments = parser.parse_args()
    if arguments.serve is not None:
        serve(arguments.serve)
        return
    view = Table("(fake nodes)", "hosts", "seconds", "of processors", "MiB", "requests")
    growth = Table("growth", "hosts", "ms a host", "KiB a host", "times the time", "MB", "requests", "over its limit")
    costs, errors = run_playbooks(sorted(arguments.hosts), arguments.only)
    alone: dict[str, list[Cost]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name in FUNCTIONS if arguments.alone else ():
            measured = [measure_alone(name, size, Path(scratch)) for size in sorted(arguments.alone)]
            alone[f"{name} alone"] = [cost for cost, _end in measured]
            errors += [f"{name} alone: {end}" for _cost, end in measured if end]
    rows = {name: found for name, found in {**costs, **alone}.items() if found}
    for name, found in rows.items():
        add_rows(view, name, found)
        add_growth(growth, name, found)
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(view, growth)
    for each in errors:
        print(f"error: {each}")


if __name__ == "__main__":
    main()
