# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""nvidia_gpu_exporter and dcgm-exporter (fake): the series that rules and alerts read, with the real names, labels and units, of the GPUs of NVML.

The command line is that of the originals: with -f or --fake-version it is dcgm-exporter. The names of dcgm-exporter are those of its collectors file, so
that they are of either generation. The file of FAKE_EXPORTER_FAULTS changes values while it runs: {"0": {"temperature": 95, "xids": [79]}, "*": {...}},
by index of the GPU and the names of VALUES; {"fails": true} fails the collection. NVML_LIBRARY is the path of NVML.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import socket
import ssl
import sys
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from nvml import library, reader  # type: ignore[import-not-found]  # packed beside it: _nvml of this collection

TOPICS = ("hardware", "health", "power", "clocks", "pcie", "topology")
MIB = 1024 * 1024
HZ = 1_000_000
# The bits of clocks_event_reasons by the name that the exporter gives them.
REASONS = {
    "gpu_idle": 0x1,
    "sw_power_cap": 0x4,
    "hw_slowdown": 0x8,
    "sw_thermal_slowdown": 0x20,
    "hw_thermal_slowdown": 0x40,
    "hw_power_brake_slowdown": 0x80,
}
# A value of a GPU -> its series of nvidia_gpu_exporter, and the factor of its unit.
NVIDIA = {
    "utilization_gpu": ("utilization_gpu_ratio", 0.01),
    "utilization_memory": ("utilization_memory_ratio", 0.01),
    "memory_total": ("memory_total_bytes", 1),
    "memory_used": ("memory_used_bytes", 1),
    "memory_free": ("memory_free_bytes", 1),
    "memory_reserved": ("memory_reserved_bytes", 1),
    "temperature": ("temperature_gpu", 1),
    "temperature_margin": ("temperature_gpu_tlimit", 1),
    "power": ("power_draw_watts", 1),
    "power_limit": ("power_limit_watts", 1),
    "energy": ("energy_joules_total", 1),
    "sm_clock": ("clocks_current_sm_clock_hz", HZ),
    "memory_clock": ("clocks_current_memory_clock_hz", HZ),
    "event_reasons": ("clocks_event_reasons_active", 1),
    "ecc_corrected": ("ecc_errors_corrected_volatile_total", 1),
    "ecc_uncorrected": ("ecc_errors_uncorrected_volatile_total", 1),
    "ecc_uncorrected_aggregate": ("ecc_errors_uncorrected_aggregate_total", 1),
    "sram_exceeded": ("ecc_errors_uncorrected_aggregate_sram_threshold_exceeded", 1),
    "remap_uncorrectable": ("remapped_rows_uncorrectable", 1),
    "remap_pending": ("remapped_rows_pending", 1),
    "remap_failed": ("remapped_rows_failure", 1),
    "recovery_action": ("gpu_recovery_action", 1),
    "fabric_state": ("fabric_state", 1),
    "pcie_generation": ("pcie_link_gen_current", 1),
    "pcie_generation_max": ("pcie_link_gen_max", 1),
    "pcie_width": ("pcie_link_width_current", 1),
    "pcie_width_max": ("pcie_link_width_max", 1),
    "mig_mode": ("mig_mode_current", 1),
    "mig_mode_pending": ("mig_mode_pending", 1),
    "ecc_mode": ("ecc_mode_current", 1),
    "ecc_mode_pending": ("ecc_mode_pending", 1),
    "persistence_mode": ("persistence_mode", 1),
}
# A value -> the names of dcgm-exporter without DCGM_FI_DEV_ up to 4.8 and from 4.9 on, each with its factor.
DCGM = {
    "utilization_gpu": (("GPU_UTIL", 1), ("GPU_UTIL_RATIO", 0.01)),
    "memory_used": (("FB_USED", 1 / MIB), ("FB_USED_BYTES", 1)),
    "memory_free": (("FB_FREE", 1 / MIB), ("FB_FREE_BYTES", 1)),
    "memory_reserved": (("FB_RESERVED", 1 / MIB), ("FB_RESERVED_BYTES", 1)),
    "memory_total": (("", 0), ("FB_CAPACITY_BYTES", 1)),
    "temperature": (("GPU_TEMP", 1), ("GPU_TEMP_CELSIUS", 1)),
    "temperature_margin": (("GPU_TEMP_LIMIT", 1), ("GPU_TEMP_MARGIN_CELSIUS", 1)),
    "power": (("POWER_USAGE", 1), ("BOARD_POWER_WATTS", 1)),
    "energy": (("TOTAL_ENERGY_CONSUMPTION", 1000), ("GPU_ENERGY_JOULES_TOTAL", 1)),
    "sm_clock": (("SM_CLOCK", 1), ("SM_CLOCK_HERTZ", HZ)),
    "memory_clock": (("MEM_CLOCK", 1), ("MEMORY_CLOCK_HERTZ", HZ)),
    "event_reasons": (("CLOCKS_EVENT_REASONS", 1), ("CLOCKS_EVENT_REASONS", 1)),
    "ecc_corrected": (("ECC_SBE_VOL_TOTAL", 1), ("ECC_SBE_VOL_TOTAL", 1)),
    "ecc_uncorrected": (("ECC_DBE_VOL_TOTAL", 1), ("ECC_DBE_VOL_TOTAL", 1)),
    "remap_uncorrectable": (("UNCORRECTABLE_REMAPPED_ROWS", 1), ("ROW_REMAP_UNCORRECTABLE_TOTAL", 1)),
    "remap_pending": (("ROW_REMAP_PENDING", 1), ("ROW_REMAP_PENDING", 1)),
    "remap_failed": (("ROW_REMAP_FAILURE", 1), ("ROW_REMAP_FAILED", 1)),
    "recovery_action": (("GET_GPU_RECOVERY_ACTION", 1), ("GPU_RECOVERY_ACTION", 1)),
    "pcie_width": (("PCIE_LINK_WIDTH", 1), ("PCIE_LINK_WIDTH", 1)),
    "pcie_width_max": (("PCIE_MAX_LINK_WIDTH", 1), ("PCIE_MAX_LINK_WIDTH", 1)),
}
# Values that NVML does not have here, as of a healthy GPU.
VALUES: dict[str, Any] = {
    "temperature_margin": 50,
    "recovery_action": 0,
    "sram_exceeded": 0,
    "fabric_state": 0,
    "event_reasons": 0,
    "lost": False,
    "xids": [],
}
COUNTERS = ("_joules_total", "scrapes_total", "xid_errors_total", "ENERGY_CONSUMPTION", "_TOTAL", "PCIE_REPLAY_COUNTER")
SWITCH = {"disabled": 0, "enabled": 1}
Series = Iterator["tuple[str, dict[str, str], float]"]


