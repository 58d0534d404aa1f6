#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module grafana_dashboards."""

from __future__ import annotations

DOCUMENTATION = r"""
module: grafana_dashboards
short_description: Create, change or remove dashboards of a Grafana by its API
version_added: 0.1.0
description:
  - Internal module of this collection, which can change in any release.
  - Saves dashboards in a folder of their own, each only if it differs, and removes them.
  - Parameters that Grafana adds to a dashboard are no difference. What others have changed is.
  - A dashboard with the same UID and none of the tags is unmanaged. It is not changed.
author:
  - gpu.kubernetes authors (@gpu-kubernetes)
extends_documentation_fragment:
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.full
attributes:
  platform:
    description: Target operating systems on which the module can run.
    support: full
    platforms: posix
options:
  url:
    description: Address of Grafana, with its path if it has one.
    type: str
    required: true
  token:
    description: Token of a service account with the role Editor.
    type: str
    required: true
  folder_uid:
    description: UID of the folder.
    type: str
    required: true
  folder_title:
    description: Title of the folder. It is created if it is missing, and renamed if it has another title.
    type: str
    required: true
  dashboards:
    description: The dashboards as JSON, each with C(uid), C(title) and C(tags).
    type: list
    elements: json
    required: true
  state:
    description: V(absent) removes the dashboards, and the folder if it has no other dashboard or folder.
    type: str
    choices: [present, absent]
    default: present
  validate_certs:
    description: Whether to verify the certificate of Grafana.
    type: bool
    default: true
  ca_path:
    description: File with the certificates of the authorities that may sign Grafana's.
    type: path
  timeout:
    description: Seconds to wait for each answer.
    type: int
    default: 30
"""

EXAMPLES = r"""
- name: Save the dashboards
  gpu.kubernetes.grafana_dashboards:
    url: https://grafana.example.com
    token: "{{ vault_grafana_token }}"
    folder_uid: gpu-kubernetes
    folder_title: GPUs
    dashboards: "{{ query('gpu.kubernetes.gpu_dashboards') | map(attribute='text') | list }}"
"""

RETURN = r"""
changed_dashboards:
  description: UIDs of the dashboards that were saved or removed, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: [gpu-kubernetes-fleet]
changed_folder:
  description: Whether the folder was created, renamed or removed, or would be in check mode.
  returned: success
  type: bool
  sample: true
"""

import json
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.urls import open_url

from ansible_collections.gpu.kubernetes.plugins.module_utils._module import build_module
from ansible_collections.gpu.kubernetes.plugins.module_utils._monitoring import grafana

ARGUMENTS = {
    "url": {"type": "str", "required": True},
    "token": {"type": "str", "required": True, "no_log": True},
    "folder_uid": {"type": "str", "required": True},
    "folder_title": {"type": "str", "required": True},
    "dashboards": {"type": "list", "elements": "json", "required": True},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "validate_certs": {"type": "bool", "default": True},
    "ca_path": {"type": "path"},
    "timeout": {"type": "int", "default": 30},
}


class GrafanaError(Exception):
    """Grafana does not answer, or refuses; the message is one sentence."""


class Grafana:
    """A client of the API. A redirection is an error, so that the token is sent to no other address."""

    def __init__(self, params: t.Mapping[str, t.Any]) -> None:
        self.url = params["url"].rstrip("/")
        self.headers = {"Authorization": f"Bearer {params['token']}", "Accept": "application/json"}
        self.options = {name: params[name] for name in ("validate_certs", "ca_path", "timeout")}

    def request(self, method: str, path: str, body: t.Mapping[str, t.Any] | None = None) -> t.Any:
        """Return the answer, None for 404; raises GrafanaError."""
        data = None if body is None else json.dumps(body).encode()
        headers = {**self.headers, **({} if data is None else {"Content-Type": "application/json"})}
        try:
            answer = open_url(
                f"{self.url}{path}",
                method=method,
                data=data,
                headers=headers,
                follow_redirects="none",
                use_netrc=False,
                **self.options,
            )
            return json.loads(answer.read())
        except OSError as error:  # HTTPError and URLError, too
            status = getattr(error, "code", None)
            if status == 404:
                return None
            raise GrafanaError(f"{self.url} {_describe(error, status)} ({method} {path}).") from error
        except ValueError as error:
            raise GrafanaError(
                f"{self.url} does not answer as Grafana does ({method} {path}); correct the URL."
            ) from error


