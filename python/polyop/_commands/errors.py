# SPDX-License-Identifier: Apache-2.0
"""Exit codes, and the text of errors: as those of the program, which `polyop --help` lists."""

from __future__ import annotations

import difflib
import os
import sys
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from polyop._commands import terminal
from polyop.errors import FileError, MissingRuntimeError, PolyopError

_UNKNOWN_OPERATOR = ("is not a registered function/op", "No Op registered for")
"""ONNX Runtime's messages about a node that nobody provides."""


class ExitCode(IntEnum):
    """As in cli/base/failure.h."""

    OK = 0
    FAILED = 1  # the model failed, or differs
    USAGE = 2  # the command line is wrong
    BAD_FILE = 3  # a file is missing, damaged or of the wrong kind
    NOT_PROVIDED = 4  # the model needs operators that nobody provides
    NO_RUNTIME = 5  # a runtime or a package is missing or too old
    INTERRUPTED = 130  # as in shells
    CLOSED_PIPE = 141  # as in shells; nobody reads the output


class CommandError(PolyopError):
    """An error of a command, with its exit code."""

    def __init__(self, code: ExitCode, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.code = code


def usage(message: str, hint: str = "") -> CommandError:
    """Returns an error of the command line."""
    return CommandError(ExitCode.USAGE, message, hint)


def nearest(word: str, candidates: Iterable[str], least: float = 0.6) -> str:
    """Returns the candidate that is most like the word, ignoring case, or "" if none has this ratio of likeness."""
    lower = {candidate.lower(): candidate for candidate in candidates}
    return next((lower[found] for found in difflib.get_close_matches(word.lower(), lower, 1, least)), "")


def suggestion(word: str, candidates: Iterable[str]) -> str:
    """Returns "did you mean 'CANDIDATE'? " or ""."""
    near = nearest(word, candidates)
    return f"did you mean '{near}'? " if near else ""


@dataclass(frozen=True)
class Description:
    """The text of an error and its exit code."""

    code: ExitCode
    message: str
    hint: str = ""


def describe(error: BaseException, needs: str = "") -> Description:
    """Maps an exception to its text, as one line, and its exit code. `needs` is the hint about a missing package."""
    found = _describe(error, needs)
    return Description(found.code, " ".join(found.message.split()), " ".join(found.hint.split()))


def _describe(error: BaseException, needs: str) -> Description:
    hint = getattr(error, "hint", "")
    if isinstance(error, CommandError):
        return Description(error.code, str(error), hint)
    if isinstance(error, KeyboardInterrupt):
        return Description(ExitCode.INTERRUPTED, "interrupted")
    if isinstance(error, BrokenPipeError):
        return Description(ExitCode.CLOSED_PIPE, "nobody reads the output")
    if isinstance(error, FileError):
        return Description(ExitCode.BAD_FILE, str(error), hint)
    if isinstance(error, MissingRuntimeError):
        return Description(ExitCode.NO_RUNTIME, str(error), hint)
    if isinstance(error, PolyopError):
        unknown = any(text in str(error) for text in _UNKNOWN_OPERATOR)
        return Description(ExitCode.NOT_PROVIDED if unknown else ExitCode.FAILED, str(error), hint)
    if isinstance(error, ModuleNotFoundError) and error.name:
        return Description(ExitCode.NO_RUNTIME, f"the package '{error.name}' is not installed", needs)
    if isinstance(error, ImportError):
        return Description(ExitCode.NO_RUNTIME, str(error), needs)
    if isinstance(error, OSError) and error.filename is not None:
        return Description(ExitCode.BAD_FILE, f"'{error.filename}': {error.strerror}")
    if isinstance(error, OSError):
        return Description(ExitCode.BAD_FILE, str(error))
    if isinstance(error, MemoryError):
        return Description(ExitCode.FAILED, "out of memory")
    return Description(
        ExitCode.FAILED,
        f"{type(error).__name__}: {error}".removesuffix(": "),
        "POLYOP_DEBUG=1 in the environment prints the traceback",
    )


def report(error: BaseException, needs: str = "") -> ExitCode:
    """Prints an error on stderr and returns the exit code."""
    if os.environ.get("POLYOP_DEBUG") == "1":
        traceback.print_exception(error)
    description = describe(error, needs)
    if description.code == ExitCode.CLOSED_PIPE:  # like programs that SIGPIPE ends; the interpreter flushes at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return description.code
    if description.code == ExitCode.INTERRUPTED:
        print(f"polyop: {description.message}", file=sys.stderr)
        return description.code
    print(f"{terminal.red_bold('polyop: error:', sys.stderr)} {description.message}", file=sys.stderr)
    if description.hint:
        print(f"  hint: {description.hint}", file=sys.stderr)
    return description.code
