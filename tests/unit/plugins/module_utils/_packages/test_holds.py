# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Holds of others and of our own."""

from __future__ import annotations

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.request import PackageError, Request
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._packages.host import Host

NAMES = ("toolkit", "base")


@pytest.mark.parametrize(
    "request_", [Request(NAMES, present=False), Request(NAMES, version="2.0")], ids=["absent", "version"]
)
@pytest.mark.parametrize("check_mode", [False, True])
def test_somebody_elses_hold_is_respected(request_: Request, check_mode: bool) -> None:
    host = Host("apt", toolkit="1.0-1", base="1.0-1")
    host.answer("apt-mark showhold", (0, "base\n", ""))
    with pytest.raises(PackageError, match=r"^Cannot change base, .*hold.*\(apt-mark unhold base\)"):
        host.apply(request_, check_mode)
    assert host.calls == ["apt-mark showhold"]


def test_a_hold_of_our_own_is_no_hindrance() -> None:
    host = Host("apt", toolkit="1.0-1")
    host.makes.update({" install ": {"toolkit": "2.0-1"}, " purge ": {"toolkit": None}})
    host.apply(Request(("toolkit",), version="2.0", own_holds=frozenset({"toolkit"})))
    host.apply(Request(("toolkit",), present=False, own_holds=frozenset({"toolkit"})))
    changing = [call for call in host.calls if not call.endswith("update")]
    assert len(changing) == 4
    # It would stop at a hold that is let go only when it is meant; the others would not stop at somebody else's.
    assert [call for call in changing if "--allow-change-held-packages" in call] == [
        call for call in changing if "--simulate" in call
    ]


def test_what_is_not_installed_has_no_hold() -> None:
    host = Host("apt")
    host.makes[" install "] = {"toolkit": "1.0-1"}
    host.apply(Request(("toolkit",)))
    assert not [call for call in host.changing if "hold" in call or "held" in call]


# What apt 2.6 says.
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
def test_a_hold_that_apt_stops_at_is_named(output: str, errors: str, held: str) -> None:
    host = Host("apt", libtoolkit="1.0-1", other="1.0-1")
    host.answer(" install ", (100, output, errors))
    host.answer("apt-mark showhold", (0, f"{held}\nour-own\n", ""))
    with pytest.raises(PackageError) as caught:
        host.apply(Request(("toolkit",), version="2.0", own_holds=frozenset({"our-own", "toolkit"})))
    if held == "libtoolkit":
        assert str(caught.value).startswith(
            "Cannot change libtoolkit, because somebody put a hold on it: let it go (apt-mark"
        )
    else:
        assert str(caught.value).startswith(f"apt-get failed for toolkit ({errors.rstrip('.')}): ")
    assert (caught.value.details["stdout"], caught.value.details["stderr"]) == (output, errors)


def test_holds_are_not_blamed_for_another_failure() -> None:
    host = Host("apt")
    host.answer(" install ", (100, "", "E: Unable to locate package toolkit; there is libtoolkit"))
    host.answer("apt-mark showhold", (0, "libtoolkit\n", ""))
    with pytest.raises(PackageError, match=r"^apt-get failed for toolkit \(E: Unable to locate"):
        host.apply(Request(("toolkit",)))
