# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The exporter as a service of a host: the fake exporter runs on the simulated NVML, and systemd is a fake."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import os
import re
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
from fakes.exporter_machine import UNIT, ExporterMachine
from lab.fakes.exporter import build_program

if os.geteuid() != 0:
    pytest.skip("only root gives files to root", allow_module_level=True)

INVENTORY = "node ansible_connection=local ansible_become=false\n"
VERBOSE = ("-vvv", "--diff")
ABSENT = {"gpu_exporter_state": "absent"}
# Of the password "metrics".
HASH = "$2b$04$abcdefghijklmnopqrstuuWgctGDngcjsRK5o7ANJEF.bqkcSWTle"
REMOVED = [f"disable {UNIT}", f"stop {UNIT}", "daemon-reload"]


@pytest.fixture
def machine(tmp_path, nvml_builder):
    host = ExporterMachine(tmp_path, nvml_builder.library("h200"))
    yield host
    host.end()


@pytest.fixture
def port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.fixture
def apply(run, machine, port):
    """Run the role with the variables of each step: exit code, (number of changed tasks, target) of each step, output in one line."""

    def play(*steps, options=()):
        code, output = run(INVENTORY, machine.write_play(*steps, port=port), *options, **machine.build_places())
        print(output)
        parts = re.split(r"TARGET[|](\S*)[|]END", output)
        targets = [dict(zip(("address", "exporter", "scheme"), filter(None, text.split("|")))) for text in parts[1::2]]
        changes = [len(re.findall(r"^changed: ", text, re.MULTILINE)) for text in parts[::2]]
        found = list(zip(changes, targets))
        return code, found, " ".join(output.split())

    return play


def read(url, context=None, **headers):
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - a URL of this test
    with urllib.request.urlopen(request, context=context, timeout=10) as answer:  # noqa: S310 - as above
        return answer.read().decode()


def test_service_is_run_restarted_and_removed(apply, machine, port):
    """The scenario removes it with the role's state."""
    before = machine.read_tree()
    target = {"address": f"127.0.0.1:{port}", "exporter": "nvidia_gpu_exporter", "scheme": "http"}

    code, [(changes, found)], output = apply({}, options=["--check", "--diff"])
    assert (code, changes > 0, found, machine.read_tree(), machine.read_log()) == (0, True, target, before, []), output

    code, [(changes, found)], output = apply({})
    assert (code, changes > 0, found) == (0, True, target), output
    assert machine.read_log() == [f"enable {UNIT}", "daemon-reload", f"start {UNIT}"]
    assert 'name="NVIDIA H200"' in read(f"http://127.0.0.1:{port}/metrics")
    unit = (machine.folder / "units" / UNIT).read_text()
    for line in ("NoNewPrivileges=yes", "ProtectSystem=strict", "DeviceAllow=char-nvidia* rw", "StartLimitBurst=5"):
        assert line in unit.splitlines()
    assert f"ConditionPathExists=|{machine.folder}/driver/version" in unit
    assert "PrivateDevices" not in unit, "it hides the GPUs"

    after = machine.read_tree()
    code, [unchanged, (changes, found)], output = apply({}, ABSENT, options=["--check"])
    assert (code, unchanged, changes > 0, found) == (0, (0, target), True, {}), output
    assert (machine.read_tree(), machine.read_log()) == (after, [])

    # A run was interrupted after the unit was written.
    (machine.folder / "loaded").write_text("the former unit")
    code, [(changes, _found)], output = apply({})
    assert (code, changes, machine.read_log()) == (0, 1, ["daemon-reload", f"restart {UNIT}"]), output

    machine.add_listener("/usr/bin/dcgm-exporter", "0B00000A", 9400, "nvidia-dcgm-exporter")
    code, [(_changes, found)], output = apply({})
    assert (code, machine.read_tree(), machine.read_log()) == (0, before, REMOVED), output
    assert found == {"address": "10.0.0.11:9400", "exporter": "dcgm_exporter", "scheme": "http"}
    assert "USED: Host node: nvidia-dcgm-exporter.service (pid 30) serves GPU metrics at 10.0.0.11:9400" in output


