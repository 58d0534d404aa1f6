# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``deploy_gpu_monitoring`` on the nodes of the lab: faults of their GPUs reach a webhook, and panels have data. Each test depends on the tests before it.

Prometheus and Alertmanager are Debian's and run beside the nodes. The exporter is a fake that reads the simulated NVML and a file of faults. The series of
pods are those of the cluster's kube-scheduler.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from lab import dashboards, nodes, prometheus
from lab import fingerprint as prints
from lab.fakes import exporter
from lab.wait import until

FIRST, SECOND = "molecule-worker-1", "molecule-worker-2"
FAULTS, UNIT = "/run/gpu-exporter-faults.json", "nvidia_gpu_exporter"
GPU, NAMESPACE = "nvidia.com/gpu", "default"
#: Of the control plane. kube-scheduler listens on 127.0.0.1:10259.
SCHEDULER_PORT = 10260
CONFIG = """\
# The administrator's own.
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
alerting: {alertmanagers: [{static_configs: [{targets: ["ALERTMANAGER"]}]}]}
scrape_configs:
  - job_name: kube-scheduler
    honor_labels: true
    metrics_path: /metrics/resources
    scheme: https
    tls_config: {insecure_skip_verify: true, cert_file: CERTIFICATE, key_file: KEY}
    static_configs: [{targets: ["SCHEDULER"]}]
"""
#: The alerts that hold for minutes, which no test waits for.
QUICK = (
    *(
        "GpuExporterDown",
        "GpuExporterAbsent",
        "GpuMissing",
        "GpuCollectionFailing",
        "GpuRowRemapPending",
        "GpuThrottled",
    ),
    "GpuTemperatureMarginLow",
)
#: Panels list GPUs with a fault only.
EACH_FAULT = {
    "xids": [79],
    "ecc_uncorrected": 1,
    "remap_failed": 1,
    "remap_pending": 1,
    "event_reasons": 0x40,
    "temperature_margin": 3,
    "recovery_action": 1,
    "pcie_width": 8,
    "pcie_width_max": 16,
}


Expect = Callable[[str, str], AbstractContextManager[Callable[[], object]]]


class Monitor(NamedTuple):
    """The servers beside the nodes, and the options of ansible-playbook for them."""

    server: prometheus.Prometheus
    webhook: prometheus.Webhook
    options: tuple[str, ...]
    start: str


@pytest.fixture(scope="module", autouse=True)
def before(settings: Any) -> dict[str, str]:
    """Nodes and cluster as they are before the first test."""
    return prints.take(settings)


@pytest.fixture(scope="module")
def monitor(tmp_path_factory: pytest.TempPathFactory, settings: Any, api: Any) -> Iterator[Monitor]:
    """Prometheus, Alertmanager and the webhook."""
    folder = tmp_path_factory.mktemp("monitor")
    (folder / "etc").mkdir()
    administrator = api.api_client.configuration
    values = {
        "SCHEDULER": f"{settings.address(settings.nodes[0])}:{SCHEDULER_PORT}",
        "CERTIFICATE": administrator.cert_file,
        "KEY": administrator.key_file,
    }
    with prometheus.Webhook().serve() as webhook:
        url = f"http://{webhook.address}/"
        with prometheus.Alertmanager(folder / "alertmanager", url) as alertmanager:
            text = CONFIG
            for name, value in {**values, "ALERTMANAGER": alertmanager.address}.items():
                text = text.replace(name, value)
            (folder / "etc" / "prometheus.yml").write_text(text)
            with prometheus.Prometheus(folder / "etc") as server:
                yield Monitor(server, webhook, write_options(folder, server), text)


def write_options(folder: Path, server: prometheus.Prometheus) -> tuple[str, ...]:
    """Options of ansible-playbook: the machine itself is the host of Prometheus."""
    local = {"ansible_connection": "local", "ansible_become": False, "ansible_python_interpreter": "/usr/bin/python3"}
    (folder / "monitor.yml").write_text(json.dumps({"all": {"hosts": {"monitor": local}}}))
    archive = folder / "nvidia_gpu_exporter.tar.gz"
    variables = {
        "gpu_exporter_src": str(archive),
        "gpu_exporter_sha256": {"x86_64": exporter.write_archive(archive)},
        "gpu_prometheus_host": "monitor",
        "gpu_prometheus_config_path": str(server.config),
        "gpu_prometheus_promtool": str(prometheus.programs() / "promtool"),
        "gpu_prometheus_reload": "http",
        "gpu_prometheus_url": server.url,
        "gpu_prometheus_state_dir": str(folder / "state"),
        "gpu_prometheus_alerts": {name: {"for": "3s"} for name in QUICK},
        "gpu_dashboards_method": "configmap",
        "gpu_dashboards_namespace": NAMESPACE,
    }
    return "-i", str(folder / "monitor.yml"), "--tags", "exporter,prometheus,dashboards", "-e", json.dumps(variables)


