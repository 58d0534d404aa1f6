# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Actions of a run by the state of a lease."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._lease.decide import (
    ACQUIRE,
    REFUSE,
    RENEW,
    TAKE_OVER,
    Held,
    Request,
    decide,
    decode_time,
    describe_refusal,
    describe_take_over,
    encode_time,
    may_release,
)

NOW = datetime(2026, 8, 23, 7, tzinfo=timezone.utc)
ME, OTHER = "root@one/1.2.b.3", "eve@two/7.8.c.9"


def held(holder: str = OTHER, ago: int = 10, seconds: int = 60) -> Held:
    """A lease that was acquired an hour before its last renewal, some seconds ago."""
    renewed = NOW - timedelta(seconds=ago)
    return Held(holder, renewed - timedelta(hours=1), renewed, seconds)


@pytest.mark.parametrize(
    ("before", "request_of", "action"),
    [
        (None, {}, ACQUIRE),
        (held(holder=""), {}, ACQUIRE),
        (held(holder=ME), {}, RENEW),
        (held(holder=ME, ago=3600), {}, RENEW),
        (held(), {}, REFUSE),
        (held(ago=59), {}, REFUSE),
        (held(ago=60), {}, TAKE_OVER),
        (held(ago=-3600), {}, REFUSE),
        (held(seconds=0), {}, TAKE_OVER),
        (held(), {"take_over": True}, TAKE_OVER),
        (held(), {"ended": [OTHER]}, TAKE_OVER),
        (held(), {"ended": ["eve@two/1.1.c.9"]}, REFUSE),
        (held(holder=ME), {"take_over": True}, RENEW),
    ],
)
def test_decide_by_lease_and_request(before: Held | None, request_of: dict, action: str) -> None:
    request = Request(ME, 300, **request_of)
    verdict = decide(before, request, NOW)
    assert (verdict.action, verdict.before) == (action, before)
    if action == REFUSE:
        assert verdict.after == before
        return
    assert verdict.after is not None
    assert (verdict.after.holder, verdict.after.renewed, verdict.after.seconds) == (ME, NOW, 300)
    assert verdict.after.since == (before.since if before and action == RENEW else NOW)


def test_run_that_lost_its_lease_is_refused_at_its_next_step() -> None:
    taken = decide(held(holder=ME, ago=3600), Request(OTHER, 300), NOW).after
    assert decide(taken, Request(ME, 300), NOW).action == REFUSE


def test_messages_name_user_host_times_and_remedy_without_control_characters() -> None:
    lease = held(holder="eve@\x1b[2Jtwo/7.8.c.9")
    text = describe_refusal("node w1", lease)
    assert text.startswith(
        "another run changes node w1: that of eve@[2Jtwo, since 2026-08-23T05:59:50Z; wait until it ends"
    )
    assert "set gpu_take_over to true" in text
    assert "2026-08-23T07:00:50Z, when its lease expires" in text
    assert "eve@[2Jtwo, whose run had it since 2026-08-23T05:59:50Z" in describe_take_over("node w1", lease)


@pytest.mark.parametrize("text", ["2026-08-23T07:00:00.000000Z", "2026-08-23T07:00:00Z"])
def test_decode_time_of_kubernetes_format_is_read(text: str) -> None:
    assert decode_time(text) == NOW


@pytest.mark.parametrize("text", [None, "", "yesterday", 5, "2026-08-23T07:00:00+02:00"])
def test_decode_time_of_invalid_text_is_1970(text: object) -> None:
    assert decode_time(text).year == 1970


def test_encode_time_is_decoded_without_loss() -> None:
    assert decode_time(encode_time(NOW)) == NOW


def test_may_release_is_true_only_for_the_holder() -> None:
    assert may_release(held(holder=ME), ME)
    assert not may_release(held(), ME)
    assert not may_release(None, ME)
