# SPDX-License-Identifier: Apache-2.0
"""`python -m polyop COMMAND …`."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from polyop._base.system import program_file
from polyop._commands import interrupts, terminal
from polyop._commands.arguments import Parser
from polyop._commands.errors import CommandError, ExitCode, report
from polyop.errors import INSTALL

COMMANDS = ("batch", "triton", "attach", "optimize", "convert", "portable", "doctor")
"""Those in Python. The program `polyop` has the others, and lists and explains all."""
_BECAME = "POLYOP_BECAME_PROGRAM"


def main(words: Sequence[str] | None = None) -> int:
    """Runs a command and returns the exit code."""
    words = list(sys.argv[1:] if words is None else words)
    terminal.escape_output()
    needs = ""
    try:
        if not words or words[0] not in COMMANDS:
            _become_program(words)
        command = import_module(f"polyop._commands.{words[0]}")
        needs = command.NEEDS
        parser = Parser(f"polyop {words[0]}", command.SUMMARY, command.FOOTER)
        command.add_arguments(parser)
        code = command.run(parser.parse(words[1:]))
        sys.stdout.flush()  # so that a closed pipe is an error here
        return code
    except (Exception, KeyboardInterrupt) as error:
        return report(interrupts.cause(error), needs)


def find_program() -> Path | None:
    """Returns the path of the program `polyop`: of this Python's environment, else on PATH."""
    for folder in (Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))):
        if os.access(folder / program_file("polyop"), os.X_OK):
            return folder / program_file("polyop")
    found = shutil.which("polyop")
    return Path(found) if found and Path(found).is_absolute() else None  # relative: in the current folder


def _become_program(words: list[str]) -> None:
    """Replaces this process by the program. Raises CommandError if it is not installed."""
    program = find_program()
    already = os.environ.get(_BECAME) == str(os.getpid())  # a program of another version has handed the command back
    if program is None or already:
        raise CommandError(
            ExitCode.NO_RUNTIME,
            f"expected a command out of {', '.join(COMMANDS)}, or the program polyop, which has the others and is neither "
            f"in the environment of {sys.executable} nor on PATH; got '{' '.join(words[:1])}'",
            INSTALL,
        )
    sys.stdout.flush()
    os.environ[_BECAME] = str(os.getpid())
    os.execv(program, [str(program), *words])
