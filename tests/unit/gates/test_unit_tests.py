# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit tests that a change concerns."""

from __future__ import annotations

import pytest
from gates import unit_tests, versions

PLUGINS = "tests/unit/plugins"
TOML = f"{PLUGINS}/module_utils/_toml/test_document.py"
CONTAINERD = f"{PLUGINS}/modules/test_containerd_config.py"
COST = f"{PLUGINS}/module_utils/_cost/test_times.py"
NVML = f"{PLUGINS}/module_utils/_nvml/test_model.py"
TABLES = f"{PLUGINS}/module_utils/_compatibility/test_check.py"
ALWAYS = "tests/unit/static/test_playbooks.py"
READING = f"{PLUGINS}/filter/test_names.py"
ACTIONS = f"{PLUGINS}/action/test_api_modules.py"


@pytest.mark.parametrize(
    ("changed", "concerned_tests", "others"),
    [
        ("plugins/module_utils/_toml/writer.py", [TOML, CONTAINERD], [COST, NVML]),
        # The module is run by its name.
        ("plugins/modules/containerd_config.py", [CONTAINERD], [TOML, COST, NVML]),
        ("plugins/module_utils/_kube_api.py", [ACTIONS], [TOML, COST]),
        (TOML, [TOML], [CONTAINERD, COST]),
        # Data beside Python: a fixture of all tests builds the library.
        ("tests/fakes/nvml/profiles/a30.profile", [TOML, NVML], []),
        (
            f"{PLUGINS}/module_utils/_kubelet/fixtures/any",
            [f"{PLUGINS}/module_utils/_kubelet/test_command.py"],
            [TOML, COST],
        ),
        ("tests/unit/conftest.py", [TOML, CONTAINERD, COST, NVML], []),
        *((name, [TOML, CONTAINERD, COST, NVML], []) for name in sorted(unit_tests.ALL)),
        # A fixture reads them.
        ("roles/gpu_preflight/vars/compatibility/cuda_driver.yml", [TABLES], [TOML, COST]),
        ("roles/cuda/tasks/main.yml", [], [TOML, CONTAINERD, COST, NVML]),
        ("tests/config.yml", [], [TOML, CONTAINERD, COST, NVML]),
    ],
)
def test_change_concerns_what_uses_it(changed: str, concerned_tests: list[str], others: list[str]) -> None:
    found = set(map(str, unit_tests.find_tests([changed])))
    assert found >= {*concerned_tests, ALWAYS, READING}
    assert found.isdisjoint(others)


def test_tests_of_nodes_import_no_api() -> None:
    found = versions.select_node_tests(unit_tests.list_tests())
    assert {TOML, CONTAINERD} <= set(found)
    assert {ACTIONS, ALWAYS, f"{PLUGINS}/modules/test_gpu_smoke_test.py"}.isdisjoint(found)
