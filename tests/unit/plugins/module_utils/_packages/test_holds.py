# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Managed and unmanaged holds."""

from __future__ import annotations

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.request import PackageError, Request
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._packages.host import Host

NAMES = ("toolkit", "base")


@pytest.mark.parametrize(
    "request_", [Request(NAMES, present=False), Request(NAMES, version="2.0")], ids=["absent", "version"]
)
@pytest.mark.parametrize("check_mode", [False, True])
def test_unmanaged_hold_is_rejected(request_: Request, check_mode: bool) -> None:
    host = Host("apt", toolkit="1.0-1", base="1.0-1")
    host.answer("apt-mark showhold", (0, "base\n", ""))
    with pytest.raises(PackageError, match=r"^Cannot change base, .*hold.*\(apt-mark unhold base\)"):
        host.apply(request_, check_mode)
    assert host.calls == ["apt-mark showhold"]


def test_managed_hold_is_accepted() -> None:
    host = Host("apt", toolkit="1.0-1")
    host.effects.update({" install ": {"toolkit": "2.0-1"}, " purge ": {"toolkit": None}})
    host.apply(Request(("toolkit",), version="2.0", managed_holds=frozenset({"toolkit"})))
    host.apply(Request(("toolkit",), present=False, managed_holds=frozenset({"toolkit"})))
    calls = [call for call in host.calls if not call.endswith("update")]
    assert len(calls) == 4
    # Simulations ignore holds. The real commands do not, so that they stop at unmanaged ones.
    assert [call for call in calls if "--allow-change-held-packages" in call] == [
        call for call in calls if "--simulate" in call
    ]


def test_absent_package_needs_no_hold_check() -> None:
    host = Host("apt")
    host.effects[" install "] = {"toolkit": "1.0-1"}
    host.apply(Request(("toolkit",)))
    assert not [call for call in host.changing_calls if "hold" in call or "held" in call]


# Output of apt 2.6.
APT_UNMET = """The following packages have unmet dependencies:
 toolkit : Depends: libtoolkit (= 2.0-1) but 1.0-1 is to be installed
"""
APT_CHANGED = """The following held packages will be changed:
  libtoolkit
The following packages will be upgraded:
  libtoolkit toolkit
"""


@pytest.mark.parametrize(
    ("output", "errors"),
    [
        (APT_UNMET, "E: Unable to correct problems, you have held broken packages."),
        (APT_CHANGED, "E: Held packages were changed and -y was used without --allow-change-held-packages."),
    ],
)
@pytest.mark.parametrize("held", ["libtoolkit", "toolkit", "other"])
def test_error_by_hold_names_it(output: str, errors: str, held: str) -> None:
    host = Host("apt", libtoolkit="1.0-1", other="1.0-1")
    host.answer(" install ", (100, output, errors))
    host.answer("apt-mark showhold", (0, f"{held}\nmanaged\n", ""))
    with pytest.raises(PackageError) as caught:
        host.apply(Request(("toolkit",), version="2.0", managed_holds=frozenset({"managed", "toolkit"})))
    if held == "libtoolkit":
        assert str(caught.value).startswith(
            "Cannot change libtoolkit, because of an unmanaged hold: release it (apt-mark"
        )
    else:
        assert str(caught.value).startswith(f"apt-get failed for toolkit ({errors.rstrip('.')}): ")
    assert (caught.value.details["stdout"], caught.value.details["stderr"]) == (output, errors)


def test_other_error_names_no_hold() -> None:
    host = Host("apt")
    host.answer(" install ", (100, "", "E: Unable to locate package toolkit; there is libtoolkit"))
    host.answer("apt-mark showhold", (0, "libtoolkit\n", ""))
    with pytest.raises(PackageError, match=r"^apt-get failed for toolkit \(E: Unable to locate"):
        host.apply(Request(("toolkit",)))
