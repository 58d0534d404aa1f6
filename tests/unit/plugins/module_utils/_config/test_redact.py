# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._config import redact
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.formats import TOML
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.redact import MASK
from ansible_collections.gpu.kubernetes.plugins.module_utils._toml import loads
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes import samples

TEXT = """\
version = 2
# password = "in a comment"
[plugins."io.containerd.grpc.v1.cri".registry.configs."registry.example".auth]
  username = "robot"
  password = "hunter2"   # do not tell
  auth = 'cm9ib3Q6aHVudGVyMg=='
  identitytoken = "tokentoken"
[plugins."io.containerd.grpc.v1.cri".registry.mirrors."docker.io"]
  endpoint = ["https://me:sesame@mirror.example/"]
[plugins."io.containerd.grpc.v1.cri".registry.headers]
  Authorization = ["Basic secretheader"]
[other]
  key_file = "/etc/key.pem"
  use_token = true
  empty_password = ""
  inline = { client_secret = "inlinesecret", name = "shown" }
"""
SECRETS = ["in a comment", "hunter2", "cm9ib3Q6aHVudGVyMg==", "tokentoken", "sesame", "secretheader", "inlinesecret"]
SHOWN = ["robot", "mirror.example", "/etc/key.pem", "use_token = true", 'empty_password = ""', "shown", "do not tell"]


def test_only_secrets_are_masked() -> None:
    before, after = redact.redact_pair(TEXT.encode(), (TEXT + "[x]\ny = 1\n").encode(), TOML)
    for text in (before, after):
        assert not [secret for secret in SECRETS if secret in text]
        assert not [shown for shown in SHOWN if shown not in text]
    assert after.startswith(before)


def test_change_of_secret_is_marked() -> None:
    before, after = redact.redact_pair(TEXT.encode(), TEXT.replace("hunter2", "hunter3").encode(), TOML)
    assert "hunter" not in before + after
    different = [pair for pair in zip(before.splitlines(), after.splitlines()) if pair[0] != pair[1]]
    assert len(different) == 1
    assert "(changed)" in different[0][1]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (None, b"a = 1\n", ("", "a = 1\n")),
        (b"a = 1\n", None, ("a = 1\n", "")),
        (b"a = \xff", b"a = 1\n", None),
        (b"# \xff\na = 1\r\n", b"# \xff\na = 2\r\n", ("# \ufffd\na = 1\r\n", "# \ufffd\na = 2\r\n")),
    ],
)
def test_missing_and_invalid_contents(
    before: bytes | None, after: bytes | None, expected: tuple[str, str] | None
) -> None:
    pair = redact.redact_pair(before, after, TOML)
    if expected is None:
        assert all("withheld" in text for text in pair)
    else:
        assert pair == expected