class Collection:
    """One reading of NVML with the faults, and what the exporter reports of itself."""

    def __init__(self, nvml: library.Nvml, faults: Path | None) -> None:
        found = json.loads(faults.read_text()) if faults and faults.exists() else {}
        self.begin = time.time()
        self.code, self.version, self.cuda = 0, "", ""
        self.gpus: list[tuple[Any, dict[str, Any]]] = []
        try:
            facts = reader.read_gpus(nvml, TOPICS)
            self.version, self.cuda = str(facts.driver_version), str(facts.cuda_driver_version)
            for gpu in facts.gpus:
                values = {**VALUES, **read_values(gpu), **found.get("*", {}), **found.get(str(gpu.index), {})}
                if not (gpu.lost or values["lost"]):
                    self.gpus.append((gpu, values))
        except library.NvmlError as error:
            self.code = error.code
        if found.get("fails"):
            self.code, self.gpus = self.code or 999, []


def read_values(gpu: Any) -> dict[str, Any]:
    """The values of a GPU by the names of the tables, without unknown ones."""
    of, power, clocks, pcie = gpu.details, gpu.details["power"], gpu.details["clocks"], gpu.details["pcie"]
    known = (gpu.memory_total_bytes, gpu.memory_used_bytes, gpu.memory_free_bytes)
    found = {
        "utilization_gpu": gpu.utilization_gpu_percent,
        "utilization_memory": gpu.utilization_memory_percent,
        "memory_total": known[0],
        "memory_used": known[1],
        "memory_free": known[2],
        "memory_reserved": None if None in known else known[0] - known[1] - known[2],
        "temperature": gpu.temperature_celsius,
        "power": gpu.power_draw_watts,
        "power_limit": power["limit_watts"],
        "energy": None if gpu.power_draw_watts is None else round(gpu.power_draw_watts * (time.time() % 1e7), 3),
        "sm_clock": clocks.get("sm_mhz") or clocks.get("graphics_mhz"),
        "memory_clock": clocks.get("memory_mhz"),
        "ecc_corrected": of["ecc"]["corrected_volatile"],
        "ecc_uncorrected": of["ecc"]["uncorrected_volatile"],
        "ecc_uncorrected_aggregate": of["ecc"]["uncorrected_aggregate"],
        "remap_uncorrectable": of["row_remapping"]["uncorrected"],
        "remap_pending": of["row_remapping"]["pending"],
        "remap_failed": of["row_remapping"]["failed"],
        "pcie_generation": pcie["generation"],
        "pcie_generation_max": pcie["generation_max"],
        "pcie_width": pcie["width"],
        "pcie_width_max": pcie["width_max"],
        "mig_mode": SWITCH.get(gpu.mig_mode),
        "mig_mode_pending": SWITCH.get(gpu.mig_mode_pending),
        "ecc_mode": SWITCH.get(of["ecc"]["mode"]),
        "ecc_mode_pending": SWITCH.get(of["ecc"]["mode_pending"]),
        "persistence_mode": SWITCH.get(of["persistence_mode"]),
    }
    return {name: value for name, value in found.items() if value is not None}


