# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration files of daemons: read, decide, validate, record, replace, undo, redact. Knows no product.

`files`, `paths` and `record` are what lies on a node, `snapshot` what a rollback restores. `tree` and `config_file` compare and edit what
files mean, in the syntaxes of `formats` or, on the controller, as `yaml_nodes`; `schema_checks` checks types, `redact` masks credentials.
`change_log` records changed settings and removes them, and `patch` does so by lines.

Two ways lead to a changed file. Modules that decide on the node describe a daemon to `apply`, and decide on a `draft`, which `validate`
lets the daemon check first. Modules that decide on the controller, where YAML is edited, give `controller` a plan; `node` is their half
on the node.
"""