@pytest.fixture
def execute(settings: Any) -> Callable[[str], str]:
    """Run a shell command on the first node."""
    node = next(each for each in settings.nodes if each.name == FIRST)
    return lambda command: nodes.execute(node, "sh", "-c", command)


@pytest.fixture
def inject(execute: Callable[[str], str]) -> Callable[[dict[str, Any]], AbstractContextManager[None]]:
    """Let GPUs of the first node have faults in a block. The exporter is not restarted, so that it misses no scrape."""

    @contextlib.contextmanager
    def run(faults: dict[str, Any]) -> Iterator[None]:
        execute(f"echo '{json.dumps(faults)}' > {FAULTS}.new && mv {FAULTS}.new {FAULTS}")
        try:
            yield
        finally:
            execute(f"rm {FAULTS}")

    return run


@pytest.fixture
def expect_alert(monitor: Monitor) -> Expect:
    """Require that a fault, which a block injects and ends, fires one alert of a node, and no other until that one is resolved.

    The block calls what it gets, which waits until the alert has reached the webhook and no other one is pending.
    """

    @contextlib.contextmanager
    def run(alert: str, node: str) -> Iterator[Callable[[], object]]:
        def wait() -> None:
            until(monitor.webhook.read_firing)
            until(monitor.server.read_alerts, lambda found: found == {(alert, node)})

        monitor.webhook.clear()
        yield wait
        until(monitor.webhook.read_firing, lambda found: not found)
        assert monitor.webhook.read_recorded() == {(alert, node)}

    return run


def count_changes(recap: Any) -> int:
    return sum(counts["changed"] for counts in recap.values())


def test_playbook_brings_targets_of_all_nodes(playbook: Any, monitor: Monitor, execute: Callable[[str], str]) -> None:
    # The exporter reads the file at each scrape; before its first start, no restart is needed.
    execute(
        f"mkdir -p /run/systemd/system/{UNIT}.service.d"
        f" && printf '[Service]\\nEnvironment=FAKE_EXPORTER_FAULTS={FAULTS}\\n' > /run/systemd/system/{UNIT}.service.d/faults.conf"
    )
    code, _recap, printed = playbook("deploy_gpu_monitoring", *monitor.options)
    assert code == 0, printed
    query = "/api/v1/query?query=count by (node) (gpu:present)".replace(" ", "%20")
    found = until(lambda: json.loads(monitor.server.get(query))["data"]["result"], lambda rows: len(rows) == 2)
    assert {row["metric"]["node"] for row in found} == {FIRST, SECOND}
    code, recap, printed = playbook("deploy_gpu_monitoring", *monitor.options)
    assert (code, count_changes(recap)) == (0, 0), printed
    assert monitor.webhook.read_firing() == set()


@pytest.mark.parametrize(
    ("faults", "alert"),
    [
        ({"0": {"lost": True}}, "GpuMissing"),
        ({"fails": True}, "GpuCollectionFailing"),
        ({"0": {"xids": [79]}}, "GpuXid"),
        ({"0": {"ecc_uncorrected": 1}}, "GpuUncorrectedEcc"),
        ({"0": {"sram_exceeded": 1}}, "GpuSramThresholdExceeded"),
        ({"0": {"remap_failed": 1}}, "GpuRowRemapFailed"),
        ({"0": {"remap_pending": 1}}, "GpuRowRemapPending"),
        ({"0": {"event_reasons": 0x40}}, "GpuThrottled"),
        ({"0": {"temperature_margin": 3}}, "GpuTemperatureMarginLow"),
        ({"0": {"recovery_action": 1}}, "GpuRecoveryActionNeeded"),
    ],
)
def test_fault_of_a_node_fires_its_alert_alone_and_resolves(
    inject: Callable[[dict[str, Any]], AbstractContextManager[None]],
    expect_alert: Expect,
    faults: dict[str, Any],
    alert: str,
) -> None:
    with expect_alert(alert, FIRST) as wait, inject(faults):
        wait()


@pytest.fixture
def scheduler_port(settings: Any) -> Iterator[None]:
    """Let Prometheus reach kube-scheduler, which kubeadm binds to the loopback."""
    node, unit = settings.nodes[0], "lab-scheduler-port"
    listen = f"TCP-LISTEN:{SCHEDULER_PORT},fork,reuseaddr"
    nodes.execute(node, "systemd-run", "--quiet", "--collect", f"--unit={unit}", "socat", listen, "TCP:127.0.0.1:10259")
    yield
    nodes.execute(node, "systemctl", "stop", unit)


