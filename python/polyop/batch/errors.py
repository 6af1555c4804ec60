# SPDX-License-Identifier: Apache-2.0
"""Errors that end a batch, and errors of one sample."""

from __future__ import annotations

from polyop.errors import FileError, PolyopError, one_line


class BatchError(PolyopError, RuntimeError):
    """The batch cannot run: the model, an option or the folder of results is invalid."""


class OutputError(BatchError, FileError):
    """Results cannot be written."""

    def __init__(self, where: object, error: OSError) -> None:
        super().__init__(
            f"results cannot be written to '{error.filename or where}': {error.strerror or error}",
            "choose another folder, or make room, and run the same command again",
        )


class InputFileError(BatchError, FileError):
    """There are no input files."""


class SampleError(PolyopError, ValueError):
    """One input is unreadable or does not fit the model. Others are not affected."""


class UnreadableError(SampleError):
    """A file is damaged, of another kind, or too large."""


def describe_error(error: BaseException) -> str:
    """Returns an error's text as one line, with the type of errors that are not polyop's."""
    text = one_line(error, 600)
    if isinstance(error, SampleError) and error.hint:
        return f"{text}; {error.hint}"
    if isinstance(error, PolyopError) or text == type(error).__name__:
        return text
    return f"{type(error).__name__}: {text}"