def list_nvidia(collection: Collection, backend: str) -> Series:
    """The series of nvidia_gpu_exporter."""
    for gpu, values in collection.gpus:
        own = {"uuid": str(gpu.uuid).lower().replace("gpu-", "", 1)}
        yield "nvidia_smi_gpu_info", {**own, **describe(gpu, collection)}, 1
        for name, (series, factor) in NVIDIA.items():
            if name in values and (backend == "nvml" or name != "energy"):
                yield f"nvidia_smi_{series}", own, round(values[name] * factor, 9)
        for reason, bit in REASONS.items():
            yield f"nvidia_smi_clocks_event_reasons_{reason}", own, float(bool(values["event_reasons"] & bit))
        for xid in values["xids"] if backend == "nvml" else ():
            yield "nvidia_smi_xid_errors_total", {**own, "xid": str(xid)}, 1
            yield "nvidia_smi_xid_last_timestamp_seconds", {**own, "xid": str(xid)}, collection.begin
    succeeded = collection.code == 0
    yield "nvidia_smi_last_collect_success", {}, float(succeeded)
    yield "nvidia_smi_last_collect_duration_seconds", {}, time.time() - collection.begin
    if succeeded:
        yield "nvidia_smi_last_collect_success_timestamp_seconds", {}, collection.begin
    yield "nvidia_smi_failed_scrapes_total", {}, float(not succeeded)
    yield f"nvidia_smi_{'nvml_return_code' if backend == 'nvml' else 'command_exit_code'}", {}, collection.code
    words = ("branch", "goarch", "goos", "goversion", "revision", "tags")
    yield "nvidia_gpu_exporter_build_info", {**dict.fromkeys(words, "fake"), "version": "fake"}, 1


def describe(gpu: Any, collection: Collection) -> dict[str, str]:
    """The labels of gpu_info."""
    return {
        "compute_cap": str(gpu.compute_capability),
        "cuda_version": collection.cuda,
        "driver_model_current": "[N/A]",
        "driver_model_pending": "[N/A]",
        "driver_version": collection.version,
        "index": str(gpu.index),
        "name": str(gpu.name),
        "pci_bus_id": f"0000{gpu.pci_address}".upper(),
        "pci_sub_device_id": "[N/A]",
        "serial": str(gpu.details["serial"]),
        "vbios_version": str(gpu.details["vbios_version"]),
    }


def list_dcgm(collection: Collection, fields: list[str], host: str) -> Series:
    """The series of dcgm-exporter for the *fields* of its collectors file. *host* is the name of the label with the host's name."""
    names = {f"DCGM_FI_DEV_{name}": (value, factor) for value, both in DCGM.items() for name, factor in both if name}
    for gpu, values in collection.gpus:
        labels = {
            "gpu": str(gpu.index),
            "UUID": str(gpu.uuid),
            "pci_bus_id": f"0000{gpu.pci_address}".upper(),
            "device": f"nvidia{gpu.minor_number}",
            "modelName": str(gpu.name),
            host: os.environ.get("NODE_NAME") or socket.gethostname(),
            **{field: collection.version for field in fields if field.endswith("DRIVER_VERSION")},
        }
        for field in fields:
            value, factor = names.get(field, ("", 0))
            if value in values:
                yield field, labels, round(values[value] * factor, 9)
        for xid in values["xids"] if "DCGM_EXP_XID_ERRORS_COUNT" in fields else ():
            yield "DCGM_EXP_XID_ERRORS_COUNT", {**labels, "xid": str(xid)}, 1


