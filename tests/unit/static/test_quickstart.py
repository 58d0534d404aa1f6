# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The quick start shows what the programs print for its two hosts, and its first commands install the collection."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import indent

import pytest
import yaml

from ansible_collections.gpu.kubernetes.plugins.module_utils._report import build, render
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.plan import render_plan
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._report import observations
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._sharing import sharing_nodes

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "docsite" / "rst" / "guide_quickstart.rst"
DEFAULTS = yaml.safe_load((ROOT / "roles" / "k8s_device_plugin" / "defaults" / "main.yml").read_text(encoding="utf-8"))
IMAGE = f"nvcr.io/{DEFAULTS['k8s_device_plugin_image_repository']}:{DEFAULTS['k8s_device_plugin_image_tag']}"
HOSTS = {"gpu1.example.com": "gpu1", "gpu2.example.com": "gpu2"}


def plan_of_new_nodes() -> list[str]:
    hosts = [{**sharing_nodes.host("exclusive"), "host": host, "node": node} for host, node in HOSTS.items()]
    return render_plan(sharing_nodes.plan(hosts, [sharing_nodes.empty_node(name=node) for node in HOSTS.values()]))


def report_without_problems() -> list[str]:
    hosts = [observations.host(host, node=node) for host, node in HOSTS.items()]
    cluster = observations.cluster(plugin_images=[IMAGE])
    nodes, smoke = (
        [{**cluster[key][0], name: node} for node in HOSTS.values()]
        for key, name in (("nodes", "name"), ("smoke", "node"))
    )
    report = build.build_report(hosts, {**cluster, "nodes": nodes, "smoke": smoke})
    return [text for text, _tone in render.render_lines(report, "gpu-report.json")]


@pytest.mark.parametrize("lines", [plan_of_new_nodes, report_without_problems])
def test_quickstart_shows_printed_lines(lines) -> None:
    block = indent("\n".join(lines()), " " * 7)
    assert block in PAGE.read_text(encoding="utf-8"), f"docs/docsite/rst/guide_quickstart.rst needs:\n{block}"


def test_install_commands_of_the_pages_install_the_checkout_beside_them(tmp_path: Path) -> None:
    pages = [ROOT / "README.md", *(PAGE.with_name(f"guide_{name}.rst") for name in ("quickstart", "installation"))]
    commands = {re.search(r"\$ ansible-galaxy (.*install .*)", page.read_text(encoding="utf-8"))[1] for page in pages}  # type: ignore[index]
    packages = {re.search(r"pip install --requirement (\S+)", page.read_text(encoding="utf-8"))[1] for page in pages}  # type: ignore[index]
    assert (len(commands), len(packages)) == (1, 1)
    (tmp_path / "gpu.kubernetes").symlink_to(ROOT)
    assert (tmp_path / packages.pop()).is_file()
    command = [Path(sys.executable).with_name("ansible-galaxy"), *commands.pop().split(), "--offline", "--no-deps"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    result = subprocess.run(
        command,
        cwd=tmp_path,
        env={**environment, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    installed = tmp_path / ".ansible" / "collections" / "ansible_collections" / "gpu" / "kubernetes"
    assert json.loads((installed / "MANIFEST.json").read_text())["collection_info"]["name"] == "kubernetes"
    assert not (installed / "tests").exists()
