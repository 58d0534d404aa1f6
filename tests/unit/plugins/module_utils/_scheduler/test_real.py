# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each kube-scheduler of KUBE_SCHEDULERS (gate schedulers) reads the files that the module writes."""

from __future__ import annotations

import os
import subprocess
import typing as t
from dataclasses import replace
from pathlib import Path

import pytest
from lab import wait

pytest.importorskip("ruamel.yaml")

import yaml

from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._scheduler.control_plane import (
    BROKEN,
    CONFIG,
    GPUSHARE,
    OWN_EXTENDER,
    ControlPlane,
)
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._scheduler.test_own import ARGUMENTS, Server

PROGRAMS = [path for path in os.environ.get("KUBE_SCHEDULERS", "").split(os.pathsep) if path]

KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
users: [{name: u, user: {token: none}}]
"""

# Flags and configurations by others: the flags, and the configuration or None.
CASES: dict[str, tuple[str, str | None]] = {
    "nothing": ("", None),
    "flags": ("    - --profiling=false\n    - --kube_api_qps=0.5\n    - --kube-api-burst\n    - '7'\n", None),
    "flags that crash": ("    - --port=0\n    - --policy-config-file=/p.json\n", None),
    "an empty file": ("", ""),
    "a valid file": ("", CONFIG.format(version="v1") + OWN_EXTENDER),
    "arguments": (
        "",
        CONFIG.format(version="v1beta3")
        + "      plugins: {score: {enabled: [{name: SelectorSpread}, {name: NodeAffinity, weight: 3}]}}\n"
        "      pluginConfig:\n        - name: NodeAffinity\n"
        "          args: {apiVersion: kubescheduler.config.k8s.io/v1beta3, kind: NodeAffinityArgs}\n"
        "leaderElection: {leaderElect: true, resourceLock: endpointsleases}\nmetricsBindAddress: ''\n",
    ),
    **{name: ("", text) for name, (text, _note) in BROKEN.items()},
}


def read_effective(program: str, node: ControlPlane) -> t.Any:
    """Return the configuration as the kube-scheduler of the manifest's command line reads it."""
    out = node.folder / "effective.yaml"
    # By default it listens on a port, and tests run in parallel.
    more = ["--write-config-to", str(out), "--authentication-skip-lookup", "--secure-port=0"]
    command = [program, *node.flags()[1:], *more]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=wait.LIMIT)
    assert out.exists(), done.stderr
    tree = yaml.safe_load(out.read_text())
    out.unlink()
    return tree


def drop_false(node: t.Any) -> t.Any:
    """Remove values that are false, which kube-scheduler does not write."""
    if isinstance(node, dict):
        return {key: drop_false(value) for key, value in node.items() if value is not False}
    return [drop_false(value) for value in node] if isinstance(node, list) else node


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("case", CASES)
def test_kube_scheduler_reads_the_configuration_and_its_undo(tmp_path: Path, program: str, case: str) -> None:
    version = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout.split()[-1]
    flags, config = CASES[case]
    node = ControlPlane(tmp_path)
    kubeconfig = tmp_path / "scheduler.conf"
    kubeconfig.write_text(KUBECONFIG)
    text = node.text.replace("/etc/kubernetes/scheduler.conf", str(kubeconfig)).replace("v1.34.4", version)
    if config is not None:
        flags += f"    - --config={node.config}\n"
        node.config.write_text(config.replace("/etc/kubernetes/scheduler.conf", str(kubeconfig)))
    node.manifest.write_text(text.replace("    - --leader-elect=true\n", f"    - --leader-elect=true\n{flags}"))
    if config is not None:
        text = node.manifest.read_text().replace(
            "    volumeMounts:\n", f"    volumeMounts:\n    - {{mountPath: {tmp_path}, name: c}}\n"
        )
        node.manifest.write_text(
            text.replace("  volumes:\n", f"  volumes:\n  - {{hostPath: {{path: {tmp_path}}}, name: c}}\n")
        )
    node.run(kubernetes_version=version)
    if case == "no kubeconfig":
        node.config.write_text(node.config.read_text().replace("/etc/kubernetes/scheduler.conf", str(kubeconfig)))
    tree = read_effective(program, node)
    [managed] = [each for each in tree["extenders"] if each["urlPrefix"] == GPUSHARE["urlPrefix"]]
    assert drop_false(managed).items() >= drop_false(GPUSHARE).items()
    if case == "flags":
        connection = tree["clientConnection"]
        assert (tree["enableProfiling"], connection["qps"], connection["burst"]) == (False, 0.5, 7)
    node.run(state="absent", kubernetes_version=version)
    if config is not None:
        tree = read_effective(program, node)
        assert GPUSHARE["managedResources"] not in [
            each.get("managedResources") for each in tree.get("extenders") or []
        ]
        assert tree["profiles"][0].get("percentageOfNodesToScore") == (None if config == "" else 50)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("name", ["k3s", "MicroK8s"])
def test_kube_scheduler_reads_the_configuration_of_a_distribution(tmp_path: Path, program: str, name: str) -> None:
    server = Server(tmp_path, name)
    kubeconfig, out = tmp_path / "kubeconfig", tmp_path / "effective.yaml"
    kubeconfig.write_text(KUBECONFIG)
    server.row = replace(server.row, kubeconfig=str(kubeconfig))
    if name == "MicroK8s":
        server.file.parent.mkdir(exist_ok=True)
        server.file.write_text(ARGUMENTS)
    argument = server.run()["argument"]
    # As the distributions start it: a flag that is ignored, and one that decides.
    flags = [argument, "--kubeconfig=/nonexistent", "--leader-elect=false", "--profiling=false"]
    more = [f"--write-config-to={out}", "--authentication-skip-lookup", "--secure-port=0"]
    done = subprocess.run([program, *flags, *more], check=False, capture_output=True, text=True, timeout=wait.LIMIT)
    assert out.exists(), done.stderr
    effective = yaml.safe_load(out.read_text())
    assert effective["clientConnection"]["kubeconfig"] == str(kubeconfig)
    assert not effective["leaderElection"].get("leaderElect")
    assert [each["urlPrefix"] for each in effective["extenders"]] == [GPUSHARE["urlPrefix"]]
