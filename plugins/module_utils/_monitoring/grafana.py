# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which dashboards and which folder of a Grafana have to change, from what its API returns."""

from __future__ import annotations

from typing import Any, Mapping

#: Grafana sets the first two; a release that converts a dashboard sets the third.
_SET_BY_GRAFANA = ("id", "version", "schemaVersion")


def is_included(desired: Any, observed: Any) -> bool:
    """Return whether *observed* has all that *desired* has. It may have more, since newer releases of Grafana add defaults and leave out empty values."""
    if isinstance(desired, dict) and isinstance(observed, dict):
        return all(
            is_included(value, observed[key]) if key in observed else not value for key, value in desired.items()
        )
    if isinstance(desired, list) and isinstance(observed, list):
        return len(desired) == len(observed) and all(map(is_included, desired, observed))
    # In Python True is 1, in JSON it is not.
    return bool(desired == observed) and isinstance(desired, bool) is isinstance(observed, bool)


def strip_dashboard(dashboard: Mapping[str, Any]) -> dict[str, Any]:
    """Return a dashboard without what Grafana sets."""
    return {key: value for key, value in dashboard.items() if key not in _SET_BY_GRAFANA}


def is_current(desired: Mapping[str, Any], observed: Mapping[str, Any], folder: str) -> bool:
    """Return whether an answer of Grafana has the dashboard as desired, in the *folder* with this UID."""
    in_folder = observed.get("meta", {}).get("folderUid") == folder
    return in_folder and is_included(strip_dashboard(desired), observed["dashboard"])


def find_refusal(desired: Mapping[str, Any], observed: Mapping[str, Any]) -> str:
    """Return why a dashboard of Grafana with this UID must not be changed; empty if it may be."""
    dashboard, uid = observed["dashboard"], desired["uid"]
    if not set(desired["tags"]) & set(dashboard.get("tags") or ()):
        return f"The dashboard {uid} in Grafana has not the tag {desired['tags'][0]}, so others made it; remove it, or give it another UID."
    if observed.get("meta", {}).get("provisioned"):
        return (
            f"The dashboard {uid} in Grafana comes from files or a ConfigMap; remove those first, or keep that method."
        )
    return ""
