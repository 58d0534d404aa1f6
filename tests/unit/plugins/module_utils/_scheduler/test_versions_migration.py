# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import copy
import typing as t

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._scheduler.versions import migrate

GROUP = "kubescheduler.config.k8s.io"


def configuration(version: str, **settings: t.Any) -> dict[str, t.Any]:
    return {"apiVersion": f"{GROUP}/{version}", "kind": "KubeSchedulerConfiguration", **settings}


def enabled(*names: str, point: str = "score", **more: t.Any) -> dict[str, t.Any]:
    return {"profiles": [{"plugins": {point: {"enabled": [{"name": name} for name in names]}}, **more}]}


CASES: dict[str, tuple[dict[str, t.Any], int, dict[str, t.Any]]] = {
    "no change": (
        configuration("v1", **enabled("NodeAffinity")),
        34,
        configuration("v1", **enabled("NodeAffinity")),
    ),
    "v1beta2": (configuration("v1beta2", parallelism=4), 34, configuration("v1", parallelism=4)),
    "v1beta3 where it is still read": (configuration("v1beta3"), 25, configuration("v1")),
    "even empty addresses": (
        configuration("v1", healthzBindAddress="", metricsBindAddress=""),
        34,
        configuration("v1"),
    ),
    "addresses": (
        configuration("v1beta3", healthzBindAddress=":0", metricsBindAddress="0.0.0.0:10251"),
        25,
        configuration("v1"),
    ),
    "arguments of plugins": (
        configuration(
            "v1beta3", profiles=[{"pluginConfig": [{"name": "A", "args": {"apiVersion": f"{GROUP}/v1beta3", "x": 1}}]}]
        ),
        29,
        configuration(
            "v1", profiles=[{"pluginConfig": [{"name": "A", "args": {"apiVersion": f"{GROUP}/v1", "x": 1}}]}]
        ),
    ),
    "arguments of a v1 file": (
        configuration("v1", profiles=[{"pluginConfig": [{"name": "A", "args": {"apiVersion": f"{GROUP}/v1beta2"}}]}]),
        34,
        configuration("v1", profiles=[{"pluginConfig": [{"name": "A", "args": {"apiVersion": f"{GROUP}/v1"}}]}]),
    ),
    "arguments of others": (
        configuration("v1", profiles=[{"pluginConfig": [{"name": "A", "args": {"apiVersion": "a.b/v1beta2"}}]}]),
        34,
        configuration("v1", profiles=[{"pluginConfig": [{"name": "A", "args": {"apiVersion": "a.b/v1beta2"}}]}]),
    ),
    "SelectorSpread": (
        configuration("v1beta3", **enabled("SelectorSpread", "A")),
        29,
        configuration("v1", **enabled("A")),
    ),
    "SelectorSpread alone": (
        configuration("v1beta2", **enabled("SelectorSpread")),
        29,
        configuration("v1", profiles=[{"plugins": {"score": {}}}]),
    ),
    "volume limits on 1.32": (
        configuration("v1", **enabled("EBSLimits", "A", point="filter")),
        32,
        configuration("v1", **enabled("A", point="filter")),
    ),
    "volume limits on 1.31": (
        configuration("v1", **enabled("EBSLimits", point="filter")),
        31,
        configuration("v1", **enabled("EBSLimits", point="filter")),
    ),
    "disabled plugins": (
        configuration("v1beta2", profiles=[{"plugins": {"score": {"disabled": [{"name": "NodeLabel"}]}}}]),
        34,
        configuration("v1", profiles=[{"plugins": {"score": {"disabled": [{"name": "NodeLabel"}]}}}]),
    ),
    "arguments of a removed plugin": (
        configuration("v1beta2", profiles=[{"pluginConfig": [{"name": "NodeLabel", "args": {}}]}]),
        34,
        configuration("v1", profiles=[{}]),
    ),
    "the lock": (
        configuration("v1beta2", leaderElection={"resourceLock": "endpointsleases"}),
        25,
        configuration("v1", leaderElection={"resourceLock": "leases"}),
    ),
    "the spelling of Policy": (
        configuration("v1", extenders=[{"urlPrefix": "http://a", "enableHttps": True, "ignorable": True}]),
        34,
        configuration("v1", extenders=[{"urlPrefix": "http://a", "enableHTTPS": True, "ignorable": True}]),
    ),
    "both spellings": (
        configuration("v1", extenders=[{"enableHttps": True, "enableHTTPS": True}]),
        34,
        configuration("v1", extenders=[{"enableHTTPS": True}]),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_configuration_is_migrated_to_its_version(case: str) -> None:
    before, minor, after = copy.deepcopy(CASES[case])
    migrate(before, minor, "c")
    assert before == after
    for extender in after.get("extenders", []):
        assert list(before["extenders"][0]) == list(extender)
    assert migrate(before, minor, "c") == []


@pytest.mark.parametrize("name", ["NodeLabel", "ServiceAffinity"])
def test_plugin_that_selects_nodes_is_refused(name: str) -> None:
    with pytest.raises(
        ConfigError, match=rf"profiles\[0\].plugins.score enables the plugin {name}.* instead, then run again"
    ):
        migrate(configuration("v1beta2", **enabled(name)), 34, "c")


#: Plugins that are enabled and disabled at each point, and whether the replacement of the plugin works.
SCORING: dict[str, tuple[dict[str, t.Any], bool]] = {
    "all are disabled": ({"score": {"disabled": ["*"], "enabled": ["SelectorSpread", "ImageLocality"]}}, False),
    "the replacement is disabled": (
        {"score": {"disabled": ["PodTopologySpread"], "enabled": ["SelectorSpread"]}},
        False,
    ),
    "another is disabled": ({"score": {"disabled": ["ImageLocality"], "enabled": ["SelectorSpread"]}}, True),
    "the replacement is enabled": (
        {"score": {"disabled": ["*"], "enabled": ["SelectorSpread", "PodTopologySpread"]}},
        True,
    ),
    "all are disabled everywhere": (
        {"score": {"enabled": ["SelectorSpread"]}, "multiPoint": {"disabled": ["*"]}},
        False,
    ),
    "the replacement is enabled everywhere": (
        {"score": {"enabled": ["SelectorSpread"]}, "multiPoint": {"disabled": ["*"], "enabled": ["PodTopologySpread"]}},
        True,
    ),
}


@pytest.mark.parametrize("case", SCORING)
def test_plugin_is_removed_only_if_its_replacement_works(case: str) -> None:
    points, works = SCORING[case]
    plugins = {
        point: {key: [{"name": name} for name in names] for key, names in lists.items()}
        for point, lists in points.items()
    }
    tree = configuration("v1beta3", profiles=[{"plugins": plugins}])
    if works:
        assert any("replaces it" in warning for warning in migrate(tree, 34, "c"))
    else:
        with pytest.raises(
            ConfigError, match=r"profiles\[0\]\.plugins\.score enables .* PodTopologySpread, .* is disabled"
        ):
            migrate(tree, 34, "c")


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"apiVersion": "v1", "kind": "Pod"}, "but v1 Pod"),
        ({}, "is not a KubeSchedulerConfiguration"),
        ([], "is not a KubeSchedulerConfiguration"),
        (
            configuration("v1beta1"),
            r"c is of kubescheduler.config.k8s.io/v1beta1, which is not supported .*: write it as v1, then",
        ),
        (configuration("v2"), "v2, which is not supported"),
        (configuration("v1", profiles={}), "profiles has to be a list"),
        (configuration("v1", extenders=["x"]), "extenders has to be a list of mappings"),
        (configuration("v1", extenders=[{"enableHttps": True, "enableHTTPS": False}]), "different values"),
    ],
)
def test_invalid_configuration_is_refused(tree: t.Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        migrate(tree, 34, "c")
