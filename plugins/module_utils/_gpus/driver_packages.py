# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver packages of AMD and Intel by distribution and release, as data from their documentation.

Sources: https://github.com/ROCm/amdgpu-docs (30.10.2) and https://dgpu-docs.intel.com (LTS release 2350), read in 2026.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Iterable, Mapping, Sequence

from .._compatibility.versions import parse_version
from .drivers import DRIVERS, find_support

PROCESSOR = "x86_64"
#: How users call the distributions whose names Ansible shortens.
NAMES = {"RedHat": "RHEL", "OracleLinux": "Oracle Linux", "Rocky": "Rocky Linux"}


@dataclass(frozen=True)
class Platform:
    """The repository of one distribution. In *url* and *suite*, {version} is the host's version, {release} that of the driver."""

    distribution: str
    #: What the host's version begins with, in whole numbers.
    version: str
    url: str
    suite: str = ""
    #: The release where none is requested.
    release: str = ""


@dataclass(frozen=True)
class Packages:
    """The packages of one vendor: those in the driver's version, and those with versions of their own."""

    names: tuple[str, ...]
    others: tuple[str, ...]
    key_url: str
    component: str
    platforms: tuple[Platform, ...]
    #: Distributions that load these modules only with allow_unsupported_modules.
    unsupported_on: tuple[str, ...] = ()
    #: The first release that supports a GPU, by its PCI device id.
    releases: Mapping[str, str] = field(default_factory=dict)


_AMD = "https://repo.radeon.com/amdgpu/{release}"
_INTEL = "https://repositories.intel.com/gpu"

PACKAGES: dict[str, Packages] = {
    "amd": Packages(
        names=("amdgpu-dkms", "amdgpu-dkms-firmware"),
        others=(),
        key_url="https://repo.radeon.com/rocm/rocm.gpg.key",
        component="main",
        platforms=(
            # Debian has the packages of Ubuntu.
            Platform("Debian", "12", f"{_AMD}/ubuntu", "jammy"),
            Platform("Debian", "13", f"{_AMD}/ubuntu", "noble"),
            Platform("Ubuntu", "22.04", f"{_AMD}/ubuntu", "jammy"),
            Platform("Ubuntu", "24.04", f"{_AMD}/ubuntu", "noble"),
            *(
                Platform(name, version, f"{_AMD}/el/{path}/main/x86_64/")
                for name in ("RedHat", "OracleLinux")
                # Only for release 9, the path has the minor version.
                for version, path in (("8", "8"), ("9", "{version}"), ("10", "10"))
            ),
            Platform("Rocky", "9", f"{_AMD}/el/{{version}}/main/x86_64/"),
            Platform("SLES", "15.7", f"{_AMD}/sle/{{version}}/main/x86_64/"),
        ),
        releases={"75a8": "31.40", "7551": "31.40"},
    ),
    "intel": Packages(
        names=("intel-i915-dkms",),
        others=("intel-fw-gpu", "flex", "bison"),
        key_url=f"{_INTEL}/intel-graphics.key",
        component="unified",
        platforms=(
            Platform("Ubuntu", "22.04", f"{_INTEL}/ubuntu", "jammy{release}", "lts/2350"),
            Platform("Ubuntu", "24.04", f"{_INTEL}/ubuntu", "noble{release}", "rolling"),
            *(
                Platform("RedHat", version, f"{_INTEL}/rhel/{{version}}{{release}}/unified/", release="lts/2350")
                for version in ("8", "9")
            ),
            *(
                Platform("SLES", f"15.{pack}", f"{_INTEL}/sles/15sp{pack}{{release}}/unified/", release="lts/2350")
                for pack in (4, 5)
            ),
        ),
        unsupported_on=("SLES",),
    ),
}
#: Intel's release without a folder of its own.
ROLLING = "rolling"


def plan_packages(
    vendor: str, host: Mapping[str, str], release: str = "", devices: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the packages of a vendor's driver for a host, or in ``problem`` why there are none.

    *host* has distribution, version, architecture and kernel; *devices* are PCI device ids. The packages of the kernel's headers are not included.
    """
    driver, packages = DRIVERS[vendor], PACKAGES[vendor]
    platform = _find_platform(packages.platforms, host)
    if platform is None or host["architecture"] != PROCESSOR:
        place = f"{NAMES.get(host['distribution'], host['distribution'])} {host['version']} on {host['architecture']}"
        return {
            "problem": f"{driver.title} has no driver packages for {place}, only for {_list_platforms(packages.platforms)} on {PROCESSOR}; set "
            f"{driver.role}_source to distribution, or use one of these."
        }
    problem = _find_old_release(vendor, release, devices)
    if problem:
        return {"problem": problem}
    chosen = release or platform.release
    # Intel's releases are folders, AMD's are always there.
    folder = chosen if vendor == "amd" else "" if chosen == ROLLING else f"/{chosen}"
    values = {"version": host["version"], "release": folder}
    repository: dict[str, Any] = {"url": platform.url.format(**values), "key_url": packages.key_url}
    if platform.suite:
        repository.update(suite=platform.suite.format(**values), components=[packages.component])
    else:
        repository["signed"] = "packages"
    extra = [f"linux-modules-extra-{host['kernel']}"] if platform.distribution == "Ubuntu" else []
    return {
        "problem": "",
        "packages": list(packages.names),
        "dependencies": [*packages.others, *extra],
        "repository": repository,
        "unsupported_modules": platform.distribution in packages.unsupported_on,
    }


def _find_platform(platforms: Sequence[Platform], host: Mapping[str, str]) -> Platform | None:
    """Return the row of the host's distribution and version."""
    return next(
        (
            row
            for row in platforms
            if row.distribution == host["distribution"] and f"{host['version']}.".startswith(f"{row.version}.")
        ),
        None,
    )


def _find_old_release(vendor: str, release: str, devices: Iterable[str]) -> str:
    """Return why a release does not support the GPUs; empty if it does, or if it is not a number."""
    driver, known = DRIVERS[vendor], PACKAGES[vendor].releases
    for device, first in ((each, known[each]) for each in devices if each in known):
        if release.replace(".", "").isdigit() and parse_version(release) < parse_version(first):
            support = find_support(vendor, device)
            return (
                f"GPU {device}{f' ({support.name})' if support else ''} needs {driver.title}'s driver packages of release {first} or newer, and "
                f"{driver.role}_release is {release}; set a newer one."
            )
    return ""


def _list_platforms(platforms: Sequence[Platform]) -> str:
    """Return the distributions with their versions, as text."""
    versions: dict[str, list[str]] = {}
    for row in platforms:
        versions.setdefault(NAMES.get(row.distribution, row.distribution), []).append(row.version)
    return "; ".join(f"{name} {', '.join(found)}" for name, found in sorted(versions.items()))
