# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The half of the module prometheus_config that runs on Prometheus' host: reads files, runs promtool, reloads Prometheus and reads what it reports."""

from __future__ import annotations

import json
import os
import re
import stat
import time
import typing as t
import urllib.error
import urllib.request

from .._config import files, validate
from .._config.errors import ConfigError
from .._config.node import read_files
from .._config.record import decode_bytes
from .scrape import RULES_FILE, TARGETS_DIR

#: Seconds for one answer of Prometheus, and for a reload.
TIMEOUT = 10
RELOAD_TIMEOUT = 60

_LOADED = "prometheus_config_last_reload_successful"
_LOADED_AT = "prometheus_config_last_reload_success_timestamp_seconds"
_ERROR = re.compile(r"\blevel=(?:error|warn|ERROR|WARN)\b")

Fetch = t.Callable[..., str]


class Reload(t.NamedTuple):
    """What Prometheus reports of its last reload: whether it succeeded, and when one has last succeeded, in seconds since 1970."""

    successful: bool
    succeeded_at: float


def read(path: str, names: t.Sequence[str], state_dir: str) -> dict[str, t.Any]:
    """Return the configuration, the record, the rules and the files of targets with these names; the names of others; owner and mode for new files."""
    folder = os.path.dirname(path)
    targets = os.path.join(folder, TARGETS_DIR)
    existing = sorted(os.listdir(targets)) if os.path.isdir(targets) else []
    others = [name for name in existing if name.endswith(".json") and not name.startswith(".") and name not in names]
    more = [os.path.join(folder, RULES_FILE), *(os.path.join(targets, name) for name in names)]
    try:
        status: os.stat_result | None = os.stat(path)
    except OSError:
        status = None
    return {
        **read_files(path, "prometheus", state_dir, more),
        "others": others,
        "owner": status and [status.st_uid, status.st_gid],
        "mode": stat.S_IMODE(status.st_mode) if status else 0o644,
    }


def check(
    promtool: str, path: str, rules_path: str, config: str, rules: str | None, run: validate.Run = validate.run
) -> dict[str, t.Any]:
    """Return why promtool refuses the planned files (None: it does not). They are beside the files, because a configuration names relative paths."""
    program = validate.find_program(promtool if "/" in promtool else None, promtool)
    if program is None:
        raise files.FilesError(
            "There is no promtool on Prometheus' host: install the package prometheus (Debian 13 and newer: promtool), or set"
            " gpu_prometheus_promtool to its path."
        )
    tag = files.TEMP_TAG + os.urandom(6).hex()
    temps = {
        each: os.path.join(os.path.dirname(each), f".{os.path.basename(each)}{tag}") for each in (path, rules_path)
    }
    rules_data = decode_bytes(rules)
    config_data = (decode_bytes(config) or b"").replace(
        RULES_FILE.encode(), os.path.basename(temps[rules_path]).encode()
    )
    refusal = None
    try:
        if rules_data is not None:
            validate.write_private(temps[rules_path], rules_data)
            refusal = _refusal(run([program, "check", "rules", temps[rules_path]]))
        validate.write_private(temps[path], config_data)
        refusal = refusal or _refusal(run([program, "check", "config", temps[path]]))
    except (ConfigError, OSError) as exc:
        raise files.FilesError(str(exc)) from exc
    finally:
        for temp in temps.values():
            if os.path.exists(temp):
                os.unlink(temp)
    for name, temp in temps.items():
        refusal = refusal and refusal.replace(temp, name).replace(os.path.basename(temp), os.path.basename(name))
    return {"refusal": refusal}


def _refusal(result: tuple[int, str, str]) -> str | None:
    """Return what promtool has against a file, in one line."""
    status, output, errors = result
    if status == 0:
        return None
    lines = [line.strip() for line in (errors + "\n" + output).splitlines()]
    found = [line for line in lines if line and not line.startswith(("Checking ", "SUCCESS"))]
    return " ".join(found).replace("FAILED: ", "") or f"exit status {status}"


def fetch(url: str, method: str = "GET") -> str:
    """Return the body that *url* answers with. Raises OSError, also for an error of HTTP, with its body."""
    request = urllib.request.Request(url, method=method)  # noqa: S310 - the administrator's own address
    # Prometheus' host reaches it without a proxy.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=TIMEOUT) as answer:
            return str(answer.read().decode("utf-8", "replace"))
    except urllib.error.HTTPError as exc:
        body = exc.read().decode("utf-8", "replace").strip()
        raise OSError(f"{url}: HTTP {exc.code} {body}".rstrip()) from exc
    except ValueError as exc:
        raise OSError(f"{url}: {exc}") from exc


