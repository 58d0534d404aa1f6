# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import copy
import typing as t

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.shape import check_shape
from ansible_collections.gpu.kubernetes.plugins.module_utils._toml import dumps, loads
from ansible_collections.gpu.kubernetes.tests.unit.effort import sample
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes import samples
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.node import Node
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.samples import V2, V3

if t.TYPE_CHECKING:
    from pathlib import Path

ODD: list[t.Any] = [5, -1.5, True, "cri", "", [], ["cri"], [["cri"]], [{"cri": 1}], {}, {"cri": {}}, {"runc": 5}]

#: Every setting that is read, as (version, path).
READ: list[tuple[int, tuple[str, ...]]] = [
    *((3, (key,)) for key in ("version", "imports", "disabled_plugins", "required_plugins", "plugins", "root")),
    *(
        (version, ("plugins", plugin, *rest))
        for version, plugin in ((2, V2), (2, V3), (3, V3), (3, V2))
        for rest in (
            (),
            ("enable_cdi",),
            ("containerd",),
            ("containerd", "default_runtime_name"),
            ("containerd", "runtimes"),
            *(
                ("containerd", "runtimes", name, *more)
                for name in ("runc", "nvidia", "kata")
                for more in (
                    (),
                    ("runtime_type",),
                    ("options",),
                    ("options", "BinaryName"),
                    ("options", "SystemdCgroup"),
                )
            ),
        )
    ),
]


def with_odd(tree: dict[str, t.Any], path: tuple[str, ...], value: t.Any) -> dict[str, t.Any]:
    """Return *tree* with *value* at *path*, whatever was in the way."""
    result = copy.deepcopy(tree)
    here = result
    for key in path[:-1]:
        if not isinstance(here.get(key), dict):
            here[key] = {}
        here = here[key]
    here[path[-1]] = value
    return result


def outcome(act: t.Callable[[], t.Any]) -> str:
    """Return the message if *act* refuses, "" if it does not; any other exception is a failure."""
    try:
        act()
    except ConfigError as error:
        return str(error)
    return ""


def assert_sentence(message: str) -> None:
    assert message.endswith(".")
    assert "\n" not in message
    assert ";" in message or ":" in message, f"no remedy: {message}"


@pytest.mark.parametrize(
    ("version", "path"), READ, ids=lambda value: ".".join(value) if isinstance(value, tuple) else None
)
def test_odd_types_are_refused_or_merged_and_never_half_done(
    tmp_path: Path, version: int, path: tuple[str, ...]
) -> None:
    tree = loads(samples.DEFAULT_V2 if version == 2 else samples.DEFAULT_V3 % 3)
    refused = []
    for number, value in enumerate(sample(ODD, READ.index((version, path)))):
        text = dumps(with_odd(tree, path, value))
        node = Node(tmp_path / str(number), text, "1.7" if version == 2 else "2.1")
        for asked in ({}, {"set_default": True, "systemd_cgroup": True, "enable_cdi": True}, {"set_default": False}):
            message = outcome(lambda node=node, asked=asked: node.present(**asked))  # type: ignore[misc]
            if message:
                assert_sentence(message)
                assert message.startswith(str(node.config))
                assert node.text() == text
                assert not (node.root / "state").exists()
                refused.append(number)
                break
    assert refused or path == ("root",), "nothing is refused here, so that this path needs no test"


@pytest.mark.parametrize(
    ("version", "path"), READ, ids=lambda value: ".".join(value) if isinstance(value, tuple) else None
)
def test_odd_types_that_others_wrote_since(tmp_path: Path, version: int, path: tuple[str, ...]) -> None:
    shipped = samples.DEBIAN if version == 2 else samples.DEFAULT_V3 % 3
    for number, value in enumerate(sample(ODD, READ.index((version, path)))):
        node = Node(tmp_path / str(number), shipped, "1.7" if version == 2 else "2.1")
        settings = {"debug": {"level": "info"}, "root": "/data"}
        node.present(set_default=True, systemd_cgroup=True, settings=settings)
        text = dumps(with_odd(loads(node.text()), path, value))
        node.config.write_text(text, encoding="utf-8")
        for act in (node.absent, node.present):
            message = outcome(act)
            if message:
                assert_sentence(message)
                assert node.text() == text
            text = node.text()


@pytest.mark.parametrize("path", [("plugins", V3, *rest) for rest in ((), ("containerd",), ("containerd", "runtimes"))])
@pytest.mark.parametrize("value", ODD, ids=repr)
def test_odd_types_in_imports_and_settings(tmp_path: Path, path: tuple[str, ...], value: t.Any) -> None:
    node = Node(tmp_path, 'imports = ["more.toml"]\n' + samples.KUBEADM_V3)
    (node.config.parent / "more.toml").write_text(dumps(with_odd({}, path, value)), encoding="utf-8")
    message = outcome(node.present)
    if message:
        assert_sentence(message)
        assert "more.toml" in message
    assert bool(message) is (not isinstance(value, dict) or (value == {"runc": 5} and path[-1] == "runtimes"))
    (node.config.parent / "more.toml").unlink()
    message = outcome(lambda: node.present(settings=with_odd({}, path, value)))
    if message:
        assert_sentence(message)
        assert message.startswith("settings: ")


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("disabled_plugins",), 5, "disabled_plugins has to be a list of strings"),
        (("disabled_plugins",), [["cri"]], "disabled_plugins has to be a list of strings"),
        (("disabled_plugins",), "cri", "disabled_plugins has to be a list of strings"),
        (("plugins", V3, "containerd", "default_runtime_name"), ["runc"], "default_runtime_name has to be a string"),
        (("plugins", V3, "containerd", "runtimes", "runc", "runtime_type"), [], "runtime_type has to be a string"),
        (("plugins", V3, "containerd", "runtimes", "runc"), 1, "runtimes.runc has to be a table"),
        (("plugins", V3, "containerd", "runtimes", "a.b", "options", "SystemdCgroup"), "true", "true or false"),
        (("plugins",), 3, "plugins has to be a table"),
    ],
)
def test_words(path: tuple[str, ...], value: t.Any, words: str) -> None:
    with pytest.raises(ConfigError, match=f"^/etc/c.toml: .*{words}; correct it and run again.$"):
        check_shape(with_odd({}, path, value), "/etc/c.toml")
    check_shape(loads(samples.DEFAULT_V3 % 3), "/etc/c.toml")
