# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of versions and platforms, from the catalogues and tables that the code reads."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import yaml
from ansible.module_utils.facts.system.distribution import Distribution as Facts

from ._common import ROOT
from .release import read_images
from .tables import DAY, TABLES
from .versions import CONTROLLERS, OLDEST

PAGE = ROOT / "docs" / "docsite" / "rst" / "guide_versions.rst"
DOCSITE = "ansible_collections.gpu.kubernetes.docsite"
PLATFORMS = ROOT / "roles" / "_platform" / "platforms"
#: The programs of the images that roles deploy, by how the names of their variables begin. An image without a row is an error.
PROGRAMS = {
    "k8s_device_plugin_image": "NVIDIA's device plugin, with config-manager and the control daemon of MPS",
    "k8s_device_plugin_amd_image": "AMD's device plugin",
    "k8s_device_plugin_intel_image": "Intel's device plugin",
    "gpushare_device_plugin_image": "gpushare, device plugin",
    "gpushare_extender_image": "gpushare, scheduler extender",
    "nano_gpu_agent_image": "nano-gpu, agent",
    "nano_gpu_extender_image": "nano-gpu, scheduler extender",
    "gpu_feature_discovery_gfd_image": "GPU feature discovery",
    "gpu_feature_discovery_amd_image": "AMD's node labeller",
    "gpu_smoke_test_image": "Test pods of NVIDIA's GPUs, by the host's driver",
    "gpu_managed_cluster_image": "Test pods of managed clusters",
    "kube_scheduler_extender_probe_image": "Pod that verifies kube-scheduler; it need not be pulled",
}
EXPORTER_IMAGE = "gpu_exporter_image"
#: The private variable of a role that computes a part of an image.
COMPUTED = re.compile(r"{{.*?(__[\w.]+)")
SAMPLE = re.compile(r"'(vectoradd[\w.-]+)'")
HEAD = f"""..
  Copyright (c) 2026, the gpu.kubernetes authors
  SPDX-License-Identifier: GPL-3.0-or-later

.. This page is generated from the catalogues and tables of the code by python -m gates.codes --write.

.. _{DOCSITE}.guide_versions:

Versions and platforms
======================

The tables that the code reads, as they are. :ref:`The guide on support <{DOCSITE}.guide_support>` describes what is tested, expected and refused.
The sources of the versions are in ``roles/gpu_preflight/vars/compatibility``; they were compared on {{day}} or later.

.. contents::
   :local:
"""
Cells = Sequence[str]


def _read(path: Any) -> dict[str, Any]:
    return dict(yaml.safe_load(path.read_text(encoding="utf-8")))


def _table(title: str, text: str, columns: Cells, rows: Iterable[Cells]) -> Iterator[str]:
    """A section with a list-table."""
    yield from (title, "-" * len(title), "")
    if text:
        yield from (text, "")
    yield from (".. list-table::", "    :header-rows: 1", "")
    for row in (columns, *rows):
        for number, cell in enumerate(row):
            yield f"    {'* ' if number == 0 else '  '}- {cell}".rstrip()
    yield ""


def _join(values: Iterable[Any]) -> str:
    return ", ".join(map(str, values))


def _code(values: Iterable[Any]) -> str:
    return _join(f"``{value}``" for value in values)


def list_platforms() -> Iterator[Cells]:
    """Each distribution with its releases, package manager, and who its driver and CUDA come from."""
    files = {path.stem: _read(path) for path in sorted(PLATFORMS.glob("*.yml"))}
    for own in files.values():
        for name, releases in own.get("platform_releases", {}).items():
            row = {**files["common"], **files.get(Facts.OS_FAMILY.get(name, ""), {}), **own}
            drivers = row["platform_drivers"].items()
            yield (
                name,
                _releases(releases["tested"]),
                _releases(releases["expected"]),
                f"``{row['platform_package_manager']}``",
                "; ".join(f"{provider}: {_join(driver['flavors'])}" for provider, driver in drivers),
                _join(row["platform_cuda"]),
            )


def _releases(releases: Sequence[str]) -> str:
    return "all" if list(releases) == ["*"] else _join(releases)


def list_distributions(rows: Iterable[Any]) -> Iterator[Cells]:
    """Each Kubernetes distribution, and what happens to its container runtime, kubelet and kube-scheduler."""
    for row in rows:
        own, scheduler = row.own_containerd, row.own_scheduler
        yield (
            row.name,
            {
                "automatic": "It adds the runtime itself",
                "drop_in": f"Written to ``{own and own.edited}``",
                "template": f"Written to ``{own and own.edited}``",
            }[own.way]
            if own
            else _edited(row.containerd_variables),
            f"Written to ``{row.own_kubelet.drop_in}``; before Kubernetes 1.32 refused, with the text for {row.kubelet_hint}"
            if row.own_kubelet
            else f"Refused, with the text for {row.kubelet_hint}"
            if row.kubelet_hint
            else _edited(row.kubelet_variables),
            f"Written to ``{scheduler.file}``"
            if scheduler
            else "Refused, with the reason"
            if row.scheduler_hint
            else _edited(row.scheduler_variables),
        )


