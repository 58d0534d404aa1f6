# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.containerd import unit
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.containerd.test_distribution import (
    Machine,
)


@pytest.mark.parametrize(
    ("shown", "file", "path", "default"),
    [
        ("Environment=\n", "", unit.SERVICE_PATH, None),
        ('Environment=PATH=/a:/b "NAME=x y"\n', "", "/a:/b", None),
        ("EnvironmentFiles=/e (ignore_errors=yes)\nEnvironment=PATH=/a\n", "# PATH=/no\nPATH='/c:/d'\n", "/c:/d", None),
        (
            "ExecStart={ path=/k3s ; argv[]=/k3s server --default-runtime nvidia ; }\n",
            "",
            unit.SERVICE_PATH,
            "nvidia",
        ),
    ],
)
def test_parse_unit_reads_path_and_default(shown: str, file: str, path: str, default: str | None) -> None:
    found = unit.parse_unit(shown, lambda name: {"/e": file}[name], "default-runtime")
    assert found == unit.Unit(tuple(path.split(":")), default)


@pytest.mark.parametrize(
    ("program", "path", "is_found"),
    [
        ("/usr/bin/nvidia-container-runtime", ["/usr/bin"], True),
        ("/usr/bin/nvidia-container-runtime", ["/usr/bin/"], True),
        ("/usr/local/nvidia/toolkit/nvidia-container-runtime", [], True),
        ("/opt/x/nvidia-container-runtime", ["/opt", ""], False),
    ],
)
def test_check_program_searches_as_the_distribution_does(
    tmp_path: Path, program: str, path: list[str], is_found: bool
) -> None:
    place = Machine(tmp_path, "k3s", "").place
    if is_found:
        unit.check_program(place, program, path)
    else:
        with pytest.raises(ConfigError, match="is in none of the folders of"):
            unit.check_program(place, program, path)


def test_describe_search_names_the_folders_of_the_unit(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "k3s", "")
    machine.shown = "Environment=PATH=/a:/b\n"
    text = unit.describe_search(machine.place, machine.execute)
    assert text.startswith("when it starts, k3s")
    assert "in /usr/local/nvidia/toolkit, /a, /b; " in text
    other = replace(machine.place, own=replace(machine.place.own, way="drop_in"))
    assert unit.describe_search(other, machine.execute) == ""
