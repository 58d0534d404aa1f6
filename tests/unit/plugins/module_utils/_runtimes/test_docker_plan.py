# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Docker's daemon.json: plans and refusals."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.draft import Managed
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.json_document import dumps
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.tree import MISSING
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.docker import Docker, plan
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.docker_files import (
    BINARY,
    KUBEADM,
    NVIDIA,
)
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.node import DockerNode

if t.TYPE_CHECKING:
    from pathlib import Path


class TestPlan:
    @pytest.mark.parametrize(
        ("tree", "requested", "expected"),
        [
            ({}, {}, {"runtimes": {"nvidia": NVIDIA}}),
            ({}, {"runtime_path": "/x"}, {"runtimes": {"nvidia": {"path": "/x"}}}),
            (
                {"runtimes": {"nvidia": {"path": "old", "runtimeArgs": ["a"]}}},
                {},
                {"runtimes": {"nvidia": {"path": BINARY, "runtimeArgs": ["a"]}}},
            ),
            ({}, {"set_default": True}, {"runtimes": {"nvidia": NVIDIA}, "default-runtime": "nvidia"}),
            ({"default-runtime": "x.y"}, {}, {"runtimes": {"nvidia": NVIDIA}, "default-runtime": "x.y"}),
            (
                {"default-runtime": "nvidia"},
                {"set_default": False},
                {"runtimes": {"nvidia": NVIDIA}, "default-runtime": "runc"},
            ),
            (
                {"features": {"buildkit": True}},
                {"enable_cdi": True},
                {"features": {"buildkit": True, "cdi": True}, "runtimes": {"nvidia": NVIDIA}},
            ),
            ({}, {"enable_cdi": False}, {"features": {"cdi": False}, "runtimes": {"nvidia": NVIDIA}}),
            ({}, {"settings": {"a": {"b": [1]}}}, {"a": {"b": [1]}, "runtimes": {"nvidia": NVIDIA}}),
            ({}, {"settings": {"runtimes": {"nvidia": {"path": "/y"}}}}, {"runtimes": {"nvidia": NVIDIA}}),
        ],
    )
    def test_target_of_each_request(
        self, tree: dict[str, t.Any], requested: dict[str, t.Any], expected: dict[str, t.Any]
    ) -> None:
        decision = plan(tree, Docker("/d.json", **requested))
        assert decision.target == expected
        assert decision.reasons
        again = plan(decision.target, Docker("/d.json", **requested))
        assert (again.target, again.reasons) == (expected, [])

    @pytest.mark.parametrize(
        ("before", "runtimes", "expected"),
        [(MISSING, {}, MISSING), ("crun", {"crun": {"path": "c"}}, "crun"), ("gone", {}, "runc")],
    )
    def test_false_restores_the_former_default(self, before: t.Any, runtimes: t.Any, expected: t.Any) -> None:
        tree = {"default-runtime": "nvidia", "runtimes": {"nvidia": NVIDIA, **runtimes}}
        managed = {("default-runtime",): Managed("default", before)}
        decision = plan(tree, Docker("/d.json", set_default=False), managed)
        assert decision.target.get("default-runtime", MISSING) == expected

    @pytest.mark.parametrize(
        ("default", "warns"), [("crun", True), ("runc", False), ("", False), ("io.containerd.kata.v2", False)]
    )
    def test_default_without_a_runtime_warns(self, default: str, warns: bool) -> None:
        assert bool(plan({"default-runtime": default}, Docker("/d.json")).warnings) is warns

    @pytest.mark.parametrize(
        ("name", "words"), [("runc", "reserved by Docker"), ("", "cannot be"), ("../x", "cannot be"), ("a.b", "cannot")]
    )
    def test_invalid_names_are_refused(self, name: str, words: str) -> None:
        with pytest.raises(ConfigError, match=words):
            Docker("/d.json", runtime_name=name)

    def test_runtime_of_a_shim_is_refused(self) -> None:
        with pytest.raises(
            ConfigError, match=r"runtimes\.nvidia has runtimeType x, beside which Docker accepts no path"
        ):
            plan({"runtimes": {"nvidia": {"runtimeType": "x"}}}, Docker("/d.json"))


ODD: list[t.Any] = [None, 5, -1.5, True, "text", "", [], ["x"], [{"x": 1}], {}, {"x": {}}, {"nvidia": 5}, {"path": []}]
PATHS = [
    ("default-runtime",),
    ("runtimes",),
    ("runtimes", "nvidia"),
    ("runtimes", "nvidia", "path"),
    ("runtimes", "nvidia", "runtimeType"),
    ("runtimes", "other"),
    ("runtimes", "other", "path"),
    ("features",),
    ("features", "cdi"),
]


def nest(path: tuple[str, ...], value: t.Any) -> dict[str, t.Any]:
    for key in reversed(path):
        value = {key: value}
    return t.cast("dict[str, t.Any]", value)


@pytest.mark.parametrize("path", PATHS, ids=".".join)
@pytest.mark.parametrize("value", ODD, ids=repr)
@pytest.mark.parametrize("place", ["file", "settings"])
def test_odd_types_are_refused_in_one_sentence_or_merged(
    tmp_path: Path, path: tuple[str, ...], value: t.Any, place: str
) -> None:
    text = dumps(nest(path, value)) if place == "file" else KUBEADM
    node = DockerNode(tmp_path, text)
    requested = {"settings": nest(path, value)} if place == "settings" else {}
    try:
        node.present(set_default=False, enable_cdi=True, **requested)
    except ConfigError as error:
        message = str(error)
        assert message.startswith((f"{node.config}: ", "settings: "))
        assert message.endswith(".")
        assert ("\n" in message, ";" in message or ": " in message) == (False, True)
        assert node.text() == text
        assert not (tmp_path / "state").exists()
    else:
        node.absent()
        assert node.text() == text


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("runtimes",), [], "runtimes has to be an object"),
        (("runtimes",), None, "runtimes has to be an object"),
        (("runtimes", "nvidia"), "x", "runtimes.nvidia has to be an object"),
        (("runtimes", "nvidia", "path"), 5, "runtimes.nvidia.path has to be a string"),
        (("default-runtime",), ["x"], "default-runtime has to be a string"),
        (("features",), True, "features has to be an object"),
        (("features", "cdi"), "true", "features.cdi has to be true or false"),
    ],
)
def test_refusal_names_setting_and_type(path: tuple[str, ...], value: t.Any, words: str) -> None:
    with pytest.raises(ConfigError, match=f"^/d.json: {words}; correct it and run again.$"):
        plan(nest(path, value), Docker("/d.json"))
