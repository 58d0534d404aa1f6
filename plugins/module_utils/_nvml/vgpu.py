# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The vGPU licence of a GPU by NVML, as NVIDIA's guest driver reports it.

Source of names, numbers and layouts: the interface that NVIDIA publishes as ``nvml.h``.
"""

from __future__ import annotations

import ctypes
from typing import Any

from .device import Device

FEATURES = 3
TEXT_SIZE = 128
EXPIRY_VALID = 2


class Expiry(ctypes.Structure):
    """nvmlGridLicenseExpiry_t, in UTC."""

    _fields_ = [
        ("year", ctypes.c_uint),
        ("month", ctypes.c_ushort),
        ("day", ctypes.c_ushort),
        ("hour", ctypes.c_ushort),
        ("minute", ctypes.c_ushort),
        ("second", ctypes.c_ushort),
        ("status", ctypes.c_ubyte),
    ]


class Feature(ctypes.Structure):
    """nvmlGridLicensableFeature_t."""

    _fields_ = [
        ("code", ctypes.c_int),
        ("licensed", ctypes.c_uint),
        ("deprecated", ctypes.c_char * TEXT_SIZE),
        ("product", ctypes.c_char * TEXT_SIZE),
        ("enabled", ctypes.c_uint),
        ("expiry", Expiry),
    ]


class Features(ctypes.Structure):
    """nvmlGridLicensableFeatures_t of drivers from 510 on."""

    _fields_ = [("supported", ctypes.c_int), ("count", ctypes.c_uint), ("features", Feature * FEATURES)]


def read_license(device: Device) -> dict[str, Any] | None:
    """The licence of the GPU; ``None`` where the driver requires none, as on bare metal, or does not report it."""
    found = Features()
    if not device.fill(("nvmlDeviceGetGridLicensableFeatures_v4",), (), found) or not found.supported:
        return None
    features = list(found.features)[: found.count]
    # A whole GPU has several features, of which the licence daemon enables one.
    chosen = [feature for feature in features if feature.enabled] or features
    return _build_license(chosen[0]) if chosen else None


def _build_license(feature: Any) -> dict[str, Any]:
    return {
        "product": feature.product.decode("utf-8", "replace") or None,
        "licensed": bool(feature.licensed),
        "expires": _format_expiry(feature.expiry) if feature.licensed else None,
    }


def _format_expiry(expiry: Any) -> str | None:
    """The time as in ISO 8601; ``None`` for a permanent licence, or an unknown time."""
    if expiry.status != EXPIRY_VALID:
        return None
    date = f"{expiry.year:04}-{expiry.month:02}-{expiry.day:02}"
    return f"{date}T{expiry.hour:02}:{expiry.minute:02}:{expiry.second:02}Z"
