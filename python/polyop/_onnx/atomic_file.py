# SPDX-License-Identifier: Apache-2.0
"""Atomic writes: a file gets its name when it is complete. Until then it has a name that identifies its writer."""

from __future__ import annotations

import errno
import hashlib
import os
import platform
import shutil
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

from polyop._base.system import is_running, sync_file

_MAX_NAME = 255  # bytes of a file's name, on every file system of Linux
_PARTIAL = ".partial-"  # in the name of an incomplete file, before the machine, process and thread that write it


class AtomicFile:
    """A file that appears under its name when it is complete and on the disk: on `commit`, or at the end of a `with`
    block.

    The `with` block yields the path to write to. An error removes that file. If several write the same file, the last
    one wins. A link of that name is replaced, not followed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        writer = f"{platform.node()}-{os.getpid()}.{threading.get_native_id()}"
        name = path.name
        if len(os.fsencode(f".{name}{_PARTIAL}{writer}")) > _MAX_NAME:
            name = hashlib.blake2b(os.fsencode(name), digest_size=8).hexdigest()
        self.partial = path.with_name(f".{name}{_PARTIAL}{writer}")

    def commit(self) -> None:
        sync_file(str(self.partial))
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


def prepare_folder(path: Path) -> None:
    """Creates the folder of a file that will be written, and removes the incomplete files of killed processes from it.

    Call it before the work of which the file is the result. Raises OSError, which names `path`, if the file cannot be
    written.
    """
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if path.parent.exists() and not path.parent.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(prefix=".polyop-", dir=path.absolute().parent):
            pass
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    remove_stale(path.absolute().parent, deep=False)


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
    return everywhere or (machine == platform.node() and not _is_running(process.partition(".")[0]))


def _is_running(process: str) -> bool:
    return process.isdigit() and is_running(int(process))
