# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors whose text is one sentence: of a call to the API server, and of what nodes and pods have."""

from __future__ import annotations

import json
import re
from typing import Any, Mapping

from ._text import make_printable

MAX_LENGTH = 300

# The key in ``ApiError.causes`` of a right that the account lacks; the API server sets the other keys.
MISSING_RIGHT = "MissingRight"
# The API server reports it as: cannot get resource "pods/log" in API group ""
_MISSING_RIGHT = re.compile(r'is forbidden: User .* cannot (\S+) resource "([^"]+)"')

# The status of a page whose list has expired.
EXPIRED = 410
# Characters of a message of the API server that are read: it can quote what a webhook has sent.
MAX_MESSAGE = 4096

# The API server cannot be reached, is busy or starts; a retry may succeed.
_TRANSIENT = frozenset({0, 429, 500, 502, 503, 504})


class SentenceError(Exception):
    """An error whose text is one sentence. Names and reasons in it may come from nodes, so it is made printable."""

    def __init__(self, message: str) -> None:
        super().__init__(make_printable(message))


class ApiError(SentenceError):
    """A call failed; the text is one sentence with server, cause and remedy, ``status`` the HTTP status or 0.

    ``causes`` has the causes that the API server reports, such as ``DisruptionBudget``, with the message of each.
    """

    def __init__(self, message: str, status: int = 0, causes: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.causes = dict(causes or {})

    @property
    def is_transient(self) -> bool:
        """Return whether a retry of the call may succeed."""
        return self.status in _TRANSIENT


def shorten(text: Any) -> str:
    """Return the text on one line of at most MAX_LENGTH printable characters."""
    folded = make_printable(" ".join(str(text or "").split()))
    return folded if len(folded) <= MAX_LENGTH else folded[: MAX_LENGTH - 1] + "…"


def explain_error(error: BaseException, server: str) -> ApiError:
    """Return an exception of the client as ApiError with one sentence."""
    status = int(getattr(error, "status", 0) or 0)
    if not status:
        return ApiError(
            f"The Kubernetes API at {server or 'the configured server'} cannot be reached ({find_cause(error)}); "
            "check that it is up and that gpu_kubeconfig (or the kubeconfig in use) names the right cluster."
        )
    message = _read_message(error)
    text, lacks, causes = shorten(message), _MISSING_RIGHT.search(message), _read_causes(error)
    if status == 401:
        text += "; renew the credentials in the kubeconfig"
    elif status == EXPIRED:
        text += "; run again when the API server and the network are less busy"
    elif lacks:
        verb, resource = lacks.groups()
        causes[MISSING_RIGHT] = f"{verb} {resource}"
        text += f"; allow this account {verb} on {resource} by a role (RBAC), or use an administrator's kubeconfig"
    return ApiError(f"The Kubernetes API at {server} answered {status}: {text}.", status, causes)


def _read_message(error: BaseException) -> str:
    body = getattr(error, "body", None)
    try:
        return str(json.loads(body)["message"])[:MAX_MESSAGE].rstrip(".") if body else str(getattr(error, "reason", ""))
    except (ValueError, TypeError, KeyError, RecursionError):
        return str(getattr(error, "reason", "") or "no reason given")


def _read_causes(error: BaseException) -> dict[str, str]:
    """Return the API server's message on each cause that it reports."""
    try:
        causes = (json.loads(getattr(error, "body", None) or "{}").get("details") or {}).get("causes") or []
        return {str(cause["reason"]): shorten(cause.get("message")).rstrip(".") for cause in causes}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return {}


def find_cause(error: BaseException) -> str:
    """Return the innermost cause that urllib3 wraps, such as ``Connection refused``."""
    cause = error
    while isinstance(getattr(cause, "reason", None), BaseException):
        cause = getattr(cause, "reason")  # noqa: B009 - not every exception has it
    text = " ".join(str(cause).split())
    return text.rsplit(">: ", 1)[-1].rsplit(": ", 1)[-1] if "Errno" in text else text[:200] or type(cause).__name__
