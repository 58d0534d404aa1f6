# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._scheduler.extenders import find_proxy_warnings

PROXY = "http://me:opensesame@proxy:3128"


@pytest.mark.parametrize(
    ("url", "no_proxy"),
    [
        # Never through a proxy, for any NO_PROXY.
        ("http://127.0.0.1:12345/x", ""),
        ("http://localhost:12345/x", ""),
        ("http://[::1]:12345/x", ""),
        ("http://10.96.0.20:12345/x", "*"),
        ("http://10.96.0.20:12345/x", "10.96.0.20"),
        ("http://10.96.0.20:12345/x", "example.com, 10.96.0.20:12345"),
        ("http://10.96.0.20/x", "10.96.0.20:80"),
        ("https://10.96.0.20/x", "10.96.0.20:443"),
        ("http://10.96.0.20:12345/x", "a.example,10.96.0.0/12"),
        ("http://[fd00::20]:12345/x", "fd00::/108"),
        ("http://[fd00::20]:12345/x", "fd00::20"),
        ("http://[fd00::20]:12345/x", "[fd00::20]:12345"),
        ("http://a.example.com:1/x", "example.com"),
        ("http://A.example.com:1/x", ".EXAMPLE.com"),
        ("http://a.example.com:1/x", "*.example.com:1"),
        ("http://example.com/x", "example.com"),
    ],
)
def test_direct_calls_do_not_warn(url: str, no_proxy: str) -> None:
    environment = {"HTTP_PROXY": PROXY, "HTTPS_PROXY": PROXY, "NO_PROXY": no_proxy}
    assert find_proxy_warnings(environment, [url], "m") == []
    assert find_proxy_warnings({name.lower(): value for name, value in environment.items()}, [url], "m") == []


@pytest.mark.parametrize(
    ("url", "no_proxy"),
    [
        ("http://10.96.0.20:12345/x", ""),
        ("http://10.96.0.20:12345/x", "10.96.0.2,10.97.0.0/16,10.96.0.20:1,.0.20,nonsense/99,:12345"),
        ("http://[fd00::20]:12345/x", "fd00::2,fe80::/16"),
        ("http://example.com/x", ".example.com"),
        ("http://example.com/x", "*.example.com"),
        ("http://badexample.com/x", "example.com"),
        ("https://a.example.com/x", "example.com:80"),
    ],
)
def test_calls_through_the_proxy_warn_without_its_password(url: str, no_proxy: str) -> None:
    [warning] = find_proxy_warnings(
        {"HTTP_PROXY": PROXY, "https_proxy": PROXY, "NO_PROXY": no_proxy}, [url], "the manifest"
    )
    assert warning.startswith("the manifest has HTTP")
    assert f"calls {url} through the proxy" in warning
    assert "opensesame" not in warning


def test_each_scheme_has_its_proxy() -> None:
    urls = ["http://10.0.0.1/x", "https://10.0.0.1/x"]
    assert [url for url in urls if find_proxy_warnings({"HTTPS_PROXY": PROXY}, [url], "m")] == urls[1:]
    assert find_proxy_warnings({"NO_PROXY": "a", "HTTP_PROXY": ""}, urls, "m") == []
