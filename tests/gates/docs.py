# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Guides and reference as HTML: ``python -m gates.docs`` leaves them in build/docs/html.

The reference is generated from the plugins and argument specs by antsibull-docs and never committed; the guides are in
docs/docsite/rst. Warnings of Sphinx are errors, and so are long sentences of guides and Chinese pages whose source has changed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from . import sentences, translations
from ._common import CACHE, FQCN, ROOT, collection_tree, write_empty_config

WORK = ROOT / "build" / "docs"


def tool(*command: str, cwd: str = str(ROOT), **environment: str) -> bool:
    """Run one tool and show its command; True if it succeeded."""
    print(f"$ {' '.join(command)}", flush=True)
    return subprocess.run(command, cwd=cwd, env={**os.environ, **environment}, check=False).returncode == 0


def main() -> int:
    """Lint, generate, build."""
    shutil.rmtree(WORK, ignore_errors=True)
    source = WORK / "rst"
    source.mkdir(parents=True, mode=0o755)
    # A copy: antsibull-docs reads all files of a collection's folder, and the checkout also has those of the lab.
    copy = collection_tree(CACHE / "docs", lambda path: path.parts[0] not in {"tests", "molecule"})
    collections = {"ANSIBLE_COLLECTIONS_PATH": str(CACHE / "docs"), "ANSIBLE_CONFIG": write_empty_config(WORK)}
    lint = ("--plugin-docs", "--check-extra-docs-refs", "--validate-collection-refs", "self", "--skip-rstcheck")
    succeeded = translations.main([]) == 0
    succeeded &= tool("antsibull-docs", "lint-collection-docs", *lint, str(copy), **collections)
    generate = ("--use-current", "--squash-hierarchy", "--fail-on-error", "--dest-dir", str(source), FQCN)
    succeeded &= tool("antsibull-docs", "collection", *generate, **collections)
    shutil.copy(ROOT / "docs" / "conf.py", source / "conf.py")
    shutil.copytree(ROOT / "docs" / "_static", source / "_static")
    # Guides name a picture by its place in the repository, ../../images, from the copies in rst/docsite as well.
    shutil.copytree(ROOT / "docs" / "images", WORK / "images")
    sphinx = ("--fail-on-warning", "--keep-going", "--quiet", "--jobs", "auto")
    succeeded = succeeded and tool(sys.executable, "-m", "sphinx", *sphinx, str(source), str(WORK / "html"))
    succeeded &= sentences.main() == 0
    if succeeded:
        print(f"docs: {sum(1 for _ in (WORK / 'html').rglob('*.html'))} pages in {(WORK / 'html').relative_to(ROOT)}")
    return 0 if succeeded else 1


if __name__ == "__main__":
    sys.exit(main())
