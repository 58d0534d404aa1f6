# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What all unit tests share; on nodes' Pythons too, from 3.8 on."""

from __future__ import annotations

import os
import pkgutil
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fakes.nvml.simulated import NvmlBuilder

ROOT = Path(__file__).resolve().parents[2]
# The simulated NVML library, captured outputs and the project's own gates are tests' helpers too.
sys.path.append(str(ROOT / "tests"))


def _find_collections() -> None:
    """Make ``ansible_collections.gpu.kubernetes`` and the installed collections importable side by side.

    ``.ansible/collections``, which ``make venv`` makes, is a regular package and would hide the collections in site-packages.
    """
    link = ROOT / ".ansible" / "collections"
    if link.is_dir() and str(link) not in sys.path:
        sys.path.insert(0, str(link))
    import ansible_collections

    ansible_collections.__path__ = pkgutil.extend_path(ansible_collections.__path__, "ansible_collections")


_find_collections()

# Fixtures, and importable only after the lines above.
from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import evaluate, evaluate_role, refusals, run  # noqa: E402, F401 # pylint: disable=unused-import

# The profile of the property tests: "merge" finds the same examples in each run, "thorough" prints what reproduces a failure.
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "merge")

try:
    from hypothesis import HealthCheck, settings
except ImportError:  # the property tests require it themselves
    pass
else:
    # Deadlines measure the machine, not the code.
    common = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.register_profile("merge", parent=common, derandomize=True, max_examples=50)
    settings.register_profile("thorough", parent=common, print_blob=True, max_examples=300)
    settings.load_profile(PROFILE)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that are marked thorough, unless HYPOTHESIS_PROFILE is thorough; with FIRST_TESTS, all but the first of each folder, a short one."""
    selected = [item for item in items if PROFILE == "thorough" or not item.get_closest_marker("thorough")]
    if os.environ.get("FIRST_TESTS"):
        first: dict[Path, pytest.Item] = {}
        selected = [item for item in selected if first.setdefault(item.path.parent, item) is item]
    deselected = [item for item in items if item not in selected]
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = selected


@pytest.fixture(autouse=True)
def _hide_real_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the cluster of the person who runs the unit tests."""
    for name in list(os.environ):
        if name.startswith("K8S_AUTH_") or name == "KUBECONFIG":
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def nvml_builder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NvmlBuilder]:
    """A builder of simulated NVML libraries, one for a whole run, with a state that no other run shares."""
    if shutil.which("gcc") is None or shutil.which("make") is None:
        pytest.skip("the simulated NVML library needs gcc and make")
    from fakes.nvml.simulated import NvmlBuilder

    folder = tmp_path_factory.mktemp("nvml")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("NVML_STATE", str(folder / "state"))
        environment.setenv("NVML_INFOROM", str(folder / "inforom"))
        yield NvmlBuilder(folder)
