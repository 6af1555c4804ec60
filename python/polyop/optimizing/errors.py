"""What ends an optimisation."""


class OptimizeError(RuntimeError):
    """The model cannot be read, cannot run, or cannot be written."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint  # what to do


class FileError(OptimizeError):
    """A file is missing, damaged, or cannot be written."""


def said(error: BaseException) -> str:
    """What an error of another library says, as one line."""
    return " ".join(str(error).split())[:400] or type(error).__name__