def render(series: Series) -> str:
    """The text format 0.0.4."""
    by_name: dict[str, list[str]] = {}
    for name, labels, value in series:
        pairs = ",".join(f"{key}={json.dumps(text)}" for key, text in sorted(labels.items()))
        by_name.setdefault(name, []).append(f"{name}{{{pairs}}} {value!r}" if pairs else f"{name} {value!r}")
    lines = []
    for name, found in sorted(by_name.items()):
        lines += [
            f"# HELP {name} fake",
            f"# TYPE {name} {'counter' if name.endswith(COUNTERS) and 'ecc' not in name else 'gauge'}",
            *found,
        ]
    return "\n".join(lines) + "\n"


def read_web(path: str) -> tuple[dict[str, str], ssl.SSLContext | None]:
    """The users and the TLS settings of a web configuration in JSON, which is YAML, too."""
    if not path:
        return {}, None
    lines = Path(path).read_text().splitlines()
    web = json.loads("\n".join(line for line in lines if not line.startswith("#")))
    context = None
    if "tls_server_config" in web:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(web["tls_server_config"]["cert_file"], web["tls_server_config"]["key_file"])
    return web.get("basic_auth_users", {}), context


def is_allowed(header: str, users: dict[str, str]) -> bool:
    """Whether the header Authorization has a user with its password. Needs Python's crypt with bcrypt, as Debian 12 has it."""
    if not users:
        return True
    name, _colon, password = base64.b64decode(header.partition(" ")[2] or "").decode().partition(":")
    import crypt

    return name in users and crypt.crypt(password, users[name]) == users[name]


def build_handler(scrape: Callable[[], str], users: dict[str, str]) -> type[BaseHTTPRequestHandler]:
    """The handler of requests."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            allowed = is_allowed(self.headers.get("Authorization", ""), users)
            text = scrape().encode() if allowed and self.path == "/metrics" else b"gpu exporter (fake)\n"
            self.send_response(200 if allowed else 401)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *words: Any) -> None:  # noqa: A002
            """Log nothing."""

    return Handler


def main() -> None:
    """Serve until the end. Exits with status 1 without NVML, as 2.0 does."""
    parser = argparse.ArgumentParser(description="nvidia_gpu_exporter and dcgm-exporter (fake)")
    parser.add_argument("--web.listen-address", "-a", dest="address", default=":9835")
    parser.add_argument("--web.config.file", "--web-config-file", dest="web", default="")
    parser.add_argument("--collect.backend", dest="backend", choices=["nvml", "exec"], default="nvml")
    parser.add_argument("--collect.interval", "-c", dest="interval")
    parser.add_argument("-f", dest="collectors", default="")
    parser.add_argument("--fake-version", default="4.8.3", help="of dcgm-exporter")
    options = parser.parse_args()
    try:
        nvml = library.Nvml(library.load_library(os.environ.get("NVML_LIBRARY")))
    except library.LibraryMissing as error:
        sys.exit(f"gpu exporter (fake): {error}")
    faults = Path(os.environ["FAKE_EXPORTER_FAULTS"]) if os.environ.get("FAKE_EXPORTER_FAULTS") else None
    lines = Path(options.collectors).read_text().splitlines() if options.collectors else []
    fields = [line.partition(",")[0].strip() for line in lines if line.strip() and not line.startswith("#")]
    host = "hostname" if tuple(map(int, options.fake_version.split("."))) >= (4, 8, 3) else "Hostname"

    def scrape() -> str:
        collection = Collection(nvml, faults)
        return render(list_dcgm(collection, fields, host) if fields else list_nvidia(collection, options.backend))

    address, _colon, port = options.address.rpartition(":")
    users, context = read_web(options.web)
    server = ThreadingHTTPServer((address.strip("[]"), int(port)), build_handler(scrape, users))
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    print(f"gpu exporter (fake) listens on {address}:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
