# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The documented options for the API server are those of kubernetes.core, and no other collection documents them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Mapping

import pytest
import yaml
from ansible_collections.kubernetes.core.plugins.module_utils.args_common import AUTH_ARG_SPEC

from ansible_collections.gpu.kubernetes.plugins.doc_fragments.k8s_auth import ModuleDocFragment

FRAGMENTS = re.compile(r"^extends_documentation_fragment:\n((?:  - \S+\n)+)", re.MULTILINE)
PLUGINS = Path(__file__).resolve().parents[4] / "plugins"


def normalize_documentation(options: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: (
            option["type"],
            option.get("elements"),
            tuple(option.get("aliases", ())),
            option.get("default"),
            normalize_documentation(option.get("suboptions", {})),
        )
        for name, option in options.items()
    }


def normalize_arguments(options: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: (
            option.get("type", "str"),
            option.get("elements"),
            tuple(option.get("aliases", ())),
            option.get("default"),
            normalize_arguments(option.get("options", {})),
        )
        for name, option in options.items()
    }


def test_documented_connection_options_equal_those_of_kubernetes_core() -> None:
    documented = yaml.safe_load(ModuleDocFragment.DOCUMENTATION)["options"]
    assert normalize_documentation(documented) == normalize_arguments(AUTH_ARG_SPEC)


@pytest.mark.parametrize("path", sorted(PLUGINS.glob("*/*.py")), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_doc_fragments_of_a_plugin_belong_to_this_collection_or_to_ansible(path: Path) -> None:
    names = {name for block in FRAGMENTS.findall(path.read_text(encoding="utf-8")) for name in block.split()} - {"-"}
    assert all(name.startswith("gpu.kubernetes.") or "." not in name for name in names)
