# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kube-scheduler that the distribution starts itself, on a fake node in a folder."""

from __future__ import annotations

import copy
import typing as t
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.node import write
from ansible_collections.gpu.kubernetes.plugins.module_utils._distributions import named
from ansible_collections.gpu.kubernetes.plugins.module_utils._distributions.settings import merge_settings
from ansible_collections.gpu.kubernetes.plugins.module_utils._scheduler import controller, node, own
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._scheduler.control_plane import (
    GPUSHARE,
    OTHER,
    RT,
)

ARGUMENTS = """\
--kubeconfig=${SNAP_DATA}/credentials/scheduler.config
--leader-elect=false
--profiling=false
"""


class Server:
    """A server of a distribution: both parts of the module run on files below a folder."""

    def __init__(self, root: Path, name: str) -> None:
        row = named(name).own_scheduler
        assert row is not None
        self.row = replace(row, file=f"{root}{row.file}", config=f"{root}{row.config}")
        self.file, self.config = Path(self.row.file), Path(self.row.config)
        self.main = Path(str(self.file.parent)[: -len(".d")])
        self.root, self.state, self.command = root, root / "state", "ExecStart={ argv[]=/usr/local/bin/x server ; }"
        self.main.parent.mkdir(parents=True)

    def write(self, name: str, text: str) -> None:
        path = self.main if name == "config.yaml" else self.file.parent / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def answer(self, request: dict[str, t.Any]) -> dict[str, t.Any]:
        given = copy.deepcopy({key: value for key, value in request.items() if key != "do"})
        if request["do"] == "read":
            return node.read_own(self.row, given["state_dir"], lambda _command: (0, self.command, ""))
        return {"backups": write(**given)}

    def run(self, *extenders: dict[str, t.Any], check: bool = False, **options: t.Any) -> dict[str, t.Any]:
        arguments = {
            "path": None,
            "config_path": None,
            "backup_dir": None,
            "state_dir": str(self.state),
            "kubernetes_version": None,
            "extenders": list(extenders) or [GPUSHARE],
            "state": "present",
            **options,
        }
        return controller.run(arguments, RT, self.answer, check, True)

    def files(self) -> dict[str, bytes]:
        return {
            str(path.relative_to(self.root)): path.read_bytes()
            for path in self.root.rglob("*")
            if path.is_file() and self.state not in path.parents
        }


