# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role gpu_exporter does on a host: deploy an exporter, use one of others, or refuse."""

from __future__ import annotations

import re
from typing import Any, Iterator, Mapping, Sequence

from .._vendors import BY_NAME
from . import collectors, xpumd
from .catalogue import ARCHITECTURES, ARCHIVE, DAEMON_SET, PACKAGE, Exporter, find_by_program, get_exporter
from .cluster import format_address

Facts = Mapping[str, Any]

SHA256 = re.compile(r"[0-9a-f]{64}")
BCRYPT = re.compile(r"\$2[aby]\$\d\d\$[./A-Za-z0-9]{53}")
LOOPBACK = ("127.", "::1")
ANY = ("0.0.0.0", "::")  # noqa: S104 - compared, not bound
AMD_EXPORTER, INTEL_EXPORTER = "amd_device_metrics_exporter", "intel_xpumd"
#: The package managers that install a file.
PACKAGE_FILES = ("apt", "dnf")


def plan_exporter(params: Facts, host: Facts, cluster: Facts) -> dict[str, Any]:
    """Return the plan of a host.

    *params* are the role's variables, *host* the observed host, and *cluster* the entry of its node in gpu_exporters_info, empty without one.

    The plan has the ``problems`` that refuse it and a ``notice`` (sentences), what happens on the host (``on_host``: archive, package, absent, or empty for
    nothing) and in the cluster (``in_cluster``: present, absent or empty), the ``target`` for Prometheus, and what the tasks need of the exporter. Raises
    KeyError for an unknown provider.
    """
    exporter = get_exporter(params["provider"])
    port = int(params["port"]) or exporter.port
    internal = cluster.get("address") or host["address"]
    listen = params["address"] if params["method"] != DAEMON_SET and params["address"] else internal
    # Where others reach the exporter.
    address = internal if listen in ANY else listen
    plan: dict[str, Any] = {
        "problems": [],
        "notice": "",
        "on_host": "absent" if host["record"] else "",
        "replaces": False,
        "in_cluster": "",
        "target": {},
        **_describe(exporter, params, host, port, listen),
    }
    if params["state"] == "absent":
        return {**plan, "in_cluster": "absent" if params["method"] == DAEMON_SET else ""}
    used = find_used(exporter, host, cluster, address)
    if used:
        return {**plan, **used, "in_cluster": "absent" if find_managed(exporter, cluster) else ""}
    plan["problems"] = list(find_problems(exporter, params, host, cluster, port, address))
    plan["target"] = {"address": format_address(address, port), "exporter": exporter.name, "scheme": params["scheme"]}
    if params["method"] == DAEMON_SET:
        return {**plan, "in_cluster": "present"}
    former = host["record"].get("method", params["method"])
    return {**plan, "on_host": params["method"], "replaces": former != params["method"]}


def find_managed(exporter: Exporter, cluster: Facts) -> list[Facts]:
    """Return the DaemonSets of this role on the node, for GPUs of the same vendor."""
    found: list[Facts] = list(cluster.get("exporters") or [])
    return [each for each in found if each["managed"] and get_exporter(each["exporter"]).vendor == exporter.vendor]


def find_used(exporter: Exporter, host: Facts, cluster: Facts, address: str) -> dict[str, Any] | None:
    """Return the exporter of others that serves the host's GPUs, with the target for Prometheus; None if there is none."""
    for found in cluster.get("exporters") or []:
        row = get_exporter(found["exporter"])
        if row.vendor == exporter.vendor and not found["managed"]:
            name = f"DaemonSet {found['namespace']}/{found['name']}{' of ' + found['owner'] if found['owner'] else ''}"
            return _use(row, name, found["address"])
    for listener in host["listeners"]:
        known = find_by_program((listener["program"], listener["unit"]))
        if known is None or known.vendor != exporter.vendor or listener["container"] or _is_managed(listener, host):
            continue
        name = f"{listener['unit'] + '.service' if listener['unit'] else listener['program']} (pid {listener['pid']})"
        if listener["address"].startswith(LOOPBACK):
            problem = f"{name} serves GPU metrics on {listener['address']} alone, where Prometheus cannot read them; have it listen on {address}, or remove it."
            return {"notice": "", "problems": [problem], "target": {}}
        return _use(
            known,
            name,
            format_address(address if listener["address"] in ANY else listener["address"], listener["port"]),
        )
    return None


