# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fake control plane in a folder, on which both parts of the module run."""

from __future__ import annotations

import copy
import re
import typing as t
from pathlib import Path

import pytest

pytest.importorskip("ruamel.yaml")

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.node import write
from ansible_collections.gpu.kubernetes.plugins.module_utils._scheduler import controller, node
from ansible_collections.gpu.kubernetes.plugins.plugin_utils._yaml import RoundTrip

FIXTURES = Path(__file__).parent / "fixtures"
MANIFESTS = sorted(path.name for path in FIXTURES.glob("*.yaml"))
RT = RoundTrip()

GPUSHARE: dict[str, t.Any] = {
    "urlPrefix": "http://127.0.0.1:12345/gpushare-scheduler",
    "filterVerb": "filter",
    "bindVerb": "bind",
    "enableHTTPS": False,
    "nodeCacheCapable": True,
    "managedResources": [{"name": "aliyun.com/gpu-mem", "ignoredByScheduler": False}],
    "ignorable": False,
}

OTHER = {"urlPrefix": "http://10.0.0.9/other", "filterVerb": "f"}
CONFIG = """\
# written by the site
apiVersion: kubescheduler.config.k8s.io/{version}
kind: KubeSchedulerConfiguration
clientConnection:
    kubeconfig: "/etc/kubernetes/scheduler.conf"   # the usual one
profiles:
    - schedulerName: default-scheduler
      percentageOfNodesToScore: 50
"""
OWN_EXTENDER = """\
extenders:
    - urlPrefix: http://10.0.0.9/other
      filterVerb: f
"""

# Configurations with which kube-scheduler does not start, and the warnings.
BROKEN = {
    "a removed API version": (CONFIG.format(version="v1beta2"), "v1beta2 became v1"),
    "gpushare by an old guide": (
        CONFIG.format(version="v1beta3")
        + "extenders:\n    - urlPrefix: http://127.0.0.1:32766/gpushare-scheduler\n      filterVerb: filter\n      bindVerb: bind\n"
        "      enableHttps: false\n      nodeCacheCapable: true\n      managedResources:\n          - name: aliyun.com/gpu-mem\n"
        "            ignoredByScheduler: false\n      ignorable: false\n",
        "enableHttps became enableHTTPS",
    ),
    "an address of the insecure port": (
        CONFIG.format(version="v1") + "healthzBindAddress: 0.0.0.0:10251\n",
        "10251 is removed",
    ),
    "no kubeconfig": (CONFIG.format(version="v1").replace("kubeconfig: ", "contentType: "), ""),
}


class ControlPlane:
    """One node. Paths in manifests and configurations are below its folder."""

    def __init__(self, folder: Path, manifest: str = "kubeadm-1.34.4.yaml") -> None:
        self.folder = folder
        self.manifest = folder / "manifests" / "kube-scheduler.yaml"
        self.config = folder / "scheduler.yaml"
        self.state = folder / "state"
        self.manifest.parent.mkdir(parents=True)
        text = (FIXTURES / manifest).read_text()
        self.text = re.sub(r"/etc/kubernetes/sched\b", str(folder / "sched"), text)
        self.manifest.write_text(self.text)
        self.manifest.chmod(0o600)
        self.requests: list[str] = []
        self.before_write: t.Callable[[], None] = lambda: None

    def answer(self, request: dict[str, t.Any]) -> dict[str, t.Any]:
        """Return what the part on the node returns."""
        self.requests.append(request["do"])
        given = copy.deepcopy({key: value for key, value in request.items() if key != "do"})
        if request["do"] == "read":
            return node.read(**given)
        self.before_write()
        return {"backups": write(**given)}

    def run(
        self, *extenders: dict[str, t.Any], check: bool = False, diff: bool = True, **options: t.Any
    ) -> dict[str, t.Any]:
        """Run the module, by default with gpushare's extender."""
        self.requests = []
        arguments = {
            "path": str(self.manifest),
            "config_path": str(self.config),
            "backup_dir": None,
            "state_dir": str(self.state),
            "kubernetes_version": None,
            "extenders": list(extenders) or [GPUSHARE],
            "state": "present",
            **options,
        }
        return controller.run(arguments, RT, self.answer, check, diff)

    def files(self) -> dict[str, bytes]:
        """Return all files except state and backups."""
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and self.state not in path.parents
        }

    def flags(self) -> list[str]:
        """Return the command line of kube-scheduler."""
        return [str(item) for item in RT.read(self.manifest.read_bytes(), "")["spec"]["containers"][0]["command"]]

    def urls(self, config: Path | None = None) -> list[str]:
        """Return the addresses of the extenders in the configuration."""
        tree = RT.read((config or self.config).read_bytes(), "")
        return [str(each["urlPrefix"]) for each in tree.get("extenders", [])]