def _edited(variables: str) -> str:
    return f"Edited, with a warning that names {variables}" if variables else "Edited"


def list_edge(rows: Iterable[Any]) -> Iterator[Cells]:
    """Each edge framework, and where the settings of its kubelet are."""
    for row in rows:
        marks = [
            *(f"{key}={value}" for key, value in row.labels),
            *([row.kubelet_version] if row.kubelet_version else []),
        ]
        yield row.title, _code(marks), row.kubelet_hint or "As on other nodes"


def list_architectures(tables: Mapping[str, Any]) -> Iterator[Cells]:
    """Each architecture of NVIDIA's GPUs with its drivers, kernel modules and CUDA toolkits."""
    toolkits = {row["architecture"]: row for row in tables["cuda_gpu"] if "capability" not in row}
    for row in tables["gpu_driver"]["architectures"]:
        cuda = toolkits.get(row["architecture"], {})
        yield (
            row["architecture"].capitalize(),
            str(row.get("first_driver", "")),
            str(row.get("last_driver", "")),
            row["open_modules"],
            str(cuda.get("first", "")),
            str(cuda.get("last", "")),
        )


def list_branches(tables: Mapping[str, Any]) -> Iterator[Cells]:
    """Each branch of NVIDIA's driver of which the end or a security fix is known."""
    fixes = {row["branch"]: row for row in tables["driver_security"]}
    newest = {row["branch"]: row["cuda"] for row in tables["cuda_driver"]["newest"]}
    ends = {row["branch"]: row for row in tables["driver_branches"]}
    for branch in sorted({*fixes, *ends}):
        end, fix = ends.get(branch, {}), fixes.get(branch, {})
        until = end.get("end") or ("ended" if end.get("ended") else "")
        yield str(branch), until, str(fix.get("driver", "")), str(newest.get(branch, ""))


def list_images(load: Callable[[str], Any]) -> Iterator[Cells]:
    """Each image that roles deploy, its tags, and the variables with which another one is chosen. Raises ValueError for one that PROGRAMS does not have."""
    images = {start: parts for start, *parts in read_images(ROOT) if start != EXPORTER_IMAGE}
    for start in sorted(images, key=list(PROGRAMS).index):
        for title, values in _list_variants(PROGRAMS[start], images[start]):
            registry, repository, tags = (_resolve(part, values) for part in images[start])
            yield title, f"``{registry}/{repository}``", _code(tags.split(",")), f"``{start}_*``"
    for row in load("_exporters.catalogue").EXPORTERS:
        tag = row.tag.format(version=row.version)
        yield row.title, f"``{row.registry}/{row.repository}``", f"``{tag}``", f"``{EXPORTER_IMAGE}_*``"
    for vendor in load("_vendors").OTHERS:
        repository, _colon, tag = vendor.test.image.partition(":")
        variable = f"``gpu_smoke_test_images: {{{vendor.name}: …}}``"
        yield f"Test pods of {vendor.title}'s GPUs", f"``docker.io/{repository}``", f"``{tag}``", variable
    version = _read(ROOT / "roles" / "gpu_feature_discovery" / "defaults" / "main.yml")[
        "gpu_feature_discovery_nfd_chart_version"
    ]
    variable = "``gpu_feature_discovery_nfd_values: {image: {repository: …, tag: …}}``"
    yield "Node feature discovery", "``registry.k8s.io/nfd/node-feature-discovery``", f"``v{version}``", variable


def _list_variants(title: str, parts: Iterable[str]) -> list[tuple[str, dict[str, str]]]:
    """The titles of an image, and the values that a role computes of parts of it; several tags are separated by commas."""
    if any("__nano_gpu_upstream" in part for part in parts):
        apis = _read(ROOT / "roles" / "nano_gpu" / "vars" / "main" / "apis.yml")["__nano_gpu_apis"]
        return [
            (
                f"{title}, with ``nano_gpu_api: {name}``",
                {f"__nano_gpu_upstream.{key}": str(value) for key, value in api.items()},
            )
            for name, api in apis.items()
        ]
    name = "__gpu_smoke_test_fitting_tag"
    samples = SAMPLE.findall(_read(ROOT / "roles" / "gpu_smoke_test" / "vars" / "main.yml")[name])
    return [(title, {name: ",".join(samples)})]


def _resolve(part: str, values: Mapping[str, str]) -> str:
    """The part of an image; a template is replaced by the value of its private variable."""
    found = COMPUTED.search(part)
    return values[found[1]] if found else part


