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
from types import ModuleType

from polyop import __version__
from polyop._commands import interrupts, terminal
from polyop._commands.arguments import Parser, nearest
from polyop._commands.errors import CommandError, ExitCode, report, usage
from polyop._system import program_file
from polyop.errors import INSTALL

COMMANDS = ("batch", "triton", "attach", "optimize", "convert", "portable", "doctor")
PROGRAM_COMMANDS = ("run", "inspect", "verify", "bench", "ops", "new", "test", "cmake-dir", "completion", "man", "help")
"""Those of the program `polyop`, which is C++."""


def main(words: Sequence[str] | None = None) -> int:
    """Runs a command and returns the exit code."""
    words = list(sys.argv[1:] if words is None else words)
    terminal.escape_output()
    needs = ""
    try:
        if not words or words[0] in ("-h", "--help"):
            print(_help())
            return ExitCode.OK if words else ExitCode.USAGE
        if words[0] == "--version":
            print(f"polyop {__version__}")
            return ExitCode.OK
        if words[0] in PROGRAM_COMMANDS or words[0] == "--licenses":
            _become_program(words)
        if words[0] not in COMMANDS:
            raise _unknown(words[0])
        command = _module(words[0])
        needs = command.NEEDS
        parser = Parser(f"polyop {words[0]}", command.SUMMARY, command.FOOTER)
        command.add_arguments(parser)
        code = command.run(parser.parse(words[1:]))
        sys.stdout.flush()  # so that a closed pipe is an error here
        return code
    except (Exception, KeyboardInterrupt) as error:
        return report(interrupts.cause(error), needs)


def _module(name: str) -> ModuleType:
    return import_module(f"polyop._commands.{name}")


def _unknown(word: str) -> Exception:
    kind, known = (
        ("option", ["--help", "--version"]) if word.startswith("-") else ("command", COMMANDS + PROGRAM_COMMANDS)
    )
    near = nearest(word, known)
    suggestion = f"did you mean '{near}'? " if near else ""
    return usage(f"polyop has no {kind} '{word}'", f"{suggestion}`python -m polyop --help` lists all")


def _help() -> str:
    commands = "\n".join(f"  {name:<10}{_module(name).SUMMARY}" for name in COMMANDS)
    program = find_program()
    where = f"the program {program}" if program else "the program polyop, which is not installed here"
    return f"""Usage: python -m polyop COMMAND …

Commands:
{commands}

Commands of {where}:
  {", ".join(PROGRAM_COMMANDS)}

`python -m polyop COMMAND --help` describes a command."""


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
    if program is None:
        raise CommandError(
            ExitCode.NO_RUNTIME,
            f"`polyop {words[0]}` is a command of the program polyop, which is neither in the environment of "
            f"{sys.executable} nor on PATH",
            INSTALL,
        )
    sys.stdout.flush()
    os.execv(program, [str(program), *words])
