# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory as ansible-inventory reads it from an API server on the loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ansible.errors")

from fakes.kubernetes_api import node
from fakes.loopback_api import LoopbackApi, encode_list, serve_in_thread, write_kubeconfig

ROOT = Path(__file__).resolve().parents[4]
TEMPLATE = "{{ lookup('ansible.builtin.pipe', 'echo run') }}"


@pytest.fixture
def api() -> Any:
    gpu = node("gpu1", gpus=2, labels={"nvidia.com/gpu.product": "NVIDIA-A30", "zone": "a.1"})
    gpu["metadata"]["annotations"] = {"note": TEMPLATE}
    gpu["metadata"]["labels"]["text"] = TEMPLATE
    gpu["status"]["addresses"] = [{"type": "InternalIP", "address": "10.1.0.5"}]
    control = node("control1", labels={"node-role.kubernetes.io/control-plane": ""})
    nodes = [gpu, control, node("localhost", gpus=1), node("other")]
    with serve_in_thread(LoopbackApi({"/api/v1/nodes": encode_list(nodes)})) as server:
        yield server


def read_inventory(folder: Path, url: str, options: str = "", **environment: str) -> tuple[int, dict[str, Any], str]:
    """Exit code, inventory and messages of ansible-inventory, as AWX runs it: with credentials in the environment."""
    source = folder / "site.gpu_nodes.yml"
    source.write_text(f"plugin: gpu.kubernetes.gpu_nodes\n{options}", encoding="utf-8")
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "K8S_AUTH"))}
    settings = {
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_INVENTORY_UNPARSED_FAILED": "true",
        "ANSIBLE_NOCOLOR": "1",
        "K8S_AUTH_KUBECONFIG": str(write_kubeconfig(url, folder / "kubeconfig")),
    }
    program = str(Path(sys.executable).with_name("ansible-inventory"))
    result = subprocess.run(
        [program, "--inventory", str(source), "--list", "--export"],
        cwd=ROOT,
        env={**inherited, **settings, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return result.returncode, json.loads(result.stdout) if result.stdout else {}, result.stderr


def read_unsafe(marked: dict[str, str]) -> str:
    """The text that Ansible exports as one that is never a template."""
    return marked["__ansible_unsafe"]


def test_nodes_are_hosts_with_groups_and_untrusted_labels_are_no_templates(api: LoopbackApi, tmp_path: Path) -> None:
    options = """
compose:
  ansible_user: "'admin'"
  product: gpu_node.products[0]
  text: gpu_node.labels.text
groups:
  pairs: gpu_node.allocatable['nvidia.com/gpu'] | default(0) == 2
keyed_groups:
  - {key: gpu_node.labels.zone, prefix: zone}
  - {key: gpu_node.labels.text, prefix: text}
"""
    status, found, messages = read_inventory(tmp_path, api.url, options)
    assert status == 0, messages
    variables = found["_meta"]["hostvars"]
    assert sorted(variables) == ["control1", "gpu1"]
    gpu = variables["gpu1"]
    texts = [read_unsafe(gpu[name]) for name in ("ansible_host", "gpu_node_name", "product", "text")]
    assert texts == ["10.1.0.5", "gpu1", "NVIDIA-A30", TEMPLATE]
    assert read_unsafe(gpu["gpu_node"]["labels"]["text"]) == TEMPLATE
    assert [found[group]["hosts"] for group in ("gpu_nodes", "gpu_product_nvidia_a30", "zone_a_1", "pairs")] == [
        ["gpu1"]
    ] * 4
    assert found["kube_control_plane"]["hosts"] == ["control1"]
    assert all(name.replace("_", "").isalnum() for name in found)
    assert "Node localhost is left out" in " ".join(messages.split())
    assert [query.get("limit") for _method, _path, query in api.requests] == ["500"]


def test_cache_spares_the_request(api: LoopbackApi, tmp_path: Path) -> None:
    cache = f"cache: true\ncache_plugin: ansible.builtin.jsonfile\ncache_connection: {tmp_path / 'cache'}\n"
    first, second = (read_inventory(tmp_path, api.url, cache) for _time in range(2))
    assert first[:2] == second[:2]
    assert len(api.requests) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("address_from: [label]", "address_from has 'label', which is not a source of addresses"),
        ("host: http://127.0.0.1:9", "The Kubernetes API at http://127.0.0.1:9 cannot be reached"),
    ],
)
def test_failure_is_one_sentence_and_an_error(api: LoopbackApi, tmp_path: Path, options: str, message: str) -> None:
    status, _found, messages = read_inventory(tmp_path, api.url, options)
    assert status != 0
    assert message in " ".join(messages.split())
