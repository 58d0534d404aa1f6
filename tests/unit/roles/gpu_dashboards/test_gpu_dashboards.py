# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role by each method: check mode predicts the run, a second run changes nothing, and the undo restores the start.

Grafana's API and systemctl are fakes; the API server is the small one of the fakes.
"""

from __future__ import annotations

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


def prove(play, take, **variables):
    """Check, run and run again, then undo in the same way; *take* returns the state. Returns the state with the dashboards."""

    def step(*options, **more):
        code, changed, output = play(*options, **variables, **more)
        assert code == 0, output
        return changed

    start, states = take(), {}
    for state in ("present", "absent"):
        before = take()
        predicted = step("--check", "--diff", state=state)
        assert take() == before
        assert step(state=state) == predicted > 0
        states[state] = take()
        assert step(state=state) == 0
        assert take() == states[state]
    assert states["absent"] == start
    return states["present"]


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


def test_files_are_written_once_and_undone_to_the_byte(play, host):
    present = prove(play, lambda: read_tree(host), **places(host))
    assert [json.loads(present[f"data/gpus/{uid}.json"][1])["uid"] for uid in UIDS] == UIDS
    provider = present["provisioning/gpu-kubernetes.yaml"][1].decode()
    (described,) = json.loads(provider.split("\n", 1)[1])["providers"]
    assert (described["folder"], described["options"]["path"]) == ("GPUs", str(host / "data" / "gpus"))
    assert read_restarts(host) == ["restart grafana-server"] * 2


def test_restart_that_an_interrupted_run_left_due_is_made_by_the_next(play, host):
    code, _changed, output = play(**places(host))
    assert code == 0, output
    mark = host / "provisioning" / ".gpu-kubernetes-restart"
    # The mark is there before the restart, and gone after it.
    assert (host / "marked").read_text().splitlines() == read_restarts(host) == ["restart grafana-server"]
    assert not mark.exists()
    for state in ("present", "absent"):
        code, _changed, output = play(**places(host), state=state)
        assert code == 0, output
        before = len(read_restarts(host))
        mark.touch()
        code, _changed, output = play(**places(host), state=state)
        assert (code, len(read_restarts(host)), mark.exists()) == (0, before + 1, False), output


def test_changed_dashboards_need_no_restart_and_others_files_stay(play, host):
    code, _changed, output = play(**places(host))
    assert code == 0, output
    others = host / "data" / "gpus" / "others.json"
    others.write_text("{}")
    code, changed, output = play(
        "--diff", **places(host), prices={"*A100*": 2.5}, currency="EUR", runbook_url="https://docs.example.com"
    )
    assert (code, changed) == (0, 1), output
    assert "suffix: EUR" in output
    assert read_restarts(host) == ["restart grafana-server"]
    code, _changed, output = play(**places(host), state="absent", service="")
    assert code == 0, output
    assert [path.name for path in (host / "data" / "gpus").iterdir()] == ["others.json"]
    assert "RESTART DUE: grafana" in output
    assert read_restarts(host) == ["restart grafana-server"]


def test_provider_is_rolled_back_if_grafana_does_not_start(play, host):
    provider = host / "provisioning" / "gpu-kubernetes.yaml"

    def expect(**variables):
        before = read_tree(host)
        code, _changed, output = play(**places(host), **variables)
        assert code != 0
        assert (
            "grafana-server does not start after a change of the provider of the dashboards, which was rolled back"
            in (" ".join(output.split()))
        )
        return before

    expect(folder="broken")
    assert not provider.exists()
    code, _changed, output = play(**places(host))
    assert code == 0, output
    assert expect(folder="broken") == read_tree(host)
    (host / "provisioning" / "others.yaml").write_text("broken")
    assert expect(state="absent") == read_tree(host)
    assert read_restarts(host) == ["restart grafana-server"] * 7


def test_host_without_grafana_is_refused(play, host):
    code, changed, output = play(**{**places(host), "provisioning_path": str(host / "missing")})
    assert (code, changed) == (2, 0)
    assert f"grafana: there is no folder {host / 'missing'}; run the role on the host of Grafana" in " ".join(
        output.split()
    )


def test_config_maps_are_applied_once_and_removed(play, tmp_path):
    def take():
        return json.dumps(
            sorted((key, item["metadata"].get("labels"), item.get("data")) for key, item in server.objects.items())
        )

    with serve_in_thread(SmallCluster({"kind": "Namespace", "metadata": {"name": "monitoring"}})) as server:
        kubeconfig = str(write_kubeconfig(server.url, tmp_path / "kubeconfig"))
        variables = {"method": "configmap", "kubeconfig": kubeconfig, "limit": "all"}
        prove(play, take, **variables)
        code, _changed, output = play(**variables)
        assert code == 0, output
        objects = server.all("ConfigMap")
        assert [item["metadata"]["name"] for item in objects] == UIDS
        for item, uid in zip(objects, UIDS, strict=True):
            assert item["metadata"]["labels"].items() >= {"grafana_dashboard": "1"}.items()
            assert item["metadata"]["annotations"]["grafana_folder"] == "GPUs"
            assert json.loads(item["data"][f"{uid}.json"])["uid"] == uid
            # The API server's limit for annotations; the last applied configuration is one.
            assert sum(len(text.encode()) for text in item["metadata"]["annotations"].values()) < 256 * 1024


def test_missing_namespace_and_unmanaged_config_map_are_refused(play, tmp_path):
    unmanaged = {"kind": "ConfigMap", "metadata": {"name": UIDS[0], "namespace": "monitoring"}}
    with serve_in_thread(SmallCluster({"kind": "Namespace", "metadata": {"name": "monitoring"}}, unmanaged)) as server:
        kubeconfig = str(write_kubeconfig(server.url, tmp_path / "kubeconfig"))
        code, changed, output = play(method="configmap", kubeconfig=kubeconfig)
        assert (code, changed) == (2, 0)
        assert f"ConfigMap monitoring/{UIDS[0]} is not managed by this collection; remove it." in " ".join(
            output.split()
        )
        code, changed, output = play(method="configmap", kubeconfig=kubeconfig, namespace="missing")
        assert (code, changed) == (2, 0)
        assert "There is no namespace missing; set gpu_dashboards_namespace" in " ".join(output.split())


@pytest.fixture
def server():
    with serve_in_thread(FakeGrafana()) as running:
        yield running


def access(server, **more):
    return {"method": "api", "url": server.url, "token": TOKEN, "limit": "all", **more}


def test_dashboards_are_saved_once_and_removed_also_by_a_grafana_that_converts_them(play, server):
    server.is_new = True
    server.folders["others"] = "Others"
    server.save({"uid": "others", "title": "Others", "tags": []}, "others")

    def take():
        return json.dumps([server.folders, server.dashboards], sort_keys=True)

    folders, dashboards = json.loads(prove(play, take, **access(server)))
    assert folders == {"others": "Others", "gpu-kubernetes": "GPUs"}
    assert sorted(set(dashboards) - {"others"}) == UIDS
    assert {dashboards[uid]["meta"]["folderUid"] for uid in UIDS} == {"gpu-kubernetes"}
    assert {dashboards[uid]["dashboard"]["version"] for uid in UIDS} == {1}


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


@pytest.mark.parametrize(
    ("variables", "meta", "words"),
    [
        ({"token": "wrong"}, {}, "refuses the request: 401 Invalid API key; check the token"),
        ({"token": ""}, {}, "The method api needs gpu_dashboards_url and gpu_dashboards_token; set both."),
        ({}, {"tags": []}, f"The dashboard {UIDS[0]} in Grafana has not the tag gpu.kubernetes, so others made it"),
        (
            {},
            {"tags": ["gpu.kubernetes"], "provisioned": True},
            f"The dashboard {UIDS[0]} in Grafana comes from files or a ConfigMap",
        ),
        ({"url": "http://127.0.0.1:9"}, {}, "http://127.0.0.1:9 does not answer: "),
    ],
    ids=["token", "no token", "unmanaged", "provisioned", "address"],
)
def test_refusal_changes_nothing(play, server, variables, meta, words):
    if meta:
        server.save({"uid": UIDS[0], "title": "Others", "tags": meta.pop("tags")}, "others", **meta)
    code, changed, output = play(**access(server, **variables))
    assert (code, changed, server.changes) == (2, 0, []), output
    assert words in " ".join(output.split())