@pytest.mark.usefixtures("scheduler_port")
def test_query_of_each_panel_returns_data(
    monitor: Monitor,
    inject: Callable[[dict[str, Any]], AbstractContextManager[None]],
    start_gpu_pod: Callable[..., object],
    api: Any,
) -> None:
    config_maps = api.list_namespaced_config_map(NAMESPACE, label_selector="grafana_dashboard=1").items
    found = [json.loads(text) for each in config_maps for text in each.data.values()]
    assert len(found) == 5
    # This Prometheus is minutes old: a step of five minutes has no two values yet.
    chosen = {"__range:5m": "5m:1s", "__range": "5m", "node": FIRST, "resource": GPU}
    queries = dashboards.list_queries(found, chosen)

    def list_empty() -> list[str]:
        now = time.time()
        return [each.name for each in queries if not dashboards.run(monitor.server.url, each, now - 30, now, 5)]

    start_gpu_pod(1, GPU, FIRST)
    start_gpu_pod(100, GPU, FIRST, "Insufficient")
    with inject({"0": EACH_FAULT, "1": {"lost": True}}):
        until(list_empty, lambda names: not names)
    until(monitor.webhook.read_firing, lambda found: not found)


def test_cost_report_has_the_hours_of_the_pod_with_a_node(playbook: Any, monitor: Monitor, tmp_path: Path) -> None:
    """The pods are those of the test before, of which one had a GPU and one waited for 100."""
    file = tmp_path / "cost.json"
    variables = {
        "gpu_cost_prometheus_url": monitor.server.url,
        "gpu_cost_window": "30m",
        "gpu_cost_step": "5s",
        "gpu_cost_format": "json",
        "gpu_cost_path": str(file),
    }
    code, _recap, printed = playbook("report_gpu_cost", "-e", json.dumps(variables))
    assert code == 0, printed
    report = json.loads(file.read_text())
    (row,) = report["namespaces"]
    assert row["name"] == NAMESPACE
    assert 0 < row["allocated_hours"] <= report["covered_hours"], report


@pytest.fixture
def diagnose(run_doctor: Callable[..., Any], monitor: Monitor) -> Callable[[], list[tuple[str, str, list[str]]]]:
    """Run the doctor's checks of the monitoring; return id, verdict and hosts of each cause."""

    def run() -> list[tuple[str, str, list[str]]]:
        causes, report = run_doctor(gpu_doctor_prometheus_url=monitor.server.url, gpu_doctor_checks=["monitoring"])
        # Prometheus was read.
        assert (report["exit_code"], report["cluster"]["passed"]) == (0, ["mon.rules"]), report
        return list(causes)

    return run


def test_doctor_finds_nothing_wrong_with_the_monitoring(diagnose: Callable[[], object]) -> None:
    assert diagnose() == []


def test_stopped_exporter_fires_its_alert_alone_and_resolves(
    execute: Callable[[str], str],
    expect_alert: Expect,
    diagnose: Callable[[], object],
) -> None:
    with expect_alert("GpuExporterDown", FIRST) as wait:
        execute(f"systemctl stop {UNIT}")
        wait()
        assert diagnose() == [("mon.exporter", "warn", [FIRST])]
        execute(f"systemctl start {UNIT}")


def test_targets_that_are_gone_fire_their_alert_alone(
    playbook: Any,
    monitor: Monitor,
    expect_alert: Expect,
    diagnose: Callable[[], object],
) -> None:
    with expect_alert("GpuExporterAbsent", "") as wait:
        for path in (monitor.server.folder / "gpu-targets").iterdir():
            path.unlink()
        wait()
        assert diagnose() == [("mon.scraped", "warn", [FIRST, SECOND])]
        code, _recap, printed = playbook("deploy_gpu_monitoring", *monitor.options)
        assert code == 0, printed


def test_removal_restores_nodes_and_prometheus(
    playbook: Any, monitor: Monitor, execute: Callable[[str], str], settings: Any, before: dict[str, str]
) -> None:
    execute(f"rm -r /run/systemd/system/{UNIT}.service.d && systemctl daemon-reload")
    code, _recap, printed = playbook("remove_gpu_monitoring", *monitor.options)
    assert code == 0, printed
    assert monitor.server.config.read_text() == monitor.start
    assert not (monitor.server.folder / "gpu-targets").exists()
    assert monitor.server.groups() == []
    assert prints.remaining(before, settings) == []
