"""What ends a batch, and what ends one sample of it."""

from __future__ import annotations


class BatchError(RuntimeError):
    """The model, an option or the folder of results does not allow the batch."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint  # what to do


class SampleError(ValueError):
    """One input cannot be read, or does not fit the model; the others can."""


def said(error: BaseException) -> str:
    """What any error says, as one line; of other libraries' errors with their type."""
    text = " ".join(str(error).split())[:600]
    if isinstance(error, (BatchError, SampleError)):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
