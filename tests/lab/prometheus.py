# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Debian's Prometheus: promtool for rules, and a process that scrapes targets. Nothing is installed."""

from __future__ import annotations

import contextlib
import http.server
import json
import socket
import subprocess
import threading
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from . import binaries, wait
from .settings import Settings


def programs() -> Path:
    """Folder with prometheus and promtool."""
    return binaries.prometheus(Settings())


def run_tests(
    folder: Path, rules: str, tests: Sequence[Mapping[str, Any]], promtool: str | Path = ""
) -> tuple[int, str]:
    """Exit status and output of promtool, by default that of this host's Debian, for the tests of a file of rules."""
    (folder / "rules.yml").write_text(rules)
    content = {"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": list(tests)}
    (folder / "tests.yml").write_text(json.dumps(content))
    command = [promtool or programs() / "promtool", "test", "rules", folder / "tests.yml"]
    done = subprocess.run(
        list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return done.returncode, done.stdout


def _name_alerts(labels: Iterable[Mapping[str, str]]) -> set[tuple[str, str]]:
    return {(each["alertname"], each.get("node") or each.get("pod") or "") for each in labels}


class _Server:
    """A program on a free port of this machine, with its log in a folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.log = folder / "log"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        self.url = f"http://{self.address}"

    def _list_command(self) -> Sequence[object]:
        raise NotImplementedError

    def __enter__(self) -> Self:
        with self.log.open("w") as log:
            self.process = subprocess.Popen(list(map(str, self._list_command())), stdout=log, stderr=subprocess.STDOUT)
        wait.until(self._is_ready, seconds=60, pause=0.1)
        return self

    def __exit__(self, *_exception: object) -> None:
        self.process.kill()
        self.process.wait()

    def get(self, path: str) -> str:
        """The body of an answer."""
        with urllib.request.urlopen(self.url + path, timeout=10) as answer:  # noqa: S310
            return str(answer.read().decode())

    def _is_ready(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        try:
            return self.get("/-/ready") != ""
        except OSError:
            return False


class Prometheus(_Server):
    """A Prometheus with the configuration ``prometheus.yml`` of a folder, and its data there."""

    @property
    def config(self) -> Path:
        """The configuration."""
        return self.folder / "prometheus.yml"

    def _list_command(self) -> Sequence[object]:
        data = f"--storage.tsdb.path={self.folder / 'data'}"
        listen = f"--web.listen-address={self.address}"
        return [programs() / "prometheus", f"--config.file={self.config}", listen, data, "--web.enable-lifecycle"]

    def groups(self) -> list[str]:
        """The names of the groups of rules that are loaded."""
        return [group["name"] for group in json.loads(self.get("/api/v1/rules"))["data"]["groups"]]

    def read_alerts(self) -> set[tuple[str, str]]:
        """The alerts that fire or are pending: name, and node or pod."""
        return _name_alerts(each["labels"] for each in json.loads(self.get("/api/v1/alerts"))["data"]["alerts"])

    def reloads(self) -> str:
        """When it has last loaded its configuration, as it reports it."""
        name = "prometheus_config_last_reload_success_timestamp_seconds "
        return next(line for line in self.get("/metrics").splitlines() if line.startswith(name))


class Alertmanager(_Server):
    """An Alertmanager that sends each alert at once to a webhook, and again when it is resolved."""

    def __init__(self, folder: Path, webhook: str) -> None:
        super().__init__(folder)
        route = {"receiver": "webhook", "group_by": ["..."], "group_wait": "0s", "group_interval": "1s"}
        receiver = {"name": "webhook", "webhook_configs": [{"url": webhook, "send_resolved": True}]}
        (folder / "alertmanager.yml").write_text(json.dumps({"route": route, "receivers": [receiver]}))

    def _list_command(self) -> Sequence[object]:
        data = f"--storage.path={self.folder / 'data'}"
        listen = f"--web.listen-address={self.address}"
        package = binaries.alertmanager(Settings())
        # Its template has a fixed path. A mount namespace of its own has the package there, and the machine has not.
        script = f'mount --bind {package}/share /usr/share && exec {package}/bin/prometheus-alertmanager "$@"'
        unshare = ["unshare", "--map-root-user", "--mount", "sh", "-c", script, "alertmanager"]
        return [
            *unshare,
            f"--config.file={self.folder / 'alertmanager.yml'}",
            listen,
            data,
            "--cluster.listen-address=",
        ]


class Webhook(http.server.ThreadingHTTPServer):
    """What Alertmanager sends its alerts to, on a free port of this machine."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _WebhookHandler)
        self.address = f"127.0.0.1:{self.server_port}"
        self.statuses: dict[tuple[tuple[str, str], ...], str] = {}

    def read_firing(self) -> set[tuple[str, str]]:
        """The alerts that fire: name, and node or pod."""
        return self._list("firing")

    def read_recorded(self) -> set[tuple[str, str]]:
        """The alerts that have fired since the record was cleared, the resolved ones too."""
        return self._list("firing", "resolved")

    def clear(self) -> None:
        """Clear the record. No alert may fire, since Alertmanager does not repeat it."""
        assert self.read_firing() == set()
        self.statuses.clear()

    def _list(self, *statuses: str) -> set[tuple[str, str]]:
        return _name_alerts(dict(labels) for labels, status in list(self.statuses.items()) if status in statuses)

    @contextlib.contextmanager
    def serve(self) -> Iterator[Self]:
        """Receive alerts in a block."""
        thread = threading.Thread(target=self.serve_forever, daemon=True)
        thread.start()
        yield self
        self.shutdown()
        thread.join()
        self.server_close()


class _WebhookHandler(http.server.BaseHTTPRequestHandler):
    """Keeps the last status of each alert."""

    server: Webhook

    def do_POST(self) -> None:
        """Read alerts."""
        for each in json.loads(self.rfile.read(int(self.headers["Content-Length"])))["alerts"]:
            self.server.statuses[tuple(sorted(each["labels"].items()))] = each["status"]
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_arguments: object) -> None:
        """Print nothing."""
