# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The doctor as a command judges this host and support bundles, and exits with what the report means."""

from __future__ import annotations

import io
import json
import tarfile
from xml.etree import ElementTree

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._checks import command
from ansible_collections.gpu.kubernetes.plugins.module_utils._checks.bundle import build_bundle
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._checks.healthy import build, put


@pytest.fixture
def doctor(capsys, monkeypatch):
    """Run the command: exit status, output and errors. Nothing of this machine is observed."""
    observation, _cluster = build()
    observation.pop("host")
    monkeypatch.setattr(command, "gather", lambda options: {**observation, "errors": {"timeout": options.timeout}})

    def run(*arguments):
        try:
            status = command.main(list(map(str, arguments)))
        except SystemExit as ended:
            status = ended.code
        output = capsys.readouterr()
        return status, output.out, output.err

    return run


def write_bundle(path, *faults):
    host, cluster = build()
    for place, value in faults:
        put(host, place, value)
    path.write_bytes(build_bundle({"report.json": "{}"}, [host], cluster))
    return path


@pytest.mark.parametrize(
    ("faults", "options", "status"),
    [
        ([], [], 0),
        ([], ["--fail-on", "warn"], 0),
        ([("pci/0/alive", False)], [], 2),
        ([("pci/0/alive", False)], ["--skip", "hardware"], 0),
        ([("pci/0/width", 1), ("nvml/gpus/0/pcie/width", 1)], [], 0),
        ([("pci/0/width", 1), ("nvml/gpus/0/pcie/width", 1)], ["--fail-on", "warn"], 1),
    ],
)
def test_bundle_exits_with_what_its_report_means(doctor, tmp_path, faults, options, status):
    bundle = write_bundle(tmp_path / "bundle.tar.gz", *faults)
    found, output, errors = doctor(bundle, *options)
    assert (found, errors) == (status, "")
    assert output.startswith("GPU doctor: 1 host, ")
    assert json.loads(doctor(bundle, *options, "--format", "json")[1])["exit_code"] == status


def test_this_host_is_observed_without_a_bundle(doctor):
    status, output, _errors = doctor("--format", "json", "--check", "hardware")
    report = json.loads(output)
    assert (status, report["status"], len(report["hosts"])) == (0, "pass", 1)
    assert ElementTree.fromstring(doctor("--format", "junit")[1]).tag == "testsuites"  # noqa: S314 - our own output


def test_symptom_has_its_causes(doctor):
    status, output, _errors = doctor("--symptom", "Driver/library version mismatch")
    assert (status, "kernel.mismatch" in output) == (0, True)


def make_archive(path, name, text):
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(text)
        archive.addfile(member, io.BytesIO(text.encode()))


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("x/hosts/0-a.json", "{", "cannot be read as a support bundle"),
        ("x/hosts/0-a.json", "[1]", "cannot be read as a support bundle"),
        ("x/hosts/0-a.json", "{}", "an observation cannot be read"),
        ("x/report.json", "{}", "has no observation"),
    ],
)
def test_file_that_is_no_bundle_was_not_examined(doctor, tmp_path, name, text, words):
    make_archive(tmp_path / "bundle.tar.gz", name, text)
    status, output, errors = doctor(tmp_path / "bundle.tar.gz")
    assert (status, output, words in errors) == (3, "", True)


@pytest.mark.parametrize("arguments", [["missing.tar.gz"], ["--check", "hw.none"], ["--fail-on", "never"]])
def test_wrong_options_and_missing_files_exit_with_3(doctor, arguments):
    status, output, errors = doctor(*arguments)
    assert (status, output, "error: " in errors) == (3, "", True)
