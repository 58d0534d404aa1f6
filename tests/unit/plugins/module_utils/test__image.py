# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tag and the digest of an image, and whether variables name a published image."""

from __future__ import annotations

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._image import may_be_image, split_tag

DIGEST = "sha256:" + "0a" * 32
#: The text of a variable, tag and digest.
TAGS = {
    "tag": ("v1", "v1", ""),
    "digest": (DIGEST, "", DIGEST),
    "both": (f"v1@{DIGEST}", "v1", DIGEST),
    "empty": ("", "", ""),
}


@pytest.mark.parametrize(("text", "tag", "digest"), TAGS.values(), ids=TAGS)
def test_split_tag_returns_tag_and_digest(text: str, tag: str, digest: str) -> None:
    assert split_tag(text) == (tag, digest)


PUBLISHED = "acs/extender:1.11"
#: Repository, tag or digest, and whether they may be the published image.
IMAGES = {
    "defaults": ("", "", True),
    "published": ("acs/extender", "1.11", True),
    "other tag": ("acs/extender", "own", False),
    "tag and digest": ("acs/extender", f"1.11@{DIGEST}", True),
    "other tag and digest": ("acs/extender", f"own@{DIGEST}", False),
    "digest": ("acs/extender", DIGEST, True),
    "digest in a mirror": ("mirror/of/extender/", DIGEST, True),
    "digest alone": ("", DIGEST, True),
    "digest of another repository": ("acs/own-extender", DIGEST, False),
    "published tag of a mirror": ("mirror/gpushare", "1.11", True),
}


@pytest.mark.parametrize(("repository", "tag", "expected"), IMAGES.values(), ids=IMAGES)
def test_image_of_the_published_tag_or_of_a_digest_alone_may_be_the_published_one(
    repository: str, tag: str, expected: bool
) -> None:
    assert may_be_image(repository, tag, PUBLISHED) is expected
