# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role where the distribution starts kube-scheduler itself: changes are predicted, rolled back, applied once and undone, with a fake unit."""

from __future__ import annotations

import pytest
import yaml
from fakes.loopback_api import serve_in_thread
from fakes.scheduler_server import Server

#: How a failed start shows itself: systemctl reports it, or the API server does not answer any more.
CAUSES = {
    "k3s": "Unable to restart service k3s",
    "rke2": "Unable to restart service rke2-server",
    "MicroK8s": "cp1: snap.microk8s.daemon-kubelite was restarted, and after 1 seconds",
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "k3s" else pytest.mark.thorough) for name in CAUSES]
)
def test_change_is_predicted_rolled_back_applied_once_and_undone(apply, tmp_path, name) -> None:
    server = Server(tmp_path / "cp1", name)
    variables = {
        "environment": server.environment,
        "kube_scheduler_extender_manifest": "",
        "kube_scheduler_extender_config_path": "",
    }
    restart, before = f"restart {server.unit}", server.read_files()
    with serve_in_thread(server.cluster):
        code, changes, output = apply(server, "--check", **variables)
        assert (code, changes, server.read_files(), server.state["calls"]) == (0, {"cp1": 1}, before, []), output

        # The unit does not start with the change.
        code, _changes, output = apply(server, **variables, extenders=("broken",), kube_scheduler_extender_timeout=1)
        assert code != 0, output
        assert f"so the former one was restored: {CAUSES[name]}" in output
        assert "It works again." in output
        assert (server.read_files(), server.state["up"]) == (before, True)
        assert server.state["calls"] == [restart, restart]

        code, _changes, output = apply(server, parts=["main", "main"], **variables)
        assert (code, server.state["calls"]) == (0, [restart] * 3), output
        assert server.state["arguments"][-2:] == ["--v=2", server.argument]
        present = yaml.safe_load(server.config.read_text())
        assert [each["urlPrefix"] for each in present["extenders"]] == ["http://127.0.0.1:1/one"]

        code, changes, output = apply(server, "--check", **variables)
        assert (code, changes) == (0, {"cp1": 0}), output

        code, _changes, output = apply(server, **variables, kube_scheduler_extender_state="absent")
        assert (code, server.read_files(), server.state["calls"]) == (0, before, [restart] * 4), output
        assert server.argument not in server.state["arguments"]