def _use(row: Exporter, name: str, place: str) -> dict[str, Any]:
    served = f"at {place}" if place else "once its pod has an address"
    target = {"address": place, "exporter": row.name, "scheme": "http"} if place else {}
    return {
        "notice": f"{name} serves GPU metrics {served}, so that this role deploys no exporter here and uses that one.",
        "problems": [],
        "target": target,
    }


def _is_managed(listener: Facts, host: Facts) -> bool:
    """Whether the listener is the service of this role."""
    return bool(host["record"]) and listener["unit"] == host["unit"]


def find_problems(
    exporter: Exporter, params: Facts, host: Facts, cluster: Facts, port: int, address: str
) -> Iterator[str]:
    """Yield why the exporter cannot be deployed: sentences."""
    if params["method"] not in exporter.methods:
        yield (
            f"{exporter.title} is not deployed by the method {params['method']}; set gpu_exporter_method to {' or '.join(exporter.methods)}."
        )
    if not address:
        yield "the node's internal address is unknown; set gpu_exporter_listen_address."
    yield from _find_port_problems(params, host, find_managed(exporter, cluster), port)
    if params["method"] == ARCHIVE:
        yield from _find_archive_problems(exporter, params, host)
    if params["method"] == PACKAGE:
        yield from _find_package_problems(exporter, params, host)
    if params["method"] == DAEMON_SET and (params["certificate"] or params["key"] or params["users"]):
        yield (
            "gpu_exporter_tls_certificate, gpu_exporter_tls_key and gpu_exporter_basic_auth_users concern services of hosts; for pods, set "
            "gpu_exporter_web_secret to the name of a Secret with web.yml."
        )
    if not exporter.secure and (params["web_config"] or params["scheme"] != "http"):
        yield f"{exporter.title} serves plain HTTP alone; leave out gpu_exporter_scheme and the web configuration of the pods."
    yield from find_web_problems(params)
    generation = collectors.parse_generation(params["version"] or exporter.version)
    if exporter.name == "dcgm_exporter" and generation is None:
        yield f"the version {params['version']} of dcgm-exporter is not known; set gpu_exporter_version as in 4.6.0-4.8.3."
    elif exporter.name == "dcgm_exporter" and generation is not None:
        yield from collectors.find_problems(params["collectors"], generation)


def _find_port_problems(params: Facts, host: Facts, pods: Sequence[Facts], port: int) -> Iterator[str]:
    for listener in host["listeners"]:
        if listener["port"] != port or _is_managed(listener, host) or (pods and listener["container"]):
            continue
        who = f"{listener['unit'] + '.service' if listener['unit'] else listener['program'] or 'a process'} (pid {listener['pid']})"
        yield f"{who} listens on port {port}; stop it, or set gpu_exporter_port to another one."
        return
    if pods and params["method"] != DAEMON_SET:
        yield (
            f"the DaemonSet {pods[0]['namespace']}/{pods[0]['name']} of this role runs on the node; remove it first with gpu_exporter_method "
            "daemonset and gpu_exporter_state absent."
        )
    unit = [path for path in host["unit_files"] if not host["record"]]
    if unit and params["method"] == ARCHIVE:
        yield f"{unit[0]} is not managed by this collection; remove it, or start it, so that this role uses its exporter."


def _find_archive_problems(exporter: Exporter, params: Facts, host: Facts) -> Iterator[str]:
    architecture = host["architecture"]
    if architecture not in ARCHITECTURES:
        yield f"{exporter.title} is not released for {architecture}; leave this host out."
        return
    checksum = params["sha256"].get(architecture, "")
    if not SHA256.fullmatch(str(checksum)):
        version = params["version"] or exporter.version
        where = exporter.checksums.format(version=version)
        yield (
            f"gpu_exporter_sha256 has no SHA-256 checksum for {architecture}; take the one of "
            f"{_format_archive(exporter, version, architecture).rpartition('/')[2]} from {where}."
        )


