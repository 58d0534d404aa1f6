# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An edit of any manifest changes its subject and nothing else."""

from __future__ import annotations

import copy
import typing as t

import pytest

pytest.importorskip("ruamel.yaml")
pytest.importorskip("hypothesis")

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.yaml_nodes import meaning
from ansible_collections.gpu.kubernetes.plugins.module_utils._scheduler import manifest
from ansible_collections.gpu.kubernetes.plugins.plugin_utils._yaml import RoundTrip

RT = RoundTrip()
PATH, REF = "/etc/kubernetes/s.yaml", "--config=/etc/kubernetes/s.yaml"

odd = st.sampled_from(
    ["y", "N", "1e3", "0o17", "10:20", "null", "", "a: b", "# no", "é", "multi\nline", "-", "x" * 130 + " y z"]
)
text = odd | st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "Zs"]), max_size=12)
name = st.from_regex(r"[a-z]{1,6}", fullmatch=True)
value = st.recursive(
    text | st.booleans() | st.integers(-5, 5) | st.none(),
    lambda inner: st.dictionaries(name, inner, max_size=3),
    max_leaves=4,
)
flag = st.from_regex(r"--[a-b]{1,3}(=[a-z0-9:,/]{0,5})?", fullmatch=True)


@st.composite
def pods(draw: st.DrawFn) -> dict[str, t.Any]:
    """A pod with kube-scheduler and random other parts."""
    given_flags = draw(st.lists(flag, max_size=4))
    start = draw(
        st.sampled_from(
            [
                {"command": ["kube-scheduler", *given_flags]},
                {"command": ["kube-scheduler"], "args": [*given_flags, "--v=2"]},
            ]
        )
    )
    volumes = draw(st.lists(name, unique=True, max_size=3))
    container: dict[str, t.Any] = {
        "name": "kube-scheduler",
        "image": "registry.k8s.io/kube-scheduler:v1.34.4",
        **start,
        **draw(st.dictionaries(st.sampled_from(["env", "resources", "livenessProbe"]), value, max_size=2)),
    }
    if volumes:
        container["volumeMounts"] = [{"name": each, "mountPath": f"/mnt/{each}"} for each in volumes]
    others = draw(st.lists(st.fixed_dictionaries({"name": st.just("side"), "env": value}), max_size=1))
    spec: dict[str, t.Any] = {
        "containers": [*others, container],
        **draw(st.dictionaries(st.sampled_from(["hostNetwork", "priority"]), value)),
    }
    has_list: bool = draw(st.booleans())
    if volumes or has_list:
        spec["volumes"] = [{"name": each, "hostPath": {"path": f"/srv/{each}", "type": ""}} for each in volumes]
    metadata = {
        "name": "kube-scheduler",
        **draw(st.dictionaries(st.sampled_from(["labels"]), st.dictionaries(name, text))),
    }
    if draw(st.booleans()):
        metadata["annotations"] = draw(st.dictionaries(name, text, min_size=1))
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": spec,
        **draw(st.dictionaries(st.just("status"), value)),
    }


def remove_managed(tree: dict[str, t.Any]) -> dict[str, t.Any]:
    """Return a copy of *tree* without the parts that an edit adds."""
    tree = copy.deepcopy(tree)
    container = next(each for each in tree["spec"]["containers"] if each["name"] == "kube-scheduler")
    for place in ("command", "args"):
        if place in container:
            container[place] = [item for item in container[place] if item != REF]
    for parent, key in ((container, "volumeMounts"), (tree["spec"], "volumes")):
        left = [each for each in parent[key] if each["name"] != manifest.VOLUME]
        assert len(left) == len(parent.pop(key)) - 1
        if left:
            parent[key] = left
    del tree["metadata"]["annotations"][manifest.CHECKSUM]
    if not tree["metadata"]["annotations"]:
        del tree["metadata"]["annotations"]
    return tree


def drop_empty_volumes(tree: dict[str, t.Any]) -> dict[str, t.Any]:
    """An empty list of volumes means none."""
    spec: dict[str, t.Any] = {key: part for key, part in tree["spec"].items() if (key, part) != ("volumes", [])}
    return {**tree, "spec": spec}