def _sections(load: Callable[[str], Any], tables: Mapping[str, Any]) -> Iterator[str]:
    runtime, common = _read(ROOT / "meta" / "runtime.yml"), _read(PLATFORMS / "common.yml")
    yield from _table(
        "Controller",
        f"``meta/runtime.yml`` requires ansible-core {runtime['requires_ansible']}. The tests run these versions.",
        ("ansible-core", "Python of the controller in the tests", "Oldest Python on nodes"),
        ((core, python, OLDEST[core]) for core, python in CONTROLLERS.items()),
    )
    yield from _table(
        "Operating systems of nodes",
        f"Processors: {_join(common['platform_processors'])}. Other releases are refused unless ``gpu_preflight_allow_unsupported`` is true. "
        "*nvidia* stands for NVIDIA's repository.",
        ("Distribution", "Tested", "Expected", "Packages", "Driver: kernel modules", "CUDA"),
        list_platforms(),
    )
    yield from _table(
        "Kubernetes distributions",
        f":ref:`The guide on distributions <{DOCSITE}.guide_distributions>` has the details.",
        ("Distribution", "NVIDIA runtime", "Kubelet reservations", "Scheduler extenders"),
        list_distributions(row for row in load("_distributions.rows").DISTRIBUTIONS if row.marker),
    )
    yield from _table(
        "Edge frameworks",
        "",
        ("Framework", "Labels, or version of the kubelet", "Settings of the kubelet"),
        list_edge(load("_edge").FRAMEWORKS),
    )
    yield from _table(
        "Managed clusters",
        "``prepare_managed_cluster`` labels nodes and deploys device plugin and exporter. ``verify_managed_cluster`` tests GPUs; no host is changed.",
        ("Cluster", "Owner of the driver", "Owner of the device plugin"),
        ((row.name, row.driver, row.plugin) for row in load("_distributions.managed").OWNERS),
    )
    yield from _table(
        "GPU vendors and sharing strategies",
        "GPUs of NVIDIA can be shared by each strategy; those of other vendors are offered whole. ``*`` and ``?`` stand for any text and any character.",
        ("Vendor or strategy", "Resources that pods request", "Role"),
        [
            *((row.title, f"``{row.resource}``", "``k8s_device_plugin``") for row in load("_vendors").BY_NAME.values()),
            *(
                (f"``{row.name}``", _code(row.resources), f"``{row.host_role or row.role}``")
                for row in load("_sharing.catalogue").STRATEGIES.values()
            ),
        ],
    )
    yield from _table(
        "Default images",
        "``gpu_image_registry`` is another registry for all images but that of node feature discovery, which its chart names. ``*`` stands for "
        "``registry``, ``repository`` and ``tag``. A tag can be a digest.",
        ("Program", "Image", "Tag", "Variables"),
        list_images(load),
    )
    yield from _versions(tables)


def _versions(tables: Mapping[str, Any]) -> Iterator[str]:
    yield from _table(
        "NVIDIA's GPUs",
        "An empty cell has no limit, or none that a source names. Open kernel modules are impossible, possible or required.",
        ("Architecture", "First driver", "Last branch", "Open modules", "First CUDA toolkit", "Last CUDA toolkit"),
        list_architectures(tables),
    )
    yield from _table(
        "Branches of NVIDIA's driver",
        "The preflight warns of a driver that is older than the fixes, and of a branch whose support has ended.",
        ("Branch", "Supported until", "First version with all fixes", "Newest CUDA"),
        list_branches(tables),
    )
    yield from _table(
        "CUDA",
        "The driver with which programs of a major version run.",
        ("CUDA", "Driver"),
        ((f"{row['cuda']}.x", str(row["driver"])) for row in tables["cuda_driver"]["minor_versions"]),
    )
    yield from _table(
        "Container toolkit",
        "Versions with known faults. A version is also reported if a security fix is missing.",
        ("From", "To", "Fault", "Fixed in"),
        [
            *(
                ("", "", f"security bulletin {row['bulletin']}: {_join(row['cves'])}", row["fixed"])
                for row in tables["toolkit"]["security"]
            ),
            *((row["from"], row["to"], row["fault"], row.get("fixed", "")) for row in tables["toolkit"]["faults"]),
        ],
    )
    yield from _table(
        "Kubernetes and containerd",
        "The first version of each series of containerd that containerd recommends.",
        ("Kubernetes", "containerd"),
        ((row["kubernetes"], _join(row["containerd"])) for row in tables["kubernetes"]["containerd"]),
    )


def render(load: Callable[[str], Any]) -> str:
    """The page; *load* returns a module of module_utils by its name."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in TABLES.glob("*.yml")}
    tables = {stem: next(iter(yaml.safe_load(text).values())) for stem, text in texts.items()}
    days = [found.group(1) for found in map(DAY.search, texts.values()) if found]
    return HEAD.replace("{day}", min(days)) + "\n" + "\n".join(_sections(load, tables)).rstrip("\n") + "\n"
