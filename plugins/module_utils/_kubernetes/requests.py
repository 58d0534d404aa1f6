# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What pods ask for, as the scheduler and the kubelet count it. Private to this collection.

Source: k8s.io/component-helpers/resource, PodRequests.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Mapping

from .objects import FINISHED_PHASES
from .quantities import parse


def requested(pod: Mapping[str, Any], resource: str) -> Fraction:
    """Return the amount of *resource* that the pod asks for; nothing for one that has ended.

    Side containers count with the containers and with the others that start after them; those only by their peak.
    """
    spec = pod.get("spec") or {}
    if (pod.get("status") or {}).get("phase") in FINISHED_PHASES:
        return Fraction(0)
    beside, peak = Fraction(0), Fraction(0)
    for container in spec.get("initContainers") or []:
        asked = _asked(container, resource)
        if container.get("restartPolicy") == "Always":
            beside += asked
            peak = max(peak, beside)
        else:
            peak = max(peak, beside + asked)
    lasting = beside + sum((_asked(container, resource) for container in spec.get("containers") or []), Fraction(0))
    whole = ((spec.get("resources") or {}).get("requests") or {}).get(resource)
    overhead = _amount((spec.get("overhead") or {}).get(resource))
    return (max(lasting, peak) if whole is None else _amount(whole)) + overhead


def _asked(container: Mapping[str, Any], resource: str) -> Fraction:
    return _amount(((container.get("resources") or {}).get("requests") or {}).get(resource))


def _amount(text: Any) -> Fraction:
    try:
        return Fraction(0) if text is None else parse(str(text))
    except ValueError:
        return Fraction(0)