@settings(max_examples=settings().max_examples // 2)  # each reads YAML seven times
@given(pods(), st.booleans(), st.sampled_from([2, 3, 4]), st.sampled_from([40, 80, 10000]), st.booleans())
def test_edit_changes_nothing_else_and_can_be_undone(
    tree: dict[str, t.Any], sort: bool, indent: int, width: int, flow: bool
) -> None:
    style: dict[str, t.Any] = {
        "indent": indent,
        "width": width,
        "sort_keys": sort,
        "allow_unicode": True,
        "default_flow_style": None if flow else False,
    }
    data = yaml.safe_dump(tree, **style).encode()
    before = meaning(RT.read(data, "m"))

    def put(node: t.Any) -> None:
        manifest.apply(manifest.pod(node, "m"), PATH, "1e3")

    def undo(node: t.Any) -> None:
        manifest.undo(manifest.pod(node, "m"), None, PATH, "/k", True)

    after = RT.edit(data, "m", put)
    assert drop_empty_volumes(remove_managed(meaning(RT.read(after, "m")))) == drop_empty_volumes(before)
    assert drop_empty_volumes(remove_managed(yaml.safe_load(after))) == drop_empty_volumes(yaml.safe_load(data))
    assert RT.edit(after, "m", put) == after
    undone = meaning(RT.read(RT.edit(after, "m", undo), "m"))
    for place in ("command", "args"):  # without a configuration, it requires a kubeconfig
        container = next(each for each in undone["spec"]["containers"] if each["name"] == "kube-scheduler")
        if place in container:
            container[place] = [item for item in container[place] if item != "--kubeconfig=/k"]
    assert drop_empty_volumes(undone) == drop_empty_volumes(before)


def pod(mounts: list[dict[str, t.Any]], volumes: list[dict[str, t.Any]]) -> manifest.Pod:
    container = {"name": "kube-scheduler", "command": ["kube-scheduler"], "volumeMounts": mounts}
    return manifest.pod({"kind": "Pod", "metadata": {}, "spec": {"containers": [container], "volumes": volumes}}, "m")


FOLDER = {"name": "c", "hostPath": {"path": "/host/c/", "type": ""}}


@pytest.mark.parametrize(
    ("mounts", "inside", "outside"),
    [
        ([{"name": "c", "mountPath": "/in"}], "/in/x/y.yaml", "/host/c/x/y.yaml"),
        ([{"name": "c", "mountPath": "/in/"}], "/in/y.yaml", "/host/c/y.yaml"),
        ([{"name": "c", "mountPath": "/in", "subPath": "s"}], "/in/y.yaml", "/host/c/s/y.yaml"),
        ([{"name": "c", "mountPath": "/in", "subPathExpr": "$(X)"}], "/in/y.yaml", None),
        ([{"name": "c", "mountPath": "/in/y.yaml"}], "/in/y.yaml", "/host/c"),
        ([{"name": "c", "mountPath": "/in"}, {"name": "e", "mountPath": "/in/x"}], "/in/x/y.yaml", None),
        ([{"name": "c", "mountPath": "/i"}], "/in/y.yaml", None),
        ([{"name": "c", "mountPath": "/"}], "/in/y.yaml", "/host/c/in/y.yaml"),
        ([], "/in/y.yaml", None),
    ],
)
def test_host_path_of_each_mount(mounts: list[dict[str, t.Any]], inside: str, outside: str | None) -> None:
    assert manifest.host_path(pod(mounts, [FOLDER, {"name": "e", "emptyDir": {}}]), inside) == outside


def test_mount_that_covers_the_configuration_is_used() -> None:
    found = pod([{"name": "c", "mountPath": "/in"}], [FOLDER])
    manifest.apply(found, "/host/c/s.yaml", "0")
    assert found.config == "/in/s.yaml"
    assert len(found.spec["volumes"]) == 1


def test_conflicting_mount_is_named() -> None:
    found = pod([{"name": "e", "mountPath": "/etc/kubernetes"}], [{"name": "e", "emptyDir": {}}])
    with pytest.raises(ConfigError, match=r"something else at /etc/kubernetes.*another config_path"):
        manifest.apply(found, PATH, "0")


@pytest.mark.parametrize(
    ("metadata", "words"),
    [(["x"], "metadata has to be a mapping"), ({"annotations": "x"}, "annotations has to be a mapping")],
)
def test_metadata_that_is_not_a_mapping_is_refused(metadata: t.Any, words: str) -> None:
    container = {"name": "kube-scheduler", "command": ["kube-scheduler"]}
    with pytest.raises(ConfigError, match=f"m: {words}"):
        manifest.pod({"kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}, "m")


def test_flags_of_former_releases_are_removed() -> None:
    found = pod([], [])
    found.container["command"] += ["--policy-config-file", "/p.json", "--port=0"]
    warnings = manifest.apply(found, PATH, "0")
    assert found.container["command"] == ["kube-scheduler", REF]
    assert "The rules of /p.json" in warnings[-1]
