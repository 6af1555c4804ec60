"""Files that have their names once they are whole: until then they lie beside, under names that say who writes them."""

from __future__ import annotations

import os
import shutil
import threading
from contextlib import suppress
from pathlib import Path

_PARTIAL = (
    ".partial-"  # in a file's name until the file is whole; then the machine, the process and the thread that write it
)


class WholeFile:
    """A file that has its name once it is whole: by `commit`, or by the end of a `with`, which gives the path to write to and
    removes what was written if there is an error. Several may write the same file: the last wins."""

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


def write_whole(path: Path, data: bytes) -> None:
    with WholeFile(path) as partial:
        partial.write_bytes(data)


def sweep(folder: Path, *, deep: bool = True, everywhere: bool = False) -> None:
    """Removes what processes that were killed left half-written in a folder: those of this machine, or of all machines once
    none writes. deep: in folders within, too."""
    for place, folders, names in os.walk(folder):
        for name in filter(lambda n: _is_left(n, everywhere), [*names, *folders]):
            left = Path(place, name)
            with suppress(FileNotFoundError):
                shutil.rmtree(left) if left.is_dir() else left.unlink()
        if not deep:
            return


def _is_left(name: str, everywhere: bool) -> bool:
    _, partial, writer = name.partition(_PARTIAL)
    if not partial or not name.startswith("."):
        return False
    machine, _, process = writer.rpartition("-")
    return everywhere or (machine == os.uname().nodename and not Path("/proc", process.partition(".")[0]).exists())
