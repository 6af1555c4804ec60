"""Atomic writes: a file gets its name when it is complete. Until then it has a name that identifies its writer."""

from __future__ import annotations

import os
import shutil
import threading
from contextlib import suppress
from pathlib import Path

_PARTIAL = ".partial-"  # in the name of an incomplete file, before the machine, process and thread that write it


class AtomicFile:
    """A file that appears under its name when it is complete: on `commit`, or at the end of a `with` block.

    The `with` block yields the path to write to. An error removes that file. If several write the same file, the last
    one wins.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        writer = f"{os.uname().nodename}-{os.getpid()}.{threading.get_native_id()}"
        self.partial = path.with_name(f".{path.name}{_PARTIAL}{writer}")

    def commit(self) -> None:
        os.replace(self.partial, self._path)

    def discard(self) -> None:
        with suppress(FileNotFoundError):
            self.partial.unlink()

    def __enter__(self) -> Path:
        return self.partial

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        try:
            if error is None:
                self.commit()
        finally:
            self.discard()


def write_atomically(path: Path, data: bytes) -> None:
    """Writes a file; nobody ever sees a part of it."""
    with AtomicFile(path) as partial:
        partial.write_bytes(data)


def remove_stale(folder: Path, *, deep: bool = True, everywhere: bool = False) -> None:
    """Removes the incomplete files that killed processes left in a folder.

    deep: also in subfolders.
    everywhere: also those of other machines. Requires: nobody writes to the folder.
    """
    for root, folders, names in os.walk(folder):
        for name in filter(lambda n: _is_stale(n, everywhere), [*names, *folders]):
            stale = Path(root, name)
            with suppress(FileNotFoundError):
                shutil.rmtree(stale) if stale.is_dir() else stale.unlink()
        if not deep:
            return


def _is_stale(name: str, everywhere: bool) -> bool:
    _, partial, writer = name.partition(_PARTIAL)
    if not partial or not name.startswith("."):
        return False
    machine, _, process = writer.rpartition("-")
    return everywhere or (machine == os.uname().nodename and not Path("/proc", process.partition(".")[0]).exists())
