# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Credentials in YAML files, masked on the controller."""

from __future__ import annotations

import pytest

pytest.importorskip("ruamel.yaml")

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.redact import redact_yaml
from ansible_collections.gpu.kubernetes.plugins.plugin_utils._yaml import RoundTrip

MANIFEST = """\
# --token opensesame1 is for the proxy
kind: Pod
spec:
  automountServiceAccountToken: false
  containers:
  - name: kube-scheduler
    image: registry.k8s.io/kube-scheduler:v1@sha256:0123   # pinned
    command: [kube-scheduler, --bearer-token=opensesame2, --password, opensesame3]
    env:
    - name: HTTPS_PROXY
      value: http://bob:opensesame4@proxy.example
    - name: API_TOKEN
      value: opensesame5
    - {name: PLAIN, value: shown}
    livenessProbe:
      httpGet:
        httpHeaders:
        - name: X-Api
          value: opensesame6
  imagePullSecrets:
  - name: regcred
  volumes:
  - secret: {secretName: certs}
"""


def test_manifest_is_shown_without_credentials() -> None:
    before, after = redact_yaml(MANIFEST.encode(), MANIFEST.replace("same5", "same7").encode(), "m", RoundTrip())
    assert "opensesame" not in before + after
    assert "withheld" not in before + after
    for shown in ("kube-scheduler:v1@sha256:0123   # pinned", "@proxy.example", "API_TOKEN", "value: shown", "X-Api"):
        assert shown in before
    for shown in ("automountServiceAccountToken: false", "name: regcred", "secretName: certs"):
        assert shown in before
    [(old, new)] = [pair for pair in zip(before.splitlines(), after.splitlines()) if pair[0] != pair[1]]
    assert new == old.replace("********", "******** (changed)")


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("a: [opensesame\n", "cannot be read as YAML"),
        ("token: &t opensesame\r\nb: 1\r\n", "credentials that cannot be masked"),
    ],
)
def test_file_that_cannot_be_masked_is_withheld(text: str, cause: str) -> None:
    before, after = redact_yaml(text.encode(), None, "m", RoundTrip())
    assert cause in before
    assert "opensesame" not in before
    assert after == ""


def test_file_without_credentials_is_shown_unchanged() -> None:
    text = "a: 1\r\nb: [x]\r\n"
    assert redact_yaml(None, text.encode(), "m", RoundTrip()) == ("", text)
