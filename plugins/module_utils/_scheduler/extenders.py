# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Extenders, in KubeSchedulerConfiguration's own spelling. Private to this collection.

Source: https://kubernetes.io/docs/reference/config-api/kube-scheduler-config.v1/#kubescheduler-config-k8s-io-v1-Extender, whose rules
kube-scheduler applies when it starts: what is refused here would take the scheduler down there.
"""

from __future__ import annotations

import difflib
import re
import typing as t
from urllib.parse import urlsplit

from .._sharing.catalogue import OWN_PLUGIN
from .._yaml_files.errors import EditError
from .._yaml_files.scalars import meaning, text_of

Extender = t.Mapping[str, t.Any]

_KINDS: dict[str, tuple[type, str]] = {
    "urlPrefix": (str, "a text"),
    "filterVerb": (str, "a text"),
    "preemptVerb": (str, "a text"),
    "prioritizeVerb": (str, "a text"),
    "weight": (int, "a whole number"),
    "bindVerb": (str, "a text"),
    "enableHTTPS": (bool, "true or false"),
    "tlsConfig": (dict, "a mapping"),
    "httpTimeout": (str, "a text"),
    "nodeCacheCapable": (bool, "true or false"),
    "managedResources": (list, "a list"),
    "ignorable": (bool, "true or false"),
}
_TLS: dict[str, tuple[type, str]] = {
    "insecure": (bool, "true or false"),
    **dict.fromkeys(("serverName", "certFile", "keyFile", "caFile", "certData", "keyData", "caData"), (str, "a text")),
}
_RESOURCE: dict[str, tuple[type, str]] = {"name": (str, "a text"), "ignoredByScheduler": (bool, "true or false")}
VERBS = ("filterVerb", "preemptVerb", "prioritizeVerb", "bindVerb")

_DURATION = re.compile(
    r"(?:\d+(?:\.\d*)?|\.\d+)(?:(?:ns|us|µs|ms|s|m|h)(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|ms|s|m|h))*)"
)
# What others wrote may have a sign, either letter for micro, and a nought without a unit.
_MICRO = "\u03bc"
_GO_DURATION = re.compile(r"[-+]?(?:0|" + _DURATION.pattern.replace("ms|", f"ms|{_MICRO}s|") + ")")
_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_RESOURCE_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*/[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
# They look up each node in a cache of their own, and crash or answer nothing if they are sent nodes instead of names.
_CACHING = ("aliyun.com/", *(pattern.rstrip("*") for row in OWN_PLUGIN for pattern in row.resources))


def check(extenders: t.Sequence[Extender]) -> list[str]:
    """Return advice on what is asked for. Raises EditError, naming the extender, for what kube-scheduler refuses."""
    if not extenders:
        raise EditError("extenders is empty: give at least one, or state: absent to take out those of earlier runs.")
    advice = [text for index, extender in enumerate(extenders) for text in _check(extender, f"extenders[{index}]")]
    check_together(extenders)
    prefixes = [_url(extender) for extender in extenders]
    twice = next((prefix for prefix in prefixes if prefixes.count(prefix) > 1), None)
    if twice:
        raise EditError(f"extenders names {twice} twice as urlPrefix: give each extender once.")
    return advice


def check_together(extenders: t.Sequence[Extender]) -> None:
    """Raise EditError if one kube-scheduler cannot have these extenders together."""
    binders = [_url(extender) for extender in extenders if extender.get("bindVerb")]
    if len(binders) > 1:
        raise EditError(
            f"The extenders {' and '.join(binders)} both have a bindVerb, and kube-scheduler takes at most one: take one of them out, or run"
            " a second scheduler for it."
        )
    owners: dict[str, str] = {}
    for extender in extenders:
        for name in resources(extender):
            if owners.setdefault(name, _url(extender)) != _url(extender):
                raise EditError(
                    f"The extenders {owners[name]} and {_url(extender)} both manage {name}, and kube-scheduler takes one for each resource:"
                    " take one of them out."
                )


def check_timeouts(extenders: t.Sequence[Extender], what: str) -> None:
    """Raise EditError for an httpTimeout that is no duration, with which kube-scheduler does not start."""
    for index, extender in enumerate(extenders):
        timeout = extender.get("httpTimeout")
        number = isinstance(meaning(timeout), (int, float))
        if meaning(timeout) is not None and (number or not _GO_DURATION.fullmatch(text_of(timeout))):
            raise EditError(
                f"{what}: extenders[{index}].httpTimeout is {text_of(timeout) or 'empty'}, which is no duration, and kube-scheduler does not start with it:"
                " give a number with its unit, such as 5s, then run again."
            )


def resources(extender: Extender) -> list[str]:
    """Return the names of the resources that an extender manages."""
    managed = extender.get("managedResources")
    return (
        [text_of(each.get("name")) for each in managed if isinstance(each, dict)] if isinstance(managed, list) else []
    )


def identity(extender: Extender) -> dict[str, t.Any]:
    """Return by what an extender is known again: its address and the resources that it manages."""
    return {"urlPrefix": _url(extender), "managedResources": sorted(resources(extender))}


def is_one_of(extender: Extender, identities: t.Iterable[t.Mapping[str, t.Any]]) -> bool:
    """Whether *extender* is one of *identities*: it manages the same resources, or has the same address."""
    mine = identity(extender)
    return any(
        mine["urlPrefix"] == known["urlPrefix"]
        or (mine["managedResources"] and mine["managedResources"] == known["managedResources"])
        for known in identities
    )


def told(extender: Extender) -> str:
    """Return an extender in words."""
    managed = f" for {', '.join(resources(extender))}" if resources(extender) else ""
    return f"the extender {_url(extender)}{managed}"


def _url(extender: Extender) -> str:
    return text_of(extender.get("urlPrefix")).rstrip("/")


def _check(extender: Extender, where: str) -> list[str]:
    _check_kinds(extender, _KINDS, where)
    _check_address(extender, where)
    if not any(extender.get(verb) for verb in VERBS):
        raise EditError(f"{where} does nothing: give it at least one of {', '.join(VERBS)}.")
    if extender.get("prioritizeVerb") and extender.get("weight", 0) <= 0:
        raise EditError(
            f"{where} has a prioritizeVerb, for which kube-scheduler asks a weight above 0: give it a weight."
        )
    if not 0 <= extender.get("weight", 0) < 2**63:
        raise EditError(f"{where}.weight is {extender['weight']}: give a whole number above 0.")
    timeout = extender.get("httpTimeout", "1s")
    if not _DURATION.fullmatch(timeout):
        raise EditError(
            f"{where}.httpTimeout is {timeout}, which is no duration: give a number with its unit, such as 5s or 500ms."
        )
    if "tlsConfig" in extender:
        _check_kinds(extender["tlsConfig"], _TLS, f"{where}.tlsConfig")
    _check_resources(extender, where)
    return _advice(extender, where)


def _check_kinds(given: t.Any, kinds: t.Mapping[str, tuple[type, str]], where: str) -> None:
    if not isinstance(given, dict):
        raise EditError(f"{where} has to be a mapping.")
    for key, value in given.items():
        if key not in kinds:
            close = {name.lower(): name for name in kinds}
            near = difflib.get_close_matches(str(key).lower(), close, n=1)
            remedy = f"write {close[near[0]]}" if near else f"it takes {', '.join(kinds)}"
            raise EditError(
                f"{where} has no setting {key}, and kube-scheduler does not start with one that it does not know: {remedy}."
            )
        kind, word = kinds[key]
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise EditError(f"{where}.{key} is {value!r} and has to be {word}.")


def _check_address(extender: Extender, where: str) -> None:
    prefix = extender.get("urlPrefix", "")
    try:
        parts = urlsplit(prefix)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if not good or re.search(r"\s", prefix):
        raise EditError(
            f"{where}.urlPrefix is {prefix or 'missing'}: give the address of the extender, such as http://10.96.0.20:12345/scheduler."
        )


def _check_resources(extender: Extender, where: str) -> None:
    names: list[str] = []
    for index, each in enumerate(extender.get("managedResources", [])):
        place = f"{where}.managedResources[{index}]"
        _check_kinds(each, _RESOURCE, place)
        name = each.get("name", "")
        domain = name.partition("/")[0]
        native = domain == "kubernetes.io" or domain.endswith(".kubernetes.io") or name.startswith("requests.")
        if not _RESOURCE_NAME.fullmatch(name) or native or len(name.partition("/")[2]) > 63:
            raise EditError(
                f"{place}.name is {name or 'missing'}, which is no extended resource: give one with a domain of its own, such as"
                " aliyun.com/gpu-mem."
            )
        if name in names:
            raise EditError(f"{where} manages {name} twice: name each resource once.")
        names.append(name)


def _advice(extender: Extender, where: str) -> list[str]:
    caching = [name for name in resources(extender) if name.startswith(_CACHING)]
    advice = []
    if caching and extender.get("nodeCacheCapable") is not True:
        advice.append(f"{where} manages {caching[0]}, and extenders for that fail without nodeCacheCapable: true.")
    if not extender.get("managedResources") and not extender.get("ignorable"):
        advice.append(
            f"{where} names no managedResources, so that it is asked for every pod: while it does not answer, no pod at all is scheduled."
        )
    return advice