def _find_package_problems(exporter: Exporter, params: Facts, host: Facts) -> Iterator[str]:
    if params["url"] or params["src"]:
        if host["manager"] not in PACKAGE_FILES:
            yield (
                f"a package file is installed with apt or dnf, and not with {host['manager'] or 'this package manager'}; use "
                "gpu_exporter_package_repository or gpu_exporter_method archive."
            )
        if not SHA256.fullmatch(str(params["sha256"].get(host["architecture"], ""))):
            yield (
                f"gpu_exporter_sha256 has no SHA-256 checksum for {host['architecture']}; take the one of the package from "
                f"{exporter.checksums.format(version=params['version'] or exporter.version)}."
            )
    elif not params["repository"]:
        yield (
            f"no distribution has the package {exporter.package}; set gpu_exporter_src or gpu_exporter_url to its file, or "
            "gpu_exporter_package_repository to a repository that has it."
        )


def find_web_problems(params: Facts) -> Iterator[str]:
    """Yield what is wrong with the certificate and the users, of which no value is named."""
    if bool(params["certificate"]) != bool(params["key"]):
        yield "only one of gpu_exporter_tls_certificate and gpu_exporter_tls_key is set; set both."
    bad = sorted(str(name) for name, value in params["users"].items() if not BCRYPT.fullmatch(str(value)))
    if bad:
        yield (
            f"the password of {' and '.join(bad)} in gpu_exporter_basic_auth_users is not a bcrypt hash; make one with htpasswd -nBC 10 USER."
        )


def _format_archive(exporter: Exporter, version: str, architecture: str) -> str:
    return exporter.archive.format(version=version, architecture=ARCHITECTURES.get(architecture, architecture))


def _describe(exporter: Exporter, params: Facts, host: Facts, port: int, address: str) -> dict[str, Any]:
    """Return what the tasks need of the exporter."""
    version = params["version"] or exporter.version
    generation = collectors.parse_generation(version) or (0, 0)
    lines = [*collectors.list_fields(generation), *params["collectors"]] if exporter.name == "dcgm_exporter" else []
    config = "".join(f"{line}\n" for line in lines)
    if exporter.name == INTEL_EXPORTER:
        config = xpumd.build_config(port, ":" in address, int(params["interval"]))
    return {
        "version": version,
        "port": port,
        # Not that of the user, since output shows the plan.
        "url": "" if params["url"] else _format_archive(exporter, version, host["architecture"]),
        "sha256": str(params["sha256"].get(host["architecture"], "")),
        "package": exporter.package,
        "resource": BY_NAME[exporter.vendor].resource,
        "present_label": BY_NAME[exporter.vendor].present_label,
        "registry": exporter.registry,
        "repository": exporter.repository,
        "tag": exporter.tag.format(version=version),
        # The file that the pods read.
        "config": config,
        "profiling": any(collectors.PROFILING in line for line in lines),
        "arguments": build_arguments(exporter, params, port, address),
        "groups": find_groups(host["device"]),
    }


def build_arguments(exporter: Exporter, params: Facts, port: int, address: str) -> list[str]:
    """Return the command line of the exporter. A pod reads the address of its node from the environment."""
    place = format_address(address, port)
    if params["method"] == DAEMON_SET:
        place = f"[$(NODE_IP)]:{port}" if ":" in address else f"$(NODE_IP):{port}"
    web, extra = params["web_config"], [str(argument) for argument in params["arguments"]]
    if exporter.name == AMD_EXPORTER:
        # It reads its port from the environment, and without the API server it writes nothing into it.
        return [
            "-monitor-gpu=true",
            "-monitor-nic=false",
            "-enable-k8s=false",
            f"-bind={place.rpartition(':')[0]}",
            *extra,
        ]
    if exporter.name == INTEL_EXPORTER:
        return ["--config=/etc/gpu-exporter/config.yaml", *extra]
    if exporter.name == "dcgm_exporter":
        found = ["-a", place, "-f", "/etc/gpu-exporter/collectors.csv", "-c", str(int(params["interval"]) * 1000)]
        return [*found, *(["--web-config-file", web] if web else []), *extra]
    return [
        f"--web.listen-address={place}",
        f"--collect.backend={params['backend']}",
        f"--collect.interval={int(params['interval'])}s",
        *([f"--web.config.file={web}"] if web else []),
        *extra,
    ]


def find_groups(device: Facts) -> Sequence[str]:
    """Return the group that may open the driver's device, if others may not."""
    return [str(device["group"])] if device.get("mode") and int(str(device["mode"]), 8) & 0o006 != 0o006 else []
