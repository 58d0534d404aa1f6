# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides whether a run may change a node: acquire its lease, renew it, take it over, or be refused.

A lease names its holder, since when it holds the lease, and until when. All times of one lease are by one clock: that of the API
server for Leases, that of the node for its lock file.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import Collection

ACQUIRE, RENEW, TAKE_OVER, REFUSE = "acquire", "renew", "take_over", "refuse"

# Kubernetes writes microseconds into a Lease, some clients write none.
_FORMATS = ("%Y-%m-%dT%H:%M:%S.%fZ", "%Y-%m-%dT%H:%M:%SZ")
_NEVER = datetime(1970, 1, 1, tzinfo=timezone.utc)
# A holder's name is shown in messages.
_LONGEST_NAME = 100


@dataclass(frozen=True)
class Held:
    """A lease: its holder (USER@HOST/RUN), since when, and for how many seconds from its last renewal; times are in UTC."""

    holder: str
    since: datetime
    renewed: datetime
    seconds: int

    @property
    def expires(self) -> datetime:
        """Return when another run may take it over."""
        return self.renewed + timedelta(seconds=self.seconds)


@dataclass(frozen=True)
class Request:
    """A run that needs a lease for some seconds; the runs in ended exist no more."""

    holder: str
    seconds: int
    take_over: bool = False
    ended: Collection[str] = ()


@dataclass(frozen=True)
class Verdict:
    """What the run may do, the lease as it was found, and the lease afterwards (as found after a refusal)."""

    action: str
    before: Held | None
    after: Held | None


def decide(before: Held | None, request: Request, now: datetime) -> Verdict:
    """Return what the run may do with the lease, by the clock of the lease."""
    action = _choose(before, request, now)
    if action == REFUSE:
        return Verdict(action, before, before)
    after = Held(request.holder, now, now, request.seconds)
    return Verdict(action, before, replace(after, since=before.since) if before and action == RENEW else after)


def _choose(before: Held | None, request: Request, now: datetime) -> str:
    if before is None or not before.holder:
        return ACQUIRE
    if before.holder == request.holder:
        return RENEW
    if request.take_over or before.holder in request.ended or before.expires <= now:
        return TAKE_OVER
    return REFUSE


def may_release(before: Held | None, holder: str) -> bool:
    """Return whether the run holds the lease."""
    return before is not None and before.holder == holder


def describe_refusal(subject: str, held: Held) -> str:
    """Return the sentence for a run that is refused; *subject* is what the lease is for."""
    return (
        f"another run changes {subject}: that of {name_holder(held.holder)}, since {format_time(held.since)}; wait until it ends, or, if it "
        f"was interrupted, set gpu_take_over to true, or wait until {format_time(held.expires)}, when its lease expires"
    )


def describe_take_over(subject: str, held: Held) -> str:
    """Return the sentence about a lease that was taken over."""
    return (
        f"The lease of {subject} was taken over from {name_holder(held.holder)}, whose run had it since {format_time(held.since)} and did not "
        "release it; this run resumes."
    )


def name_holder(holder: str) -> str:
    """Return USER@HOST for a message, without what a terminal would interpret."""
    return (
        "".join(letter for letter in holder.partition("/")[0] if letter.isprintable())[:_LONGEST_NAME]
        or "an unknown user"
    )


def format_time(time: datetime) -> str:
    """Return the time for a message: 2026-08-23T07:00:00Z."""
    return time.strftime(_FORMATS[1])


def encode_time(time: datetime) -> str:
    """Return the time as a Lease has it, with microseconds."""
    return time.strftime(_FORMATS[0])


def decode_time(text: object) -> datetime:
    """Read what encode_time returns; what cannot be read is the year 1970, so that the lease has expired."""
    for each in _FORMATS:
        try:
            return datetime.strptime(str(text), each).replace(tzinfo=timezone.utc)
        except ValueError:
            continue
    return _NEVER
