# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gate of the Chinese pages: what is stale, what is not in the source, and how a comparison is recorded."""

from __future__ import annotations

import pytest
from gates import translations

ENGLISH = """
Sharing
=======

Set ``gpu_sharing_strategy`` or ``a long
message``.

.. code-block:: console

    $ ansible-playbook gpu.kubernetes.plan -i inventory.yml

    $ echo $?

``gpu_sharing_migrate`` allows it:

    .. code-block:: yaml

        a: {b: 1}
"""
CHINESE = """
.. Written against guide.rst at 000000000000

共享
====

设置 ``gpu_sharing_strategy`` 或 ``a long message``。

.. code-block:: yaml

    a: {b: 1}

.. code-block:: console

    $ ansible-playbook gpu.kubernetes.plan -i inventory.yml

    $ echo $?
"""


@pytest.fixture
def pages(tmp_path):
    """A collection with one guide in both languages, which are compared."""
    folder = tmp_path / "docs" / "docsite" / "rst"
    folder.mkdir(parents=True)
    (folder / "guide.rst").write_text(ENGLISH, encoding="utf-8")
    page = folder / "guide_zh.rst"
    page.write_text(CHINESE, encoding="utf-8")
    translations.write(page)
    return tmp_path, page


def replace(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_compared_page_has_no_problem(pages, capsys):
    root, _page = pages
    assert translations.main([], root) == 0
    assert "translations: 1 pages: ok" in capsys.readouterr().out


def test_changed_source_is_stale_until_its_page_is_named(pages, capsys):
    root, page = pages
    replace(page.with_name("guide.rst"), "Sharing\n", "Sharing GPUs\n")
    sentence = (
        "guide_zh.rst: stale, because guide.rst has changed since; translate the change, "
        "then run `python -m gates.translations --write guide_zh.rst`"
    )
    assert translations.main(["--write", "other_zh.rst"], root) == 1
    assert sentence in capsys.readouterr().err
    assert translations.main(["--write", "guide_zh.rst"], root) == 0
    assert translations.main([], root) == 0


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("a: {b: 1}", "a: {b: 2}", "code is not in guide.rst: a: {b: 2}"),
        ("``gpu_sharing_strategy``", "``gpu_sharing_way``", "gpu_sharing_way is not in guide.rst"),
        ("guide.rst", "guides.rst", "there is no guides.rst; correct the line `Written against`"),
        ("Written", "Made", "names no source; add the comment `Written against PAGE at 000000000000`"),
    ],
)
def test_difference_from_source_is_reported(pages, old, new, problem):
    _root, page = pages
    replace(page, old, new)
    assert problem in next(translations.problems(page))


def test_readme_in_markdown_is_compared(tmp_path, capsys):
    (tmp_path / "README.md").write_text("# A\n\nUse `site`.\n\n```console\n$ make `x`\n```\n", encoding="utf-8")
    page = tmp_path / "README.zh-CN.md"
    page.write_text(
        f"<!-- Written against README.md at {12 * '0'} -->\n\n用 `site`。\n\n```console\n$ make `x`\n```\n",
        encoding="utf-8",
    )
    assert translations.main([], tmp_path) == 1
    assert translations.main(["--write", page.name], tmp_path) == 0
    replace(page, "$ make `x`", "$ make y")
    assert translations.main([], tmp_path) == 1
    assert "README.zh-CN.md: code is not in README.md: $ make y" in capsys.readouterr().err


def test_two_sources_are_compared_separately(pages):
    _root, page = pages
    page.with_name("other.rst").write_text("``gpu_take_over``\n", encoding="utf-8")
    replace(page, "共享\n====\n", ".. Written against other.rst at 000000000000\n\n共享\n====\n\n``gpu_take_over``\n")
    assert [problem.split(";")[0] for problem in translations.problems(page)] == [
        "guide_zh.rst: stale, because other.rst has changed since"
    ]
