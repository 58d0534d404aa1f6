# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``ansible-playbook`` many times. Modules that run here run on the anvil, and the texts of templates are compiled once for all: a run that asks
an API server takes a quarter less.

For tests, a process that has imported Ansible forks one for each run. It reads one request a line, as JSON: {"arguments": [...],
"environment": {...}, "output": PATH}. It answers with the exit status.

For Molecule there is an ``ansible-playbook`` of the lab's.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import jinja2

from .anvil import Anvil, remembered

ROOT = Path(__file__).resolve().parents[2]
# By what a Jinja2 environment reads a template.
SYNTAX = (
    *(f"{part}_{end}_string" for part in ("block", "variable", "comment") for end in ("start", "end")),
    *("line_statement_prefix", "line_comment_prefix", "trim_blocks", "lstrip_blocks", "keep_trailing_newline"),
)
# The plugins that a run looks through or loads, and what it reads of their documentation; of some a class is enough.
CLASSES = ("callback", "connection", "lookup", "shell", "strategy", "vars")
KINDS = ("filter", "test", *CLASSES)
# It is ansible-playbook from its start on, but for what it calls Python.
COMMAND = """\
#!{python}
import sys
sys.path.insert(0, {tests!r})
from lab.forge import command
command({program!r}, {templates!r})
"""


@contextmanager
def commands() -> Iterator[str]:
    """A folder for PATH with an ``ansible-playbook`` that does less work; it is of use within."""
    with tempfile.TemporaryDirectory(prefix="gpu-kubernetes-") as folder:
        anvil, templates, path = Anvil(Path(folder)), Path(folder, "templates"), Path(folder, "bin", "ansible-playbook")
        templates.mkdir()
        path.parent.mkdir()
        known = {"tests": str(ROOT / "tests"), "program": anvil.program, "templates": str(templates)}
        path.write_text(COMMAND.format(python=sys.executable, **known), encoding="utf-8")
        path.chmod(0o755)
        try:
            yield str(path.parent)
        finally:
            anvil.close()


def command(program: str, templates: str) -> NoReturn:
    """Be ``ansible-playbook`` with the arguments of this process; what it calls Python is the program."""
    import ansible.cli.playbook

    sys.executable = program  # what Ansible calls ansible_playbook_python
    remember_templates(Path(templates))
    sys.exit(ansible.cli.playbook.main())


class Forge:
    """The process, seen from a test."""

    def __init__(self) -> None:
        """Start it, in the checkout and with its settings."""
        self._folder = tempfile.TemporaryDirectory(prefix="gpu-kubernetes-")
        self._anvil = Anvil(Path(self._folder.name))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "lab.forge"],
            cwd=ROOT,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])]),
                "ANSIBLE_NOCOLOR": "1",
                "ANSIBLE_FORCE_COLOR": "0",
                "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
                "ANSIBLE_PIPELINING": "1",
                "ANSIBLE_PYTHON_INTERPRETER": self._anvil.program,
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, environment: dict[str, str] | None = None) -> tuple[int, str]:
        """Be ``ansible-playbook`` with these arguments: exit status and all that it said."""
        with tempfile.NamedTemporaryFile("r", encoding="utf-8") as output:
            request = {"arguments": arguments, "environment": environment or {}, "output": output.name}
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            print(json.dumps(request), file=self._process.stdin, flush=True)
            return int(self._process.stdout.readline()), Path(output.name).read_text(encoding="utf-8")

    def close(self) -> None:
        """End it."""
        self._process.communicate()
        self._anvil.close()
        self._folder.cleanup()


def play(request: dict[str, Any]) -> NoReturn:
    """Be ``ansible-playbook`` from here on; does not return."""
    output = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, handle in ((0, nothing), (1, output), (2, output)):
        os.dup2(handle, number)
    os.environ.update(request["environment"])
    time.tzset()
    status = 1
    try:
        ansible.cli.playbook.PlaybookCLI.cli_executor(["ansible-playbook", *request["arguments"]])
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


class Late:
    """Part of a generator of code that leaves it to the code to compute what is shown."""

    def _output_child_to_const(self, node: jinja2.nodes.Expr, *more: Any) -> Any:
        if isinstance(node, jinja2.nodes.TemplateData):
            return super()._output_child_to_const(node, *more)  # type: ignore[misc]
        raise jinja2.nodes.Impossible


def remember_templates(folder: Path) -> None:
    """Have Jinja2 compile a text once, not in each process that Ansible forks for a task: about a fifth of what a run takes.

    Its own cache of bytecode is for templates of files alone. Left out are texts with a backslash, for what that means is decided elsewhere.
    Those of ansible-core 2.18 would compute what they can while they compile, whether a file is there, for one; here they do when they run, as
    those of all later ones.
    """
    compile_anew = jinja2.Environment.compile

    def compile_once(self: jinja2.Environment, source: Any, *more: Any, **named: Any) -> Any:
        if not isinstance(source, str) or "\\" in source or more or named:
            return compile_anew(self, source, *more, **named)
        if self.optimized:
            self.optimized = False
            self.code_generator_class = type("Late", (Late, self.code_generator_class), {})
        asked = [type(self).__name__, *(str(getattr(self, name)) for name in SYNTAX), source]
        text = "\0".join(asked).encode(errors="surrogatepass")
        return remembered(folder, text, lambda: compile_anew(self, source))

    jinja2.Environment.compile = compile_once  # type: ignore[method-assign]


def serve() -> None:
    """Serve until there are no more requests."""
    gc.disable()  # no run lives long enough, and to look through what it shares with this process would copy it
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            play(json.loads(line))
        _child, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    # What a run imports sooner or later.
    import ansible.cli.playbook
    import ansible.executor.playbook_executor
    import ansible.executor.task_queue_manager
    import ansible.plugins.loader
    import ansible.plugins.strategy
    import ansible.template
    from ansible.plugins.loader import init_plugin_loader

    # What Ansible calls ansible_playbook_python.
    sys.executable = os.environ["ANSIBLE_PYTHON_INTERPRETER"]
    init_plugin_loader()
    warnings.filterwarnings("ignore", "AnsibleCollectionFinder has already been configured")  # by each run again
    importlib.import_module("ansible_collections.ansible.builtin")
    for kind in KINDS:
        list(getattr(ansible.plugins.loader, f"{kind}_loader").all(class_only=kind in CLASSES))
    with tempfile.TemporaryDirectory(prefix="gpu-kubernetes-") as templates:
        remember_templates(Path(templates))
        serve()