def parse_reload(metrics: str) -> Reload | None:
    """Return the last reload from Prometheus' own metrics; None if they do not have it."""
    found = dict(
        line.split(" ", 1) for line in metrics.splitlines() if line.startswith((f"{_LOADED} ", f"{_LOADED_AT} "))
    )
    try:
        return Reload(float(found[_LOADED]) == 1, float(found[_LOADED_AT]))
    except (KeyError, ValueError):
        return None


def probe(url: str, get: Fetch = fetch) -> dict[str, t.Any]:
    """Return why Prometheus' own metrics cannot be read (None: they can)."""
    try:
        known = parse_reload(get(f"{url.rstrip('/')}/metrics"))
    except OSError as exc:
        return {"refusal": str(exc)}
    return {"refusal": None if known else f"{url}/metrics has no {_LOADED}"}


def reload(
    how: str,
    service: str,
    url: str,
    file: str,
    groups: t.Sequence[str],
    get: Fetch = fetch,
    run: validate.Run = validate.run,
    pause: t.Callable[[float], None] = time.sleep,
) -> dict[str, t.Any]:
    """Have Prometheus load its files; return why it did not (None: it did), and its last log lines. *groups* are those that *file* has to bring."""
    url = url.rstrip("/")
    try:
        before = parse_reload(get(f"{url}/metrics"))
        if how == "http":
            get(f"{url}/-/reload", method="POST")
        else:
            status, _output, errors = run(["systemctl", "reload", "--", service])
            if status:
                raise OSError(errors.strip() or f"systemctl reload {service} has ended with status {status}")
        refusal = _await(lambda: parse_reload(get(f"{url}/metrics")), before, pause)
        refusal = refusal or compare_groups(get(f"{url}/api/v1/rules"), file, groups)
    except (ConfigError, OSError) as exc:
        refusal = " ".join(str(exc).split()).rstrip(".")
    return {"refusal": refusal, "log": [] if refusal is None else read_log(service, run)}


def _await(
    observe: t.Callable[[], Reload | None], before: Reload | None, pause: t.Callable[[float], None]
) -> str | None:
    """Return why the reload has failed; None if a later one than *before* has succeeded."""
    for _attempt in range(RELOAD_TIMEOUT * 5):
        now = observe()
        if now and now.successful and (before is None or now.succeeded_at > before.succeeded_at):
            return None
        if now and not now.successful and (before is None or before.successful):
            return f"{_LOADED} is 0"
        pause(0.2)
    return f"no reload has succeeded within {RELOAD_TIMEOUT} seconds"


def compare_groups(answer: str, file: str, groups: t.Sequence[str]) -> str | None:
    """Return whether Prometheus misses one of the groups of *file*, or has others of it, by the answer of its API; None if neither."""
    try:
        loaded = [
            each["name"] for each in json.loads(answer)["data"]["groups"] if os.path.basename(each["file"]) == file
        ]
    except (KeyError, TypeError, ValueError) as exc:
        return f"its API does not list the rules ({exc!r})"
    if sorted(loaded) == sorted(groups):
        return None
    return f"it has the groups of rules {', '.join(loaded) or 'none'} of {file}, and not {', '.join(groups) or 'none'}"


def read_log(service: str, run: validate.Run = validate.run) -> list[str]:
    """Return the last errors of the service's log, else its last lines; none where systemd has no log of it."""
    command = ["journalctl", "--unit", service, "--lines", "50", "--output", "cat", "--no-pager", "--quiet"]
    try:
        lines = [line.strip() for line in run(command)[1].splitlines() if line.strip()]
    except ConfigError:
        return []
    return ([line for line in lines if _ERROR.search(line)] or lines)[-3:]


def tidy(folder: str) -> dict[str, t.Any]:
    """Remove the folder of targets if it is empty."""
    try:
        os.rmdir(folder)
    except OSError:
        return {"removed": False}
    return {"removed": True}


ACTIONS: dict[str, t.Callable[..., dict[str, t.Any]]] = {
    "check": check,
    "probe": probe,
    "reload": reload,
    "tidy": tidy,
}
