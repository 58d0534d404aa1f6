# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role by each method: check mode predicts the run, a later run changes only what differs, and the undo restores the start.

Grafana's API and systemctl are fakes; the API server is the small one of the fakes.
"""

from __future__ import annotations

import contextlib
import json
import os
import re

import pytest
from fakes.grafana import TOKEN, FakeGrafana
from fakes.loopback_api import serve_in_thread, write_kubeconfig
from fakes.small_cluster import SmallCluster

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import HERE

NAMES = ("allocation", "cost", "fleet", "health", "node")
UIDS = [f"gpu-kubernetes-{name}" for name in NAMES]
# A fake: Grafana does not start while a provider names the folder "broken".
SYSTEMCTL = """#!/bin/sh
# A fake of systemctl.
case "$1" in show) echo LoadState=loaded; echo ActiveState=active; exit ;; esac
echo "$@" >> {folder}/log
[ ! -e {folder}/provisioning/.gpu-kubernetes-restart ] || echo "$@" >> {folder}/marked
! cat {folder}/provisioning/* | grep -q broken
"""


@pytest.fixture
def play(run, tmp_path):
    """Run the role: exit code, number of changed tasks, and output."""
    playbook = tmp_path / "play.yml"
    hosts = {"all": {"hosts": {"grafana": HERE, "other": HERE}}}
    playbook.write_text(
        json.dumps([{"hosts": "all", "gather_facts": False, "roles": ["gpu.kubernetes.gpu_dashboards"]}])
    )
    environment = {}

    def play_role(*options, limit="grafana", **variables):
        extra = {f"gpu_dashboards_{name}": value for name, value in variables.items() if name != "kubeconfig"}
        extra.update({"gpu_kubeconfig": variables["kubeconfig"]} if "kubeconfig" in variables else {})
        code, output = run(hosts, playbook, "--limit", limit, *options, environment=environment, **extra)
        return code, sum(map(int, re.findall(r"changed=(\d+)", output))), output

    play_role.environment = environment
    return play_role


@pytest.fixture
def expect(play):
    """Run the role, and require its success and its number of changed tasks. With a function that reads the state, check mode predicts that number first."""

    def run_and_expect(changes, *options, read=None, **variables):
        predicted = changes
        if read:
            before = read()
            code, predicted, output = play("--check", "--diff", **variables)
            assert (code, predicted > 0, read()) == (0, True, before), output
        code, changed, output = play(*options, **variables)
        assert (code, changed) == (0, predicted), output
        return output

    return run_and_expect


@pytest.fixture
def host(play, tmp_path):
    """A host of Grafana: its folder, which has its programs, its providers and its data."""
    folder = tmp_path / "host"
    for name in ("bin", "provisioning", "data"):
        (folder / name).mkdir(parents=True)
    (folder / "provisioning" / "others.yaml").write_text("apiVersion: 1\n")
    program = folder / "bin" / "systemctl"
    program.write_text(SYSTEMCTL.format(folder=folder))
    program.chmod(0o755)
    play.environment["PATH"] = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return folder


def read_tree(folder):
    """Path -> mode and content of all below two folders of the host."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mode, path.read_bytes() if path.is_file() else b"")
        for name in ("provisioning", "data")
        for path in sorted((folder / name).rglob("*"))
    }


def places(folder):
    return {"method": "files", "path": str(folder / "data" / "gpus"), "provisioning_path": str(folder / "provisioning")}


def read_restarts(folder):
    log = folder / "log"
    return log.read_text().splitlines() if log.exists() else []


def test_undo_without_a_service_keeps_the_files_of_others(play, host):
    (host / "provisioning" / "gpu-kubernetes.yaml").write_text("apiVersion: 1\n")
    others = host / "data" / "gpus" / "others.json"
    others.parent.mkdir()
    for path in (others, others.with_name(f"{UIDS[0]}.json")):
        path.write_text("{}")
    code, _changed, output = play(**places(host), state="absent", service="")
    assert code == 0, output
    assert list(others.parent.iterdir()) == [others]
    assert "RESTART DUE: grafana" in output
    assert read_restarts(host) == []


def test_files_are_written_once_and_undone_to_the_byte(expect, host):
    """A run that was interrupted before the restart leaves it to the next one, and changed dashboards need none."""
    start, mark = read_tree(host), host / "provisioning" / ".gpu-kubernetes-restart"
    expect(None, read=lambda: read_tree(host), **places(host))
    present = read_tree(host)
    assert [json.loads(present[f"data/gpus/{uid}.json"][1])["uid"] for uid in UIDS] == UIDS
    provider = present["provisioning/gpu-kubernetes.yaml"][1].decode()
    (described,) = json.loads(provider.split("\n", 1)[1])["providers"]
    assert (described["folder"], described["options"]["path"]) == ("GPUs", str(host / "data" / "gpus"))
    # The mark is there before the restart, and gone after it.
    assert (host / "marked").read_text().splitlines() == read_restarts(host) == ["restart grafana-server"]
    assert not mark.exists()
    mark.touch()
    expect(1, **places(host))
    assert (read_tree(host), len(read_restarts(host))) == (present, 2)
    prices = {"prices": {"*A100*": 2.5}, "currency": "EUR", "runbook_url": "https://docs.example.com"}
    assert "suffix: EUR" in expect(1, "--diff", **places(host), **prices)
    assert len(read_restarts(host)) == 2
    expect(None, read=lambda: read_tree(host), **places(host), state="absent")
    assert (read_tree(host), len(read_restarts(host))) == (start, 3)
    mark.touch()
    expect(1, **places(host), state="absent")
    assert (read_tree(host), len(read_restarts(host))) == (start, 4)


def test_provider_is_rolled_back_if_grafana_does_not_start(play, host):
    provider = host / "provisioning" / "gpu-kubernetes.yaml"

    def fail(**variables):
        code, _changed, output = play(**places(host), **variables)
        assert code != 0
        assert (
            "grafana-server does not start after a change of the provider of the dashboards, which was rolled back"
            in (" ".join(output.split()))
        )

    fail(folder="broken")
    assert not provider.exists()
    provider.write_text("apiVersion: 1\n")
    fail(folder="broken")
    assert provider.read_text() == "apiVersion: 1\n"
    (host / "provisioning" / "others.yaml").write_text("broken")
    before = read_tree(host)
    fail(state="absent")
    assert read_tree(host) == before
    assert read_restarts(host) == ["restart grafana-server"] * 6


def test_config_maps_are_applied_once_and_removed(expect, tmp_path):
    def read():
        return json.dumps(
            sorted((key, item["metadata"].get("labels"), item.get("data")) for key, item in server.objects.items())
        )

    with serve_in_thread(SmallCluster({"kind": "Namespace", "metadata": {"name": "monitoring"}})) as server:
        kubeconfig = str(write_kubeconfig(server.url, tmp_path / "kubeconfig"))
        variables = {"method": "configmap", "kubeconfig": kubeconfig, "limit": "all"}
        start = read()
        expect(None, read=read, **variables)
        expect(0, **variables)
        objects = server.all("ConfigMap")
        assert [item["metadata"]["name"] for item in objects] == UIDS
        for item, uid in zip(objects, UIDS, strict=True):
            assert item["metadata"]["labels"].items() >= {"grafana_dashboard": "1"}.items()
            assert item["metadata"]["annotations"]["grafana_folder"] == "GPUs"
            assert json.loads(item["data"][f"{uid}.json"])["uid"] == uid
            # The API server's limit for annotations; the last applied configuration is one.
            assert sum(len(text.encode()) for text in item["metadata"]["annotations"].values()) < 256 * 1024
        expect(None, read=read, **variables, state="absent")
        assert read() == start


@pytest.fixture
def server():
    with serve_in_thread(FakeGrafana()) as running:
        yield running


def access(server, **more):
    return {"method": "api", "url": server.url, "token": TOKEN, "limit": "all", **more}


def test_dashboards_are_saved_and_removed_also_by_a_grafana_that_converts_them(expect, server):
    server.is_new = True
    server.folders["others"] = "Others"
    server.save({"uid": "others", "title": "Others", "tags": []}, "others")

    def read():
        return json.dumps([server.folders, server.dashboards], sort_keys=True)

    start = read()
    expect(None, read=read, **access(server))
    folders, dashboards = json.loads(read())
    assert folders == {"others": "Others", "gpu-kubernetes": "GPUs"}
    assert sorted(set(dashboards) - {"others"}) == UIDS
    assert {dashboards[uid]["meta"]["folderUid"] for uid in UIDS} == {"gpu-kubernetes"}
    assert {dashboards[uid]["dashboard"]["version"] for uid in UIDS} == {1}
    server.changes.clear()
    expect(0, "--check", **access(server))
    expect(0, **access(server))
    assert server.changes == []
    expect(None, read=read, **access(server), state="absent")
    assert read() == start


def test_change_by_a_person_is_shown_and_reverted_and_the_token_is_hidden(play, server):
    code, _changed, output = play(**access(server))
    assert code == 0, output
    server.dashboards[UIDS[0]]["dashboard"]["title"] = "changed by a person"
    server.changes.clear()
    code, changed, output = play("--diff", "-vvv", **access(server, folder="All GPUs"))
    assert (code, changed) == (0, 1), output
    assert server.changes == ["PUT folders/gpu-kubernetes", "POST dashboards/db"]
    assert "changed by a person" in output
    assert TOKEN not in output
    # A dashboard that a person has put into the folder keeps it.
    server.save({"uid": "others", "title": "Others", "tags": []}, "gpu-kubernetes")
    code, _changed, output = play(**access(server, state="absent"))
    assert code == 0, output
    assert (list(server.dashboards), server.folders) == (["others"], {"gpu-kubernetes": "All GPUs"})


def test_refused_requests_change_nothing(refusals, server, tmp_path):
    """One play for each host. The namespace of ConfigMaps is missing, or has an object of others."""
    server.save({"uid": UIDS[0], "title": "Others", "tags": []}, "others")
    (tmp_path / "data").mkdir()
    with contextlib.ExitStack() as stack:
        provisioned = stack.enter_context(serve_in_thread(FakeGrafana()))
        provisioned.save({"uid": UIDS[0], "title": "x", "tags": ["gpu.kubernetes"]}, "others", provisioned=True)
        unmanaged = {"kind": "ConfigMap", "metadata": {"name": UIDS[0], "namespace": "monitoring"}}
        small = SmallCluster({"kind": "Namespace", "metadata": {"name": "monitoring"}}, unmanaged)
        cluster = stack.enter_context(serve_in_thread(small))
        kubeconfig = str(write_kubeconfig(cluster.url, tmp_path / "kubeconfig"))
        missing = str(tmp_path / "missing")
        grafana = {"method": "api", "url": server.url, "token": TOKEN}
        #: Variables of a host, and a part of the message.
        hosts = {
            "token": ({**grafana, "token": "wrong"}, "refuses the request: 401 Invalid API key; check the token"),
            "no-token": (
                {**grafana, "token": ""},
                "The method api needs gpu_dashboards_url and gpu_dashboards_token; set both.",
            ),
            "unmanaged": (
                grafana,
                f"The dashboard {UIDS[0]} in Grafana has not the tag gpu.kubernetes, so others made it",
            ),
            "provisioned": (
                {**grafana, "url": provisioned.url},
                f"The dashboard {UIDS[0]} in Grafana comes from files or a ConfigMap",
            ),
            "address": ({**grafana, "url": "http://127.0.0.1:9"}, "http://127.0.0.1:9 does not answer: "),
            "no-grafana": (
                {"method": "files", "path": str(tmp_path / "data" / "gpus"), "provisioning_path": missing},
                f"no-grafana: there is no folder {missing}; run the role on the host of Grafana",
            ),
            "unmanaged-object": (
                {"method": "configmap"},
                f"ConfigMap monitoring/{UIDS[0]} is not managed by this collection; remove it.",
            ),
            "no-namespace": (
                {"method": "configmap", "namespace": "missing"},
                "There is no namespace missing; set gpu_dashboards_namespace",
            ),
        }
        plays = [
            {host: {f"gpu_dashboards_{name}": value for name, value in variables.items()}}
            for host, (variables, _words) in hosts.items()
        ]
        found = refusals("gpu_dashboards", ["main"], *plays, extra={"gpu_kubeconfig": kubeconfig})
        assert [server.changes, provisioned.changes, len(cluster.all("ConfigMap"))] == [[], [], 1]
    assert list((tmp_path / "data").iterdir()) == []
    for host, (_variables, words) in hosts.items():
        assert words in " ".join(found[host].split()), found[host]