def _describe(error: t.Any, status: int | None) -> str:
    if status is None:
        return f"does not answer: {getattr(error, 'reason', error)}"
    try:
        message = json.loads(error.read())["message"]
    except (KeyError, OSError, TypeError, ValueError):
        message = str(error.reason)
    remedies = {401: "; check the token", 403: "; give the token's service account the role Editor"}
    remedy = "; set the URL to which it redirects" if status in range(300, 400) else remedies.get(status, "")
    return f"refuses the request: {status} {' '.join(str(message).split())[:200]}{remedy}"


class Change(t.NamedTuple):
    """A dashboard or folder before and after; None if it does not exist. ``request`` are method, path and body."""

    name: str
    before: t.Any
    after: t.Any
    request: tuple[str, str, t.Mapping[str, t.Any] | None]

    def show(self) -> dict[str, str]:
        """Return the difference, as Ansible shows it."""
        sides = {"before": self.before, "after": self.after}
        texts = {
            side: "" if value is None else json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
            for side, value in sides.items()
        }
        return {**texts, "before_header": self.name, "after_header": self.name}


def plan_present(client: Grafana, params: t.Mapping[str, t.Any]) -> t.Iterator[Change]:
    """Yield the changes that save folder and dashboards; raises GrafanaError."""
    uid, title = params["folder_uid"], params["folder_title"]
    folder = client.request("GET", f"/api/folders/{uid}")
    if folder is None:
        yield Change(f"folder {uid}", None, {"title": title}, ("POST", "/api/folders", {"uid": uid, "title": title}))
    elif folder["title"] != title:
        body = {"title": title, "overwrite": True}
        yield Change(
            f"folder {uid}", {"title": folder["title"]}, {"title": title}, ("PUT", f"/api/folders/{uid}", body)
        )
    for dashboard, observed in read_dashboards(client, params):
        if observed is None or not grafana.is_current(dashboard, observed, uid):
            before = observed and grafana.strip_dashboard(observed["dashboard"])
            body = {"dashboard": dashboard, "folderUid": uid, "overwrite": True}
            after = grafana.strip_dashboard(dashboard)
            yield Change(dashboard["uid"], before, after, ("POST", "/api/dashboards/db", body))


def plan_absent(client: Grafana, params: t.Mapping[str, t.Any]) -> t.Iterator[Change]:
    """Yield the changes that remove the dashboards, then the folder if nothing else is in it; raises GrafanaError."""
    uid, removed = params["folder_uid"], []
    for dashboard, observed in read_dashboards(client, params):
        if observed is not None:
            removed.append(dashboard["uid"])
            before = grafana.strip_dashboard(observed["dashboard"])
            yield Change(dashboard["uid"], before, None, ("DELETE", f"/api/dashboards/uid/{dashboard['uid']}", None))
    folder = client.request("GET", f"/api/folders/{uid}")
    if folder is not None:
        found = client.request("GET", f"/api/search?folderUIDs={uid}&limit=5000") or []
        if not {each["uid"] for each in found} - set(removed):
            yield Change(f"folder {uid}", {"title": folder["title"]}, None, ("DELETE", f"/api/folders/{uid}", None))


def read_dashboards(client: Grafana, params: t.Mapping[str, t.Any]) -> list[tuple[t.Any, t.Any]]:
    """Return each desired dashboard with Grafana's answer, None if it has none; raises GrafanaError, also if one must not be changed."""
    pairs = [
        (dashboard, client.request("GET", f"/api/dashboards/uid/{dashboard['uid']}"))
        for dashboard in map(json.loads, params["dashboards"])
    ]
    refusals = [grafana.find_refusal(dashboard, observed) for dashboard, observed in pairs if observed is not None]
    for refusal in filter(None, refusals):
        raise GrafanaError(refusal)
    return pairs


def main() -> None:
    """Run the module."""
    module = build_module(AnsibleModule, ARGUMENTS)
    params = module.params
    client = Grafana(params)
    try:
        plan = plan_present if params["state"] == "present" else plan_absent
        # All of it is read before the first change.
        changes = list(plan(client, params))
        for change in [] if module.check_mode else changes:
            client.request(*change.request)
    except GrafanaError as error:
        module.fail_json(msg=str(error))
    folder = f"folder {params['folder_uid']}"
    module.exit_json(
        changed=bool(changes),
        changed_dashboards=[change.name for change in changes if change.name != folder],
        changed_folder=any(change.name == folder for change in changes),
        diff=[change.show() for change in changes],
    )


if __name__ == "__main__":
    main()
