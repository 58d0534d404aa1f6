# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._scheduler import extenders

GOOD: dict[str, t.Any] = {
    "urlPrefix": "http://[fd00::1]:12345/x",
    "filterVerb": "filter",
    "prioritizeVerb": "prioritize",
    "weight": 1,
    "bindVerb": "bind",
    "httpTimeout": "1m30s",
    "nodeCacheCapable": True,
    "managedResources": [{"name": "aliyun.com/gpu-mem", "ignoredByScheduler": False}],
    "tlsConfig": {"insecure": False, "caFile": "/etc/ca.pem"},
}

BAD: list[tuple[dict[str, t.Any], str]] = [
    ({"enableHttps": True}, r"no setting enableHttps.*write enableHTTPS"),
    ({"bindverb": "b"}, "write bindVerb"),
    ({"nonsense": 1}, "it has urlPrefix"),
    ({"urlPrefix": ""}, r"extenders\[0\].urlPrefix is missing"),
    ({"urlPrefix": "127.0.0.1:12345"}, "urlPrefix"),
    ({"urlPrefix": "http://a b/"}, "urlPrefix"),
    ({"urlPrefix": "http://a:99999/"}, "urlPrefix"),
    ({"weight": 0}, "weight above 0"),
    ({"weight": -1, "prioritizeVerb": ""}, "weight is -1"),
    ({"weight": "5"}, "weight is '5' and has to be a whole number"),
    ({"weight": True}, "whole number"),
    ({"weight": 1.5}, "whole number"),
    ({"httpTimeout": "15"}, "is not a duration.*such as 5s"),
    ({"httpTimeout": 15}, "has to be a text"),
    ({"httpTimeout": "-5s"}, "not a duration"),
    ({"nodeCacheCapable": "yes"}, "true or false"),
    ({"managedResources": [{"name": "gpu-mem"}]}, "not an extended resource"),
    ({"managedResources": [{"name": "kubernetes.io/gpu"}]}, "not an extended resource"),
    ({"managedResources": [{"name": "node.kubernetes.io/gpu"}]}, "not an extended resource"),
    ({"managedResources": [{"name": "a.b/c"}, {"name": "a.b/c"}]}, "twice"),
    ({"managedResources": [{"ignoredByScheduler": True}]}, "is missing"),
    ({"managedResources": ["a.b/c"]}, "has to be a mapping"),
    ({"tlsConfig": {"caFil": "x"}}, "write caFile"),
    ({"filterVerb": "", "bindVerb": "", "prioritizeVerb": ""}, "does nothing"),
]


def test_complete_extender_is_accepted() -> None:
    assert extenders.check([GOOD]) == []


@pytest.mark.parametrize(("change", "message"), BAD)
def test_invalid_extender_is_refused(change: dict[str, t.Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        extenders.check([{**GOOD, **change}])


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({"bindVerb": "b"}, "at most one"),
        (
            {"managedResources": [{"name": "aliyun.com/gpu-mem"}], "nodeCacheCapable": True},
            "both manage aliyun.com/gpu-mem",
        ),
        ({"urlPrefix": GOOD["urlPrefix"] + "/"}, "twice as urlPrefix"),
    ],
)
def test_conflicting_extenders_are_refused(second: dict[str, t.Any], message: str) -> None:
    other = {"urlPrefix": "http://b", "filterVerb": "f", "managedResources": [{"name": "x.io/y"}], **second}
    with pytest.raises(ConfigError, match=message):
        extenders.check([GOOD, other])


def test_no_extenders_are_refused_with_the_remedy() -> None:
    with pytest.raises(ConfigError, match="state: absent"):
        extenders.check([])


@pytest.mark.parametrize(
    ("change", "words"),
    [({"nodeCacheCapable": False}, "nodeCacheCapable: true"), ({"managedResources": []}, "no pod is scheduled")],
)
def test_harmful_settings_warn(change: dict[str, t.Any], words: str) -> None:
    [warning] = extenders.check([{**GOOD, **change}])
    assert words in warning


def test_ignorable_extender_without_resources_is_accepted() -> None:
    assert extenders.check([{**GOOD, "managedResources": [], "ignorable": True}]) == []


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"urlPrefix": "http://other"}, True),
        ({"managedResources": []}, True),
        ({"urlPrefix": GOOD["urlPrefix"] + "/"}, True),
        ({"urlPrefix": "http://other", "managedResources": []}, False),
        ({"urlPrefix": "http://other", "managedResources": [{"name": "a.b/c"}]}, False),
    ],
)
def test_extender_is_identified_by_resources_or_address(change: dict[str, t.Any], same: bool) -> None:
    assert extenders.is_one_of({**GOOD, **change}, [extenders.identity(GOOD)]) is same


PLAIN: dict[str, t.Any] = {
    "urlPrefix": "http://10.0.0.1:12345/x",
    "filterVerb": "filter",
    "bindVerb": "bind",
    "nodeCacheCapable": True,
    "managedResources": [{"name": "aliyun.com/gpu-mem"}],
}
SAME: list[tuple[dict[str, t.Any], bool]] = [
    ({}, True),
    ({"enableHTTPS": False, "ignorable": False, "weight": 0, "preemptVerb": ""}, True),
    ({"httpTimeout": "5s"}, True),
    ({"httpTimeout": "0h0m5.0s"}, True),
    ({"httpTimeout": "0s"}, True),
    ({"httpTimeout": "5000001us"}, False),
    ({"tlsConfig": {"insecure": False}}, True),
    ({"tlsConfig": {"insecure": True}}, False),
    ({"urlPrefix": PLAIN["urlPrefix"] + "/"}, True),
    ({"nodeCacheCapable": False}, False),
    ({"bindVerb": ""}, False),
    ({"unknown": 1}, False),
]


@pytest.mark.parametrize(("change", "same"), SAME)
def test_is_same_extender_compares_effective_settings(change: dict[str, t.Any], same: bool) -> None:
    assert extenders.is_same_extender({**PLAIN, **change}, PLAIN) is same
    assert extenders.is_same_extender(PLAIN, {**PLAIN, **change}) is same


def test_is_same_extender_ignores_order_and_defaults_of_resources() -> None:
    one = [{"name": "a.b/c"}, {"name": "a.b/a", "ignoredByScheduler": True}]
    other = [{"ignoredByScheduler": True, "name": "a.b/a"}, {"name": "a.b/c", "ignoredByScheduler": False}]
    assert extenders.is_same_extender({**PLAIN, "managedResources": one}, {**PLAIN, "managedResources": other})
    assert not extenders.is_same_extender({**PLAIN, "managedResources": one[:1]}, {**PLAIN, "managedResources": other})
