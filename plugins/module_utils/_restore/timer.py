# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Arms and disarms the timer on a node: a transient unit of systemd, which a restart of the node removes.

Below the folder ``restore`` of the collection's state: ``NAME.json`` is the plan while the timer is armed, ``NAME.restored.json`` the record after it
has restored, and ``restore.pyz`` what it starts.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import typing as t
from dataclasses import dataclass

from .. import _commands, _program
from .._config import files
from .._config.paths import StatePaths
from . import script
from .script import COMMAND_SECONDS

#: (status, output and errors) of a command.
Run = t.Callable[[t.Sequence[str]], t.Tuple[int, str]]

#: Seconds to wait for a restore that has begun.
RESTORE_SECONDS = 600
_RUNNING = ("active", "activating", "deactivating", "reloading")


class TimerError(Exception):
    """The timer cannot be armed or disarmed, or has restored already; the text is one sentence."""


def sum_seconds(verification: int, hosts: int, forks: int) -> int:
    """Return the seconds until a node restores: a restart, the *verification* on this node, and a minute for the tasks in between.

    Ansible ends a task on all hosts of the batch before the next one begins, with as many at once as it has forks. So each further round of
    forks adds the time in which one host of that round fails its verification, at least a minute.
    """
    further_rounds = max(-(-hosts // max(forks, 1)) - 1, 0)
    return COMMAND_SECONDS + verification + 60 + further_rounds * max(verification, 60)


def build_archive() -> bytes:
    """Return a ZIP archive that Python runs: the script, and the files that it imports; equal for equal sources."""
    return _program.build_archive(script, (_commands, files))


@dataclass(frozen=True)
class Programs:
    """Paths of the programs that the timer needs, and of this Python."""

    systemctl: str
    systemd_run: str
    python: str


@dataclass(frozen=True)
class Timer:
    """The timer of one daemon; *name* is unique on the node."""

    name: str
    paths: StatePaths
    programs: Programs
    run: Run
    pause: t.Callable[[float], None] = time.sleep

    @property
    def unit(self) -> str:
        """Return the name of the unit, without its type."""
        return f"gpu-kubernetes-restore-{self.name}"

    @property
    def folder(self) -> str:
        """Return the folder of plans and records."""
        return os.path.join(self.paths.state_dir, "restore")

    @property
    def plan_file(self) -> str:
        """Return the file with the plan."""
        return os.path.join(self.folder, f"{self.name}.json")

    @property
    def record_file(self) -> str:
        """Return the file that the timer writes after it has restored."""
        return os.path.join(self.folder, f"{self.name}.restored.json")

    @property
    def _archive_file(self) -> str:
        return os.path.join(self.folder, "restore.pyz")

    def arm(
        self, former: t.Sequence[t.Mapping[str, t.Any]], commands: t.Sequence[t.Sequence[str]], seconds: int
    ) -> None:
        """Have the *former* files restored and the commands run after some seconds; an armed timer begins again, without its record.

        Raises TimerError or FilesError.
        """
        self._stop()
        files.remove_file(self.record_file)
        files.make_dirs(self.paths.state_dir)
        files.make_dirs(self.folder, 0o700)
        plan = {
            "name": self.name,
            "files": list(former),
            "commands": [list(command) for command in commands],
            "backups": self.paths.backups,
            "record": self.record_file,
            "armed": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        files.write_atomic(self._archive_file, build_archive(), mode=0o600)
        files.write_atomic(self.plan_file, json.dumps(plan).encode("utf-8"), mode=0o600)
        status, said = self.run(
            [
                self.programs.systemd_run,
                "--quiet",
                "--collect",
                f"--unit={self.unit}",
                f"--description=Restores the former configuration of {self.name} unless a run verifies the new one",
                f"--on-active={seconds}",
                "--timer-property=AccuracySec=1s",
                self.programs.python,
                "-E",
                "-s",
                self._archive_file,
                self.plan_file,
            ]
        )
        if status:
            self._clean()
            raise TimerError(
                f"systemd-run cannot start the timer {self.unit} ({said.strip() or f'exit status {status}'})."
            )

    def disarm(self) -> None:
        """Stop the timer and remove its plan; a restore that has begun ends first. Raises FilesError, and TimerError if the timer has restored."""
        if not os.path.isdir(self.folder):
            return
        self._stop()
        self._clean()
        record = self.read_record()
        if record and record["files"]:
            problems = "".join(f"; {problem}" for problem in record["problems"])
            raise TimerError(
                f"The change of {self.name} is undone: it was not verified in time, so the node restored {' and '.join(record['files'])} itself "
                f"at {record['at']}{problems}; read the log (journalctl -u {self.unit}), and run again."
            )

    def read_record(self) -> dict[str, t.Any] | None:
        """Return what the timer has restored since the last run; None if it has not. Raises FilesError."""
        data = files.read_bytes(self.record_file)
        if data is None:
            return None
        try:
            return dict(json.loads(data.decode("utf-8")))
        except ValueError:
            return {"name": self.name, "armed": "", "at": "", "files": [], "problems": ["its record is damaged"]}

    def remove_record(self) -> None:
        """Remove the record. Raises FilesError."""
        files.remove_file(self.record_file)
        self._clean_folder()

    def _stop(self) -> None:
        self.run([self.programs.systemctl, "stop", f"{self.unit}.timer"])
        for _second in range(RESTORE_SECONDS):
            if self.run([self.programs.systemctl, "is-active", f"{self.unit}.service"])[1].split()[:1] not in (
                [state] for state in _RUNNING
            ):
                break
            self.pause(1)
        else:
            raise TimerError(
                f"{self.unit}.service has not ended in {RESTORE_SECONDS} seconds; read its journal, stop it, and run again."
            )
        self.run([self.programs.systemctl, "reset-failed", f"{self.unit}.service", f"{self.unit}.timer"])

    def _clean(self) -> None:
        files.remove_file(self.plan_file)
        self._clean_folder()

    def _clean_folder(self) -> None:
        """Remove the archive with the last plan, and an empty folder."""
        with contextlib.suppress(OSError):
            plans = [name for name in os.listdir(self.folder) if name.endswith(".json") and ".restored." not in name]
            if not plans:
                files.remove_file(self._archive_file)
            os.rmdir(self.folder)
