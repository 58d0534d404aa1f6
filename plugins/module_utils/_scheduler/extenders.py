# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Extenders, in KubeSchedulerConfiguration's own spelling, and whether kube-scheduler calls them through a proxy.

Sources: https://kubernetes.io/docs/reference/config-api/kube-scheduler-config.v1/#kubescheduler-config-k8s-io-v1-Extender, whose rules
kube-scheduler applies when it starts: it would not start with what is refused here; and the rules of
golang.org/x/net/http/httpproxy, which its HTTP client follows.
"""

from __future__ import annotations

import difflib
import ipaddress
import re
import typing as t
from fractions import Fraction
from urllib.parse import SplitResult, urlsplit

from .._config.errors import ConfigError
from .._config.yaml_nodes import Ambiguous, meaning, text_of
from .._document import is_same
from .._sharing.catalogue import OWN_PLUGIN

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
_UNITS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    f"{_MICRO}s": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_PART = re.compile(rf"(\d+\.?\d*|\.\d+)(ns|us|µs|{_MICRO}s|ms|s|m|h)")
#: Nanoseconds that kube-scheduler waits for an extender without a timeout of its own.
DEFAULT_TIMEOUT = 5 * 10**9
_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_RESOURCE_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*/[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
# They look up each node in a cache of their own, and crash or answer nothing if they are sent nodes instead of names.
_CACHING = ("aliyun.com/", *(pattern.rstrip("*") for row in OWN_PLUGIN for pattern in row.resources))

_DEFAULT_PORTS = {"http": 80, "https": 443}


def check(extenders: t.Sequence[Extender]) -> list[str]:
    """Return warnings about the requested extenders. Raises ConfigError, naming the extender, for what kube-scheduler refuses."""
    if not extenders:
        raise ConfigError("extenders is empty: give at least one, or state: absent to remove those of earlier runs.")
    warnings = [text for index, extender in enumerate(extenders) for text in _check(extender, f"extenders[{index}]")]
    check_together(extenders)
    prefixes = [_url(extender) for extender in extenders]
    twice = next((prefix for prefix in prefixes if prefixes.count(prefix) > 1), None)
    if twice:
        raise ConfigError(f"extenders names {twice} twice as urlPrefix: give each extender once.")
    return warnings


def check_together(extenders: t.Sequence[Extender]) -> None:
    """Raise ConfigError if one kube-scheduler cannot have these extenders together."""
    binders = [_url(extender) for extender in extenders if extender.get("bindVerb")]
    if len(binders) > 1:
        raise ConfigError(
            f"The extenders {' and '.join(binders)} both have a bindVerb, and kube-scheduler accepts at most one: remove one of them, or run"
            " a second scheduler for it."
        )
    owners: dict[str, str] = {}
    for extender in extenders:
        for name in resources(extender):
            if owners.setdefault(name, _url(extender)) != _url(extender):
                raise ConfigError(
                    f"The extenders {owners[name]} and {_url(extender)} both manage {name}, and kube-scheduler accepts one for each resource:"
                    " remove one of them."
                )


def check_timeouts(extenders: t.Sequence[Extender], what: str) -> None:
    """Raise ConfigError for an httpTimeout that is not a duration, with which kube-scheduler does not start."""
    for index, extender in enumerate(extenders):
        timeout = extender.get("httpTimeout")
        number = isinstance(meaning(timeout), (int, float))
        if meaning(timeout) is not None and (number or not _GO_DURATION.fullmatch(text_of(timeout))):
            raise ConfigError(
                f"{what}: extenders[{index}].httpTimeout is {text_of(timeout) or 'empty'}, which is not a duration, and kube-scheduler does not start with it:"
                " give a number with its unit, such as 5s, then run again."
            )


def normalize(extender: Extender) -> dict[str, t.Any]:
    """Return what an extender means to kube-scheduler: settings that are left out with their defaults, durations in nanoseconds.

    Settings that kube-scheduler does not know stay as they are. Source: the defaults of the API and of pkg/scheduler/extender.go.
    """
    given = meaning(extender)
    result = {**_fill(given, _KINDS), "urlPrefix": _url(extender)}
    result["httpTimeout"] = _read_duration(given.get("httpTimeout"))
    result["tlsConfig"] = _fill(given.get("tlsConfig"), _TLS)
    managed = given.get("managedResources")
    if isinstance(managed, list) and all(isinstance(each, dict) for each in managed):
        filled = [_fill(each, _RESOURCE) for each in managed]
        result["managedResources"] = sorted(filled, key=lambda each: str(each["name"]))
    return result


def is_same_extender(one: Extender, other: Extender) -> bool:
    """Whether two extenders mean the same to kube-scheduler."""
    return is_same(normalize(one), normalize(other))


def _fill(given: t.Any, kinds: t.Mapping[str, tuple[type, str]]) -> dict[str, t.Any]:
    """Return the settings with the empty value of their type where they are left out or null; of anything but a mapping, that value."""
    if given is not None and not isinstance(given, dict):
        return {"": given}
    stated = {key: value for key, value in (given or {}).items() if value is not None or key not in kinds}
    return {**{key: kind() for key, (kind, _word) in kinds.items()}, **stated}


def _read_duration(given: t.Any) -> t.Any:
    """Return a duration in nanoseconds, the default for none and for zero, and anything else as it is."""
    given = given.text if isinstance(given, Ambiguous) else given
    if given in (None, 0, "0"):
        return DEFAULT_TIMEOUT
    if not isinstance(given, str) or not _GO_DURATION.fullmatch(given):
        return given
    total = sum(Fraction(number) * _UNITS[unit] for number, unit in _PART.findall(given))
    return int(-total if given.startswith("-") else total) or DEFAULT_TIMEOUT


def resources(extender: Extender) -> list[str]:
    """Return the names of the resources that an extender manages."""
    managed = extender.get("managedResources")
    return (
        [text_of(each.get("name")) for each in managed if isinstance(each, dict)] if isinstance(managed, list) else []
    )


def identity(extender: Extender) -> dict[str, t.Any]:
    """Return by what an extender is recognised: its address and the resources that it manages."""
    return {"urlPrefix": _url(extender), "managedResources": sorted(resources(extender))}


def is_one_of(extender: Extender, identities: t.Iterable[t.Mapping[str, t.Any]]) -> bool:
    """Whether *extender* is one of *identities*: it manages the same resources, or has the same address."""
    this = identity(extender)
    return any(
        this["urlPrefix"] == known["urlPrefix"]
        or (this["managedResources"] and this["managedResources"] == known["managedResources"])
        for known in identities
    )


def describe(extender: Extender) -> str:
    """Return an extender in words."""
    managed = f" for {', '.join(resources(extender))}" if resources(extender) else ""
    return f"the extender {_url(extender)}{managed}"


def _url(extender: Extender) -> str:
    return text_of(extender.get("urlPrefix")).rstrip("/")


def _check(extender: Extender, where: str) -> list[str]:
    _check_kinds(extender, _KINDS, where)
    _check_address(extender, where)
    if not any(extender.get(verb) for verb in VERBS):
        raise ConfigError(f"{where} does nothing: give it at least one of {', '.join(VERBS)}.")
    if extender.get("prioritizeVerb") and extender.get("weight", 0) <= 0:
        raise ConfigError(
            f"{where} has a prioritizeVerb, for which kube-scheduler requires a weight above 0: give it a weight."
        )
    if not 0 <= extender.get("weight", 0) < 2**63:
        raise ConfigError(f"{where}.weight is {extender['weight']}: give a whole number above 0.")
    timeout = extender.get("httpTimeout", "1s")
    if not _DURATION.fullmatch(timeout):
        raise ConfigError(
            f"{where}.httpTimeout is {timeout}, which is not a duration: give a number with its unit, such as 5s or 500ms."
        )
    if "tlsConfig" in extender:
        _check_kinds(extender["tlsConfig"], _TLS, f"{where}.tlsConfig")
    _check_resources(extender, where)
    return _find_warnings(extender, where)


def _check_kinds(given: t.Any, kinds: t.Mapping[str, tuple[type, str]], where: str) -> None:
    if not isinstance(given, dict):
        raise ConfigError(f"{where} has to be a mapping.")
    for key, value in given.items():
        if key not in kinds:
            close = {name.lower(): name for name in kinds}
            near = difflib.get_close_matches(str(key).lower(), close, n=1)
            remedy = f"write {close[near[0]]}" if near else f"it has {', '.join(kinds)}"
            raise ConfigError(
                f"{where} has no setting {key}, and kube-scheduler does not start with one that it does not know: {remedy}."
            )
        kind, word = kinds[key]
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise ConfigError(f"{where}.{key} is {value!r} and has to be {word}.")


def _check_address(extender: Extender, where: str) -> None:
    prefix = extender.get("urlPrefix", "")
    try:
        parts = urlsplit(prefix)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if not good or re.search(r"\s", prefix):
        raise ConfigError(
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
            raise ConfigError(
                f"{place}.name is {name or 'missing'}, which is not an extended resource: give one with a domain of its own, such as"
                " aliyun.com/gpu-mem."
            )
        if name in names:
            raise ConfigError(f"{where} manages {name} twice: name each resource once.")
        names.append(name)


def _find_warnings(extender: Extender, where: str) -> list[str]:
    caching = [name for name in resources(extender) if name.startswith(_CACHING)]
    warnings = []
    if caching and extender.get("nodeCacheCapable") is not True:
        warnings.append(f"{where} manages {caching[0]}, and extenders for that fail without nodeCacheCapable: true.")
    if not extender.get("managedResources") and not extender.get("ignorable"):
        warnings.append(
            f"{where} names no managedResources, so that kube-scheduler calls it for every pod: while it does not answer, no pod is scheduled."
        )
    return warnings


# -- proxies


def find_proxy_warnings(environment: t.Mapping[str, str], urls: t.Iterable[str], what: str) -> list[str]:
    """Return warnings of the addresses (http or https) that are called through the proxy of a container's *environment*."""
    warnings = []
    for url in urls:
        parts = urlsplit(url)
        name = f"{parts.scheme.upper()}_PROXY"
        if _get_variable(environment, name) and _is_proxied(parts, _get_variable(environment, "NO_PROXY")):
            warnings.append(
                f"{what} has {name} in its environment, and NO_PROXY does not cover {parts.hostname}: kube-scheduler calls {url} through the"
                f" proxy, and pods for this extender stay Pending. Add {parts.hostname} to NO_PROXY there, and where kubeadm is run, which"
                " writes its own environment into the manifest with each upgrade."
            )
    return warnings


def _get_variable(environment: t.Mapping[str, str], name: str) -> str:
    return environment.get(name) or environment.get(name.lower()) or ""


def _is_proxied(parts: SplitResult, exceptions: str) -> bool:
    host = (parts.hostname or "").rstrip(".")
    port = str(parts.port or _DEFAULT_PORTS[parts.scheme])
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return False
    rules = [rule.strip().lower() for rule in exceptions.split(",")]
    return not any(_covers(rule, host, port, address) for rule in rules if rule)


def _covers(rule: str, host: str, port: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None) -> bool:
    """Whether an element of NO_PROXY is the host, its domain (with or without a port), its network, or the star for all."""
    if rule == "*":
        return True
    if "/" in rule:
        return address is not None and address in _network(rule)
    name, colon, only = rule.rpartition(":")
    if not colon or (":" in name and not name.endswith("]")):
        name, only = rule, ""
    name = name.strip("[]")
    if only not in ("", port) or not name:
        return False
    if address is not None or _address(name) is not None:
        return address == _address(name)
    name = name[1:] if name.startswith("*.") else name
    return host.endswith("." + name.lstrip(".")) or host == name


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _network(text: str) -> t.Container[t.Any]:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return ()
