# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults reach people: a fake of the exporters, the role's files in a real Prometheus, a real Alertmanager, and its webhook."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import prometheus, wait

from ansible_collections.gpu.kubernetes.plugins.module_utils._monitoring import alerts
from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import HERE

SECONDS = 60


class Fakes(prometheus.Webhook):
    """A fake of the exporters of all nodes and of kube-state-metrics, each at a path of its own, and the webhook of Alertmanager."""

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.texts: dict[str, str] = {}


class _Handler(prometheus.WebhookHandler):
    server: Fakes

    def do_GET(self) -> None:  # noqa: N802
        text = self.server.texts.get(self.path)
        self.send_response(503 if text is None else 200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write((text or "").encode())


def describe_node(uuids: str = "ab", utilization: float = 0.5, **more: object) -> str:
    """What a healthy exporter reports of a node with two GPUs; *more* replaces values of the first GPU."""
    values = {
        "clocks_event_reasons_hw_thermal_slowdown": 0,
        "temperature_gpu_tlimit": 30,
        "ecc_errors_uncorrected_volatile_total": 0,
        "remapped_rows_failure": 0,
        "gpu_recovery_action": 0,
        **more,
    }
    lines = [f'nvidia_smi_gpu_info{{uuid="{uuid}",name="A100"}} 1' for uuid in uuids]
    lines += [f'nvidia_smi_utilization_gpu_ratio{{uuid="{uuid}"}} {utilization}' for uuid in uuids]
    lines += [f'nvidia_smi_{name}{{uuid="a"}} {value}' for name, value in values.items() if uuids]
    return "\n".join([*lines, f"nvidia_smi_last_collect_success {int(bool(uuids))}"]) + "\n"


def describe_cluster(allocatable: int = 2, plugin: int = 2, pod_node: str | None = None, pending: bool = False) -> str:
    """What kube-state-metrics reports of the nodes ``capacity`` and ``plugin``, and of pods."""
    lines = [f'kube_node_info{{node="{node}"}} 1' for node in ("capacity", "plugin")]
    for node, number in (("capacity", allocatable), ("plugin", plugin)):
        labels = f'node="{node}",resource="nvidia_com_gpu",unit="integer"'
        lines.append(f"kube_node_status_allocatable{{{labels}}} {number}")
        lines.append(f"kube_node_status_capacity{{{labels}}} {2 if node == 'capacity' else number}")
    pods = [("idle", pod_node)] if pod_node else []
    for name, node in [*pods, *([("pending", "")] if pending else [])]:
        labels = f'namespace="ml",pod="{name}",container="c",node="{node}",resource="nvidia_com_gpu",unit="integer"'
        lines.append(f"kube_pod_container_resource_requests{{{labels}}} 1")
    return "\n".join(lines) + "\n"


#: Node -> what its exporter reports with the fault (None: it does not answer), and the alert. Each node has one fault, so that all are there at once.
FAULTS: dict[str, tuple[str | None, str]] = {
    "lost": (describe_node("a"), "GpuMissing"),
    "hung": (describe_node(""), "GpuCollectionFailing"),
    "xid": (describe_node() + 'nvidia_smi_xid_last_timestamp_seconds{uuid="a",xid="79"} NOW\n', "GpuXid"),
    "ecc": (describe_node(ecc_errors_uncorrected_volatile_total=1), "GpuUncorrectedEcc"),
    "remap": (describe_node(remapped_rows_failure=1), "GpuRowRemapFailed"),
    "hot": (describe_node(clocks_event_reasons_hw_thermal_slowdown=1), "GpuThrottled"),
    "margin": (describe_node(temperature_gpu_tlimit=3), "GpuTemperatureMarginLow"),
    "recovery": (describe_node(gpu_recovery_action=1), "GpuRecoveryActionNeeded"),
    "killed": (None, "GpuExporterDown"),
    # The cluster reports the faults of these.
    "capacity": (describe_node(), "GpuAllocatableBelowCapacity"),
    "plugin": (describe_node(), "GpuPluginAbsent"),
    "idle": (describe_node(utilization=0), "GpuIdleButAllocated"),
}
HEALTHY = {node: describe_node(utilization=0 if node == "idle" else 0.5) for node in FAULTS}


@pytest.fixture
def fakes() -> Iterator[Fakes]:
    with Fakes().serve() as server:
        yield server


def report(fakes: Fakes, texts: dict[str, str | None], cluster: str) -> None:
    """Set what the fakes report."""
    fakes.texts = {
        f"/{node}": text.replace("NOW", str(time.time())) for node, text in texts.items() if text is not None
    }
    fakes.texts["/cluster"] = cluster


def test_faults_fire_their_alerts_alone_and_resolve(fakes: Fakes, run, tmp_path: Path) -> None:
    address = fakes.address
    report(fakes, dict(HEALTHY), describe_cluster())
    folder = tmp_path / "etc"
    folder.mkdir()
    with prometheus.Alertmanager(tmp_path / "alertmanager", f"http://{address}/webhook") as alertmanager:
        config = {
            "global": {"scrape_interval": "500ms", "scrape_timeout": "500ms", "evaluation_interval": "500ms"},
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": [alertmanager.address]}]}]},
            "scrape_configs": [
                {
                    "job_name": "cluster",
                    "honor_labels": True,
                    "metrics_path": "/cluster",
                    "static_configs": [{"targets": [address]}],
                }
            ],
        }
        (folder / "prometheus.yml").write_text(json.dumps(config))
        with prometheus.Prometheus(folder) as server:
            deploy(run, server, address, tmp_path)
            # Prometheus has seen all nodes before they get faults.
            query = "/api/v1/query?query=count(gpu:present)"
            wait.until(
                lambda: json.loads(server.get(query))["data"]["result"], _counts(2 * len(FAULTS)), seconds=SECONDS
            )
            fakes.statuses.clear()
            report(fakes, {node: text for node, (text, _alert) in FAULTS.items()}, describe_cluster(1, 0, "idle", True))
            expected = {(alert, node) for node, (_text, alert) in FAULTS.items()} | {("GpuPodPending", "pending")}
            wait.until(fakes.read_firing, lambda found: found >= expected, seconds=SECONDS)
            time.sleep(3)  # no other alert comes later
            assert fakes.read_firing() == expected
            report(fakes, dict(HEALTHY), describe_cluster())
            wait.until(fakes.read_firing, lambda found: not found, seconds=SECONDS)
            for target in (folder / "gpu-targets").iterdir():
                target.unlink()
            wait.until(fakes.read_firing, lambda found: found == {("GpuExporterAbsent", "")}, seconds=SECONDS)


def _counts(number: int):
    return lambda result: [each["value"][1] for each in result] == [str(number)]


def deploy(run, server: prometheus.Prometheus, address: str, folder: Path) -> None:
    """Run the role for all nodes. Alerts hold for two seconds, so that none fires while the first values arrive."""
    hosts = {
        node: {
            "gpu_exporter_target": {"address": address, "exporter": "fake", "scheme": "http"},
            "gpu_node_name": node,
            "gpu_prometheus_expected_gpus": 2,
            "gpu_prometheus_labels": {"path": node},
        }
        for node in FAULTS
    }
    playbook = folder / "play.yml"
    playbook.write_text(
        json.dumps([{"hosts": "all", "gather_facts": False, "roles": ["gpu.kubernetes.gpu_prometheus"]}])
    )
    # The fakes have one port, and a path for each node.
    relabel = [{"source_labels": ["path"], "regex": "(.+)", "target_label": "__metrics_path__", "replacement": "/$1"}]
    code, output = run(
        {"all": {"hosts": hosts, "vars": HERE}},
        playbook,
        gpu_prometheus_host="localhost",
        gpu_prometheus_config_path=str(server.config),
        gpu_prometheus_promtool=str(prometheus.programs() / "promtool"),
        gpu_prometheus_reload="http",
        gpu_prometheus_url=server.url,
        gpu_prometheus_state_dir=str(folder / "state"),
        gpu_prometheus_scrape_options={"relabel_configs": relabel},
        gpu_prometheus_alerts={name: {"for": "2s"} for name in alerts.NAMES},
    )
    assert code == 0, output