def test_service_has_tls_and_users_and_no_secret_is_shown(apply, machine, port, tmp_path):
    files = [tmp_path / name for name in ("own.crt", "own.key")]
    options = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=node"]
    subprocess.run(["openssl", "req", *options, "-out", files[0], "-keyout", files[1]], check=True, capture_output=True)
    certificate, key = (path.read_text() for path in files)
    variables = {
        "gpu_exporter_tls_certificate": certificate,
        "gpu_exporter_tls_key": key,
        "gpu_exporter_basic_auth_users": {"prometheus": HASH},
        "gpu_exporter_url": f"file://mirror-user:mirror-word@{machine.archive}",
    }
    before = machine.read_tree()
    machine.hide(variables)
    code, [(changes, found)], output = apply({"gpu_exporter_src": ""}, options=VERBOSE)
    assert (code, changes > 0, found["scheme"]) == (0, True, "https"), output
    secrets = (HASH, key.splitlines()[1], "mirror-user", "mirror-word")
    assert [secret for secret in secrets if secret in output] == []
    folder = machine.folder / "etc" / "gpu-kubernetes" / "gpu_exporter"
    modes = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
    assert modes == dict.fromkeys(("web.yml", "tls.crt", "tls.key"), 0o640)
    context = ssl.create_default_context(cadata=certificate)
    context.check_hostname = False
    url = f"https://127.0.0.1:{port}/metrics"
    with pytest.raises(urllib.error.HTTPError, match="401"):
        read(url, context)
    # The fake needs it to compare passwords; Python 3.13 has none.
    if importlib.util.find_spec("crypt"):
        login = base64.b64encode(b"prometheus:metrics").decode()
        assert "nvidia_smi_gpu_info" in read(url, context, Authorization=f"Basic {login}")

    machine.read_log()
    # Without them, the files are removed and the service is restarted.
    none = {"gpu_exporter_tls_certificate": "", "gpu_exporter_tls_key": "", "gpu_exporter_basic_auth_users": {}}
    code, [(_changes, found), _removed], output = apply(none, ABSENT)
    assert (code, found["scheme"], machine.read_tree()) == (0, "http", before), output
    assert machine.read_log() == ["daemon-reload", f"restart {UNIT}", *REMOVED]


def test_service_of_an_own_user_waits_for_the_driver(apply, machine):
    (machine.folder / "driver" / "version").unlink()
    before = machine.read_tree()
    user = {"gpu_exporter_user": "exporter"}
    code, [(changes, _found)], output = apply(user)
    assert (code, changes > 0, machine.read_log()) == (0, True, [f"enable {UNIT}"]), output
    assert "WAITS: Host node: the NVIDIA driver is not loaded" in output
    assert machine.list_accounts() == ["group/exporter", "passwd/exporter"]
    # The group of the second user is older. The undo without their names removes both.
    (machine.folder / "group" / "second").write_text("")
    code, _found, output = apply({"gpu_exporter_user": "second"}, ABSENT)
    assert (code, machine.list_accounts(), machine.read_tree()) == (0, ["group/second"], before), output


def test_package_takes_the_place_of_the_archive_and_is_removed(apply, machine, port, tmp_path):
    before = machine.read_tree()
    deb = tmp_path / "exporter.deb"
    deb.write_bytes(build_program(sys.executable))
    package = {
        "gpu_exporter_method": "package",
        "gpu_exporter_src": str(deb),
        "gpu_exporter_sha256": {os.uname().machine: hashlib.sha256(deb.read_bytes()).hexdigest()},
    }
    code, found, output = apply({}, package)
    assert (code, len(found)) == (0, 2), output
    assert "nvidia_smi_gpu_info" in read(f"http://127.0.0.1:{port}/metrics")
    drop_in = (machine.folder / "units" / f"{UNIT}.d" / "gpu-kubernetes.conf").read_text()
    assert ("\nExecStart=\nExecStart=" in drop_in, "[Install]" in drop_in) == (True, False)
    assert not (machine.folder / "usr" / "lib").exists()
    # The undo of a provider without a package removes that of the former one.
    other = {"gpu_exporter_provider": "amd_device_metrics_exporter"}
    code, _removed, output = apply({**package, **ABSENT, **other})
    assert (code, machine.read_tree()) == (0, before), output


def test_wrong_checksum_is_refused_before_installation(apply, machine):
    before = machine.read_tree()
    wrong = {"gpu_exporter_sha256": {os.uname().machine: "0" * 64}, "gpu_exporter_user": "exporter"}
    code, found, output = apply(wrong)
    assert (code != 0, found, machine.read_log()) == (True, [], []), output
    assert f"has the SHA-256 checksum {machine.sha256} and not {'0' * 64}, and is not installed" in output
    assert (machine.read_tree(), (machine.folder / "state").exists(), machine.list_accounts()) == (before, False, [])


def test_exporter_that_does_not_answer_fails_with_its_log(apply, machine):
    (machine.folder / "programs" / "journalctl").write_text("#!/bin/sh\necho bind: cannot assign the address\n")
    (machine.folder / "programs" / "journalctl").chmod(0o755)
    code, found, output = apply({"gpu_exporter_arguments": ["--unknown"], "gpu_exporter_wait_timeout": 2})
    assert (code != 0, found) == (True, []), output
    assert "correct what its log names: bind: cannot assign the address" in output
