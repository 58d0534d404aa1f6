# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration of Intel's xpumd, a collector of OpenTelemetry. Names of its parts: config-example.yaml of xpumd 2.0.0."""

from __future__ import annotations

#: Milliseconds between two samples of what changes quickly. The collection has to take at least twice as long.
MAX_SAMPLING = 1000
#: Without metrics of the collector on itself, which would take port 8888 of the node.
_CONFIG = """\
receivers:
  intelxpu: {{collection_interval: {interval}s, sampling_interval: {sampling}ms}}
exporters:
  prometheus: {{endpoint: "{address}:{port}"}}
service:
  telemetry:
    metrics: {{level: none}}
  pipelines:
    metrics: {{receivers: [intelxpu], exporters: [prometheus]}}
"""


def build_config(port: int, ipv6: bool, interval: int) -> str:
    """Return the configuration as YAML: metrics for Prometheus at the address of the node, read every *interval* seconds.

    The pod reads the address from the environment.
    """
    seconds = max(interval, 1)
    return _CONFIG.format(
        interval=seconds,
        sampling=min(MAX_SAMPLING, seconds * 500),
        address="[${env:NODE_IP}]" if ipv6 else "${env:NODE_IP}",
        port=port,
    )