@pytest.fixture(params=["k3s", "rke2", "MicroK8s"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Server:
    found = Server(tmp_path, request.param)
    if request.param == "MicroK8s":
        found.file.parent.mkdir(exist_ok=True)
        found.file.write_text(ARGUMENTS)
    else:
        found.write("config.yaml", "token: x\nkube-scheduler-arg:\n  - v=2\n")
    return found


@pytest.fixture
def k3s(tmp_path: Path) -> Server:
    return Server(tmp_path, "k3s")


def test_quartet_and_undo_restore_each_byte(server: Server) -> None:
    before = server.files()
    assert server.run(check=True)["changed"]
    assert server.files() == before
    done = server.run()
    assert (done["changed"], done["unit"], done["managed"]) == (True, server.row.unit, True)
    assert (done["argument"], done["path"]) == (f"--config={server.config}", str(server.file))
    assert done["files"][1:] == [str(server.config), str(server.file)]
    for check in (True, False):
        assert not server.run(check=check)["changed"]
    assert server.run(state="absent", check=True)["changed"]
    done = server.run(state="absent")
    assert done["files"][:2] == [str(server.file), str(server.config)]
    assert server.files() == before
    assert not server.run(state="absent")["changed"]


def test_configuration_names_the_kubeconfig_and_leaves_the_leader_to_the_flag(server: Server) -> None:
    server.run(GPUSHARE)
    tree = yaml.safe_load(server.config.read_text())
    assert tree["clientConnection"] == {"kubeconfig": server.row.kubeconfig}
    assert "leaderElection" not in tree
    assert [each["urlPrefix"] for each in tree["extenders"]] == [GPUSHARE["urlPrefix"]]
    assert server.config.stat().st_mode & 0o777 == 0o644


def test_another_extender_replaces_the_first(server: Server) -> None:
    server.run(GPUSHARE)
    before = server.file.read_bytes()
    assert server.run(OTHER)["files"][1:] == [str(server.config)]
    assert [each["urlPrefix"] for each in yaml.safe_load(server.config.read_text())["extenders"]] == [
        OTHER["urlPrefix"]
    ]
    assert server.file.read_bytes() == before
    server.run(state="absent")
    assert not server.config.exists()


def test_argument_is_added_to_those_of_the_distribution(k3s: Server) -> None:
    k3s.write("config.yaml", "kube-scheduler-arg: [v=2]\n")
    k3s.run()
    trees = [yaml.safe_load(path.read_text()) for path in (k3s.main, k3s.file)]
    assert merge_settings(trees) == {"kube-scheduler-arg": ["v=2", f"config={k3s.config}"]}


def test_configuration_that_others_have_changed_stays_with_a_warning(k3s: Server) -> None:
    k3s.run()
    k3s.config.write_text(k3s.config.read_text() + "parallelism: 8\n")
    assert "parallelism: 8" in k3s.config.read_text()
    done = k3s.run(state="absent")
    assert "stays, since others have changed it" in done["warnings"][0]
    assert not k3s.file.exists()


def test_lines_of_others_stay_when_the_argument_is_removed(tmp_path: Path) -> None:
    server = Server(tmp_path, "MicroK8s")
    server.file.parent.mkdir(exist_ok=True)
    server.file.write_text(ARGUMENTS)
    server.run()
    server.file.write_text(server.file.read_text() + "--v=4\n")
    assert not server.run()["changed"]
    server.run(OTHER)
    server.run(state="absent")
    assert server.file.read_text() == ARGUMENTS + "--v=4\n"


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        (
            "config.yaml",
            "kube-scheduler-arg: [config=/etc/mine.yaml]\n",
            r"config\.yaml gives kube-scheduler the configuration /etc/mine",
        ),
        ("10-a.yaml", "kube-scheduler-arg+: --config=/etc/mine.yaml\n", r"10-a\.yaml gives"),
        ("60-a.yaml", "kube-scheduler-arg: [v=2]\n", r"60-a\.yaml replaces kube-scheduler-arg"),
        ("50-gpu-kubernetes-scheduler.yaml", "kube-scheduler-arg: [v=2]\n", "was written or changed by others"),
    ],
)
def test_settings_that_would_win_are_refused(k3s: Server, name: str, text: str, words: str) -> None:
    k3s.write(name, text)
    before = k3s.files()
    with pytest.raises(ConfigError, match=words):
        k3s.run()
    assert k3s.files() == before


def test_argument_of_the_unit_is_refused(k3s: Server) -> None:
    k3s.command = "ExecStart={ argv[]=/usr/local/bin/k3s server --kube-scheduler-arg v=2 ; }"
    with pytest.raises(ConfigError, match="k3s is started with --kube-scheduler-arg"):
        k3s.run()


def test_other_impossible_requests_are_refused(k3s: Server, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="config_path /x: leave it out"):
        k3s.run(config_path="/x")
    k3s.config.parent.mkdir()
    k3s.config.write_text("kind: x\n")
    with pytest.raises(ConfigError, match="there is no record of it"):
        k3s.run()
    other = Server(tmp_path / "snap", "MicroK8s")
    with pytest.raises(ConfigError, match="finish the installation"):
        other.run()
    other.file.parent.mkdir(exist_ok=True)
    other.file.write_text("--config=/etc/mine.yaml\n")
    with pytest.raises(ConfigError, match=r"the configuration /etc/mine\.yaml: remove it there first"):
        other.run()


@pytest.mark.parametrize(
    ("arguments", "value"),
    [([], None), (["v=2"], None), ("config=/a", "/a"), (["--config=/a", "config=/b"], "/b"), (["config"], "")],
)
def test_find_argument_returns_the_last_value(arguments: t.Any, value: str | None) -> None:
    assert own.find_argument(arguments, "config") == value
