# SPDX-License-Identifier: Apache-2.0
"""The base class of polyop's errors."""

from __future__ import annotations

__all__ = ["FileError", "MissingLibraryError", "MissingRuntimeError", "PolyopError"]

INSTALL = "install polyop's wheel: pip install dist/polyop-*.whl, which `make wheel` builds in a checkout"
"""The advice about a missing part of polyop. polyop is not published yet; then, `pip install polyop` is the advice."""


def page(name: str) -> str:
    """Returns the address of a page of the documentation."""
    return f"https://polyop.github.io/polyop/docs/{name}.html"


class PolyopError(Exception):
    """An error that polyop reports: its text says what was expected and what was found.

    `hint` says what to do next; it is empty where there is nothing to suggest.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class FileError(PolyopError):
    """A file is missing, damaged, not writable or of the wrong kind."""


class MissingRuntimeError(PolyopError):
    """A runtime is missing or too old."""


class MissingLibraryError(MissingRuntimeError, FileNotFoundError):
    """One of polyop's libraries is not installed."""


def one_line(error: BaseException, max_length: int = 400) -> str:
    """Returns the error's text as one line of at most `max_length` characters, or its type if it has no text."""
    return " ".join(str(error).split())[:max_length] or type(error).__name__
