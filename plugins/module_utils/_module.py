# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds the AnsibleModule of each module."""

from __future__ import annotations

import typing as t

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


class Module(t.Protocol):
    """What modules that can run in an action use of AnsibleModule."""

    params: dict[str, t.Any]
    check_mode: bool

    def warn(self, warning: str) -> None:
        """Add a warning to the result."""

    def fail_json(self, msg: str, **result: t.Any) -> t.NoReturn:
        """End with a failure."""

    def exit_json(self, **result: t.Any) -> t.NoReturn:
        """End with this result."""


def build_module(ansible_module: type[AnsibleModule], arguments: dict[str, t.Any], **rules: t.Any) -> AnsibleModule:
    """Return AnsibleModule, which module_utils does not import, with *arguments* and *rules*, such as required_if; it logs nothing.

    AnsibleModule writes all its parameters, which can be files and credentials, to the system log before a module can name them in
    no_log_values. Its own no_log has no effect, because the controller sends that of the task.
    """
    quiet: type[AnsibleModule] = type("QuietModule", (ansible_module,), {"log": _log_nothing})
    return quiet(argument_spec=arguments, supports_check_mode=True, **rules)


def _log_nothing(_module: AnsibleModule, _message: str, log_args: t.Any = None) -> None:
    """Ignore what AnsibleModule would write to syslog or the journal."""
