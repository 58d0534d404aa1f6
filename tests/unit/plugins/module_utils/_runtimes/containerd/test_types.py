# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of a wrong type are refused before a change; all others are merged."""

from __future__ import annotations

import copy
import itertools
import typing as t

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.tree import format_path
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.containerd.schema import check_file
from ansible_collections.gpu.kubernetes.plugins.module_utils._toml import dumps, loads
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes import samples
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.node import Node
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.samples import V2, V3

if t.TYPE_CHECKING:
    from pathlib import Path

ODD: list[t.Any] = [5, -1.5, True, "cri", "", [], ["cri"], [["cri"]], [{"cri": 1}], {}, {"cri": {}}, {"runc": 5}]

#: The name of each type, and whether a value has it.
TYPES: dict[str, t.Callable[[t.Any], bool]] = {
    "a table": lambda value: isinstance(value, dict),
    "a string": lambda value: isinstance(value, str),
    "true or false": lambda value: isinstance(value, bool),
    "a list of strings": lambda value: isinstance(value, list) and all(isinstance(part, str) for part in value),
}
#: The settings of a runtime, below its name.
RUNTIME = {
    (): "a table",
    ("runtime_type",): "a string",
    ("options",): "a table",
    ("options", "BinaryName"): "a string",
    ("options", "SystemdCgroup"): "true or false",
}
#: The settings of the CRI plugin, below its name.
CRI = {
    (): "a table",
    ("enable_cdi",): "true or false",
    ("containerd",): "a table",
    ("containerd", "default_runtime_name"): "a string",
    ("containerd", "runtimes"): "a table",
    **{
        ("containerd", "runtimes", name, *rest): kind
        for name in ("runc", "nvidia", "a.b")
        for rest, kind in RUNTIME.items()
    },
}
#: All settings that are read, with their types.
READ: dict[tuple[str, ...], str] = {
    ("imports",): "a list of strings",
    ("disabled_plugins",): "a list of strings",
    ("required_plugins",): "a list of strings",
    ("plugins",): "a table",
    **{("plugins", plugin, *rest): kind for plugin in (V2, V3) for rest, kind in CRI.items()},
}


def set_odd_value(tree: dict[str, t.Any], path: tuple[str, ...], value: t.Any) -> dict[str, t.Any]:
    """Return a copy of *tree* with *value* at *path*; other values on the path become tables."""
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


def refusal(where: str, path: tuple[str, ...], value: t.Any) -> str:
    """Return the sentence with which *value* is refused at *path*, "" if it has the right type."""
    kind = READ[path]
    if path[-1:] == ("runtimes",) and value == {"runc": 5}:
        path, value = (*path, "runc"), 5
    return "" if TYPES[kind](value) else f"{where}: {format_path(path)} has to be {kind}; correct it and run again."


def test_each_setting_of_a_wrong_type_is_refused_by_name() -> None:
    tree = loads(samples.DEFAULT_V3 % 3)
    refused = 0
    for path in READ:
        for value in ODD:
            message = outcome(
                lambda path=path, value=value: check_file(set_odd_value(tree, path, value), "/etc/c.toml")
            )  # type: ignore[misc]
            assert message == refusal("/etc/c.toml", path, value), (path, value)
            refused += bool(message)
    assert refused > len(READ) * len(ODD) / 2
    check_file(tree, "/etc/c.toml")
    assert not outcome(lambda: check_file(set_odd_value(tree, ("root",), 5), "/etc/c.toml")), (
        "a setting that is not read is refused"
    )


#: One setting of each type and each place, by the version of the file.
PLACES = [
    (version, path)
    for version, plugin in ((2, V2), (2, V3), (3, V3), (3, V2))
    for path in (
        ("imports",),
        ("plugins", plugin),
        ("plugins", plugin, "enable_cdi"),
        ("plugins", plugin, "containerd", "runtimes"),
        ("plugins", plugin, "containerd", "runtimes", "runc", "options", "BinaryName"),
    )
]
REQUESTS: list[dict[str, t.Any]] = [
    {},
    {"set_default": True, "systemd_cgroup": True, "enable_cdi": True},
    {"set_default": False},
]


def test_odd_type_in_the_file_is_refused(tmp_path: Path) -> None:
    for number, (version, path) in enumerate(PLACES):
        tree = loads(samples.DEFAULT_V2 if version == 2 else samples.DEFAULT_V3 % 3)
        for at, value in enumerate([5, {"runc": 5}, [], True]):
            text = dumps(set_odd_value(tree, path, value))
            node = Node(tmp_path / f"{number}-{at}", text, "1.7" if version == 2 else "2.1")
            expected = refusal(str(node.config), path, value)
            for requested in REQUESTS if expected else REQUESTS[1:2]:
                message = outcome(lambda node=node, requested=requested: node.present(**requested))  # type: ignore[misc]
                assert message == expected, (version, path, value)
            assert (node.text() == text, (node.root / "state").exists()) == (bool(expected), not expected)
            if not expected:
                assert not node.present(**REQUESTS[1]).changed, (version, path, value)


def test_odd_type_written_by_others_is_refused(tmp_path: Path) -> None:
    for number, (version, path) in enumerate(PLACES):
        shipped = samples.DEBIAN if version == 2 else samples.DEFAULT_V3 % 3
        for at, value in enumerate([5, {"runc": 5}]):
            node = Node(tmp_path / f"{number}-{at}", shipped, "1.7" if version == 2 else "2.1")
            settings = {"debug": {"level": "info"}, "root": "/data"}
            node.present(set_default=True, systemd_cgroup=True, settings=settings)
            text = dumps(set_odd_value(loads(node.text()), path, value))
            node.config.write_text(text, encoding="utf-8")
            expected = refusal(str(node.config), path, value)
            for act in (node.absent, node.present):
                assert outcome(act) == expected, (version, path, value)
            assert (node.text() == text) == bool(expected), (version, path, value)


def test_version_that_is_not_a_number_is_refused(tmp_path: Path) -> None:
    for number, value in enumerate(value for value in ODD if value != 5):
        text = dumps(set_odd_value(loads(samples.DEFAULT_V3 % 3), ("version",), value))
        node = Node(tmp_path / str(number), text)
        message = outcome(node.present)
        assert message == f"{node.config}: version has to be an integer such as 2 or 3; correct it and run again.", (
            value
        )
        assert (node.text(), (node.root / "state").exists()) == (text, False)


TABLES = [("plugins", V3, *rest) for rest in ((), ("containerd",), ("containerd", "runtimes"))]


def test_odd_type_in_an_imported_file_is_refused_with_its_name(tmp_path: Path) -> None:
    for number, (path, value) in enumerate(itertools.product(TABLES, ODD)):
        node = Node(tmp_path / str(number), 'imports = ["more.toml"]\n' + samples.KUBEADM_V3)
        more = node.config.parent / "more.toml"
        more.write_text(dumps(set_odd_value({}, path, value)), encoding="utf-8")
        assert outcome(node.present) == refusal(str(more), path, value), (path, value)


def test_odd_type_in_settings_is_refused(tmp_path: Path) -> None:
    for number, (path, value) in enumerate(itertools.product(TABLES, ODD)):
        node = Node(tmp_path / str(number), samples.KUBEADM_V3)
        message = outcome(
            lambda node=node, path=path, value=value: node.present(settings=set_odd_value({}, path, value))
        )  # type: ignore[misc]
        wrong = refusal("", path, value)
        assert bool(message) == bool(wrong), (path, value)
        assert not message or message.startswith(
            f"settings:{wrong[1:].partition(' has to be ')[0]} is a table in {node.config}, "
        ), message