#: TOML value (in single quotes below), texts that are masked, texts that are shown.
VALUES = [
    ("DB_PASSWORD=opensesame", ["opensesame"], ["DB_PASSWORD="]),
    ("DB_PASSWORD=open sesame, = and more", ["open", "sesame", "more"], ["DB_PASSWORD="]),
    ("AWS_SECRET_ACCESS_KEY=opensesame", ["opensesame"], ["AWS_SECRET_ACCESS_KEY="]),
    ("MYSQL_PWD=opensesame", ["opensesame"], ["MYSQL_PWD="]),
    ("--registry-token=opensesame", ["opensesame"], ["--registry-token="]),
    ("run --api-key=opensesame --color=no", ["opensesame"], ["--api-key=", "--color=no"]),
    ("PWD=/root", [], ["PWD=/root"]),
    ("NODE_NAME=gpu-1", [], ["NODE_NAME=gpu-1"]),
    ("COMPASS=north", [], ["COMPASS=north"]),
    ("HTTPS_PROXY=http://me:opensesame@proxy.example:3128", ["opensesame"], ["@proxy.example:3128"]),
    ("https://me:open@sesame@host.example/path", ["open", "sesame"], ["https://", "@host.example/path"]),
    ("https://opensesame@host.example", ["opensesame"], ["@host.example"]),
    ("https://host.example/path@2", [], ["https://host.example/path@2"]),
    ("https://host.example?mail=a@b.example", [], ["https://host.example?mail=a@b.example"]),
    ("https://host.example?token=opensesame&x=1", ["opensesame"], ["token=", "&x=1"]),
    ('{"auths": {"r.example": {"auth": "opensesame", "email": "a@b"}}}', ["opensesame"], ["r.example", "a@b"]),
    ('[{"bearer": "open\\"sesame"}]', ["sesame"], ["bearer"]),
    ('{"env": ["DB_PASSWORD=opensesame", "A=b"], "n": null, "on": true}', ["opensesame"], ["A=b", "DB_PASSWORD="]),
    ('{"broken": ', [], ['{"broken": ']),
    ("PGPASS=opensesame", ["opensesame"], ["PGPASS="]),
    ("BYPASS=shown", [], ["BYPASS=shown"]),
    ("https://host.example/b?sv=1&sig=opensesame&se=2", ["opensesame"], ["sv=1&sig=", "&se=2"]),
    ("https://host.example/b?X-Amz-Signature=opensesame", ["opensesame"], ["X-Amz-Signature="]),
    ("run --password opensesame --color no", ["opensesame"], ["--password ", " --color no"]),
    ("run --password-file /etc/shown", [], ["--password-file /etc/shown"]),
    ("me:opensesame@proxy.example:3128", ["opensesame"], ["@proxy.example:3128"]),
    ("me:open@sesame@[::1]:3128", ["open", "sesame"], ["@[::1]:3128"]),
    ("HTTPS_PROXY=me:opensesame@proxy.example", ["opensesame"], ["HTTPS_PROXY=", "@proxy.example"]),
    ("pause:3.10@sha256:0123abcd", [], ["pause:3.10@sha256:0123abcd"]),
    ("curl -H Authorization: Bearer opensesame", ["opensesame"], ["Authorization: Bearer "]),
    ("x eyJhbGciOi.eyJzdWIiOi.c2VzYW1l", ["c2VzYW1l"], ["x "]),
]

#: Lines of TOML with secrets, and words that remain.
TABLES = [
    ("[r.headers]\nX-JFrog-Art-Api = ['opensesame']\nX-One = 'opensesame'", ["X-JFrog-Art-Api"]),
    ("[credentials]\nuser = 'opensesame'\nport = 5000", ["user", "port"]),
    ("credentials = { value = 'opensesame' }", ["value"]),
    ("args = ['run', '--password', 'opensesame', '--token', '--color', 'no']", ["run", "--token", "--color", "'no'"]),
    ("env = [{ name = 'DB_TOKEN', value = 'opensesame' }, { name = 'A', value = 'b' }]", ["DB_TOKEN", "'A'", "'b'"]),
    ("headers = [{ name = 'X-One', value = 'opensesame' }]", ["X-One"]),
    ("key = '''\n-----BEGIN RSA PRIVATE KEY-----\nopen\nsesame\n-----END RSA PRIVATE KEY-----'''", ["BEGIN RSA"]),
    ("cert = '''\n-----BEGIN CERTIFICATE-----\nshown\n-----END CERTIFICATE-----'''", ["shown"]),
    ("a = 1\n# -----BEGIN PRIVATE KEY-----\n# opensesame\n# -----END PRIVATE KEY-----", ["a = 1"]),
    ("a = 1 # run --token opensesame", ["a = 1 # run --token "]),
    ("a = 1 # it's the password: opensesame", ["a = 1 # it's the password: "]),
]


@pytest.mark.parametrize(("text", "shown"), TABLES)
def test_secrets_in_tables_lists_and_comments_are_masked(text: str, shown: list[str]) -> None:
    before, _after = redact.redact_pair(f"{text}\n".encode(), None, TOML)
    assert "withheld" not in before
    assert not [word for word in ("open", "sesame", "5000") if word in before]
    plain = before.replace('"', "'")
    assert not [word for word in shown if word not in plain], before


