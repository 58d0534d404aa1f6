# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether kube-scheduler calls an extender through a proxy.

Source: the rules of golang.org/x/net/http/httpproxy, which kube-scheduler's HTTP client follows.
"""

from __future__ import annotations

import ipaddress
import typing as t
from urllib.parse import SplitResult, urlsplit

_PORTS = {"http": 80, "https": 443}


def find_warnings(environment: t.Mapping[str, str], urls: t.Iterable[str], what: str) -> list[str]:
    """Return warnings of the addresses (http or https) that are called through the proxy of a container's *environment*."""
    warnings = []
    for url in urls:
        parts = urlsplit(url)
        name = f"{parts.scheme.upper()}_PROXY"
        if _value(environment, name) and _is_proxied(parts, _value(environment, "NO_PROXY")):
            warnings.append(
                f"{what} has {name} in its environment, and NO_PROXY does not cover {parts.hostname}: kube-scheduler calls {url} through the"
                f" proxy, and pods for this extender stay Pending. Add {parts.hostname} to NO_PROXY there, and where kubeadm is run, which"
                " writes its own environment into the manifest with each upgrade."
            )
    return warnings


def _value(environment: t.Mapping[str, str], name: str) -> str:
    return environment.get(name) or environment.get(name.lower()) or ""


def _is_proxied(parts: SplitResult, exceptions: str) -> bool:
    host = (parts.hostname or "").rstrip(".")
    port = str(parts.port or _PORTS[parts.scheme])
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