def test_change_of_a_secret_in_a_list_is_visible() -> None:
    pair = redact.redact_pair(b"env = ['A=b', 'DB_TOKEN=open']\n", b"env = ['A=b', 'DB_TOKEN=sesame']\n", TOML)
    assert [text.count("(changed)") for text in pair] == [0, 1]
    assert "DB_TOKEN=" in pair[1]
    assert "sesame" not in pair[1]


def test_list_secrets_leaves_out_short_words() -> None:
    assert redact.list_secrets({"headers": {"a": "1", "b": "opensesame"}, "pin": "12"}) == {"opensesame"}


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (
            "The kubelet is started with --manifest-url-header=Authorization:opensesame (unit): remove the flag.",
            "The kubelet is started with --manifest-url-header=******** (unit): remove the flag.",
        ),
        ("urlPrefix is http://me:opensesame@host/x: correct it.", "urlPrefix is http://********@host/x: correct it."),
        ('level=error msg="x" token="open sesame" a=b', 'level=error msg="x" token="********" a=b'),
        ("/etc/x: registry.configs.auth has to be a table.", "/etc/x: registry.configs.auth has to be a table."),
    ],
)
def test_mask_text_of_a_message_masks_only_credentials(message: str, shown: str) -> None:
    assert redact.mask_text(message) == shown


@pytest.mark.parametrize(("value", "secrets", "shown"), VALUES)
@pytest.mark.parametrize("form", ["x = '%s'\n", "[plugins.x]\nenv = ['A=b', '%s']\n", "[[x.y]]\nz = { a = '%s' }\n"])
def test_secrets_in_values_are_masked(value: str, secrets: list[str], shown: list[str], form: str) -> None:
    text = form % value
    before, after = redact.redact_pair(text.encode(), None, TOML)
    assert after == ""
    assert not [word for word in secrets if word in before]
    plain = before.replace('\\"', '"')
    assert not [word for word in shown if word not in plain], before
    if not secrets:
        assert before == text
    words = redact.list_secrets(loads(text))
    assert bool(words) is bool(secrets)


@pytest.mark.parametrize(
    "key",
    [
        *(
            "auth",
            "basic_auth",
            "registryAuth",
            "bearer",
            "http.bearer",
            "X-Registry-Auth",
            "Proxy-Authorization",
            "pass",
        ),
        *(
            "db_pass",
            "passphrase",
            "client-secret",
            "secrets",
            "api_key",
            "registry-api-key",
            "my password",
            "credentials",
        ),
        *(
            "signing_key",
            "license_key",
            "jwt",
            "pw",
            "sas",
            "pin",
            "PGPASS",
            "keyData",
            "client-key-data",
            "x-amz-signature",
        ),
    ],
)
def test_values_of_secret_keys_are_masked(key: str) -> None:
    shown, _after = redact.redact_pair(f"[x]\n'{key}' = 'opensesame'\n".encode(), None, TOML)
    assert "opensesame" not in shown
    shown, _after = redact.redact_pair(
        f"[x]\n# '{key}' = 'opensesame'\ny = 'quoted' # {key}: opensesame\n".encode(), None, TOML
    )
    assert "opensesame" not in shown
    assert "y = 'quoted'" in shown


@pytest.mark.parametrize("key", ["bypass", "key_file", "authors", "author", "token_ttl", "config_path", "passthrough"])
def test_values_of_other_keys_are_shown(key: str) -> None:
    text = f"{key} = 'shown' # {key} = shown\n"
    assert redact.redact_pair(text.encode(), None, TOML)[0] == text


@pytest.mark.parametrize("name", samples.FILES)
def test_samples_without_credentials_are_unchanged(name: str) -> None:
    data = samples.FILES[name][0]
    shown, _after = redact.redact_pair(data.encode(), None, TOML)
    assert (shown == data) is (name != "kubespray")
    assert "correct horse" not in shown
    assert "hunter2" not in shown


def test_list_and_mask_secrets() -> None:
    words = redact.list_secrets(loads(TEXT))
    assert {"hunter2", "tokentoken", "me:sesame", "Basic secretheader", "inlinesecret"} <= words
    assert "robot" not in words
    assert redact.mask_words("bad value hunter2 here", words) == f"bad value {MASK} here"
