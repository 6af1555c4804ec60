"""Writes results whole or not at all: under another name first."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from polyop.batch import pictures
from polyop.batch.pictures import Format

_PARTIAL = ".partial-"  # in a file's name until the file is whole; then the machine and the process that write it


class WholeFile:
    """A file that has its name once it is whole. Several processes may write the same: the last wins."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self.partial = path.with_name(f".{path.name}{_PARTIAL}{os.uname().nodename}-{os.getpid()}")

    def commit(self) -> None:
        os.replace(self.partial, self._path)

    def discard(self) -> None:
        with suppress(FileNotFoundError):
            self.partial.unlink()


def write_file(path: Path, data: bytes) -> None:
    file = WholeFile(path)
    try:
        file.partial.write_bytes(data)
        file.commit()
    finally:
        file.discard()


def sweep(folder: Path, everywhere: bool = False) -> None:
    """Removes what processes that were killed left half-written: those of this machine, or of all machines once none writes."""
    for place, _, names in os.walk(folder):
        for name in names:
            _, partial, writer = name.partition(_PARTIAL)
            if not partial or not name.startswith("."):
                continue
            machine, _, process = writer.rpartition("-")
            if everywhere or (machine == os.uname().nodename and not Path("/proc", process).exists()):
                with suppress(FileNotFoundError):
                    Path(place, name).unlink()


def encoded(results: Mapping[str, np.ndarray], format: str, pictures_as: Format) -> bytes:
    """A file's content. All formats but npz hold one output. Raises SampleError for what is no picture."""
    buffer = io.BytesIO()
    if format == "npz":
        np.savez(buffer, **results)
        return buffer.getvalue()
    ((name, array),) = results.items()
    if format == "npy":
        np.save(buffer, array)
        return buffer.getvalue()
    return pictures.encode(pictures.from_tensor(array, pictures_as, name), format)


class Writer(Protocol):
    """Writes what comes of a shard's samples, in their order."""

    def add(self, index: int, key: str, result: Any) -> None: ...
    def close(self) -> None: ...
    def abandon(self) -> None: ...


class TarWriter:
    """Files as a WebDataset shard: KEY.npz, KEY.png, …"""

    def __init__(self, path: Path, format: str) -> None:
        self._tar, self._format = tarfile.open(path, "w"), format  # noqa: SIM115 (`close` closes it)

    def add(self, index: int, key: str, result: bytes) -> None:
        member = tarfile.TarInfo(f"{key}.{self._format}")
        member.size = len(result)
        self._tar.addfile(member, io.BytesIO(result))

    def close(self) -> None:
        self._tar.close()

    abandon = close


class Shard:
    """The results of a shard, which come in any order and are written in the samples'."""

    def __init__(self, file: WholeFile, writer: Writer) -> None:
        self._file, self._writer = file, writer
        self._waiting: dict[int, tuple[str, Any]] = {}
        self._next = 0
        self.count: int | None = None  # of samples, once it is known

    def put(self, index: int, key: str, result: Any) -> None:
        """None: this sample has no result, and will have none."""
        self._waiting[index] = (key, result)
        while self._next in self._waiting:
            key, result = self._waiting.pop(self._next)
            if result is not None:
                self._writer.add(self._next, key, result)
            self._next += 1

    @property
    def is_complete(self) -> bool:
        return self.count == self._next

    def close(self) -> None:
        self._writer.close()
        self._file.commit()

    def abandon(self) -> None:
        self._writer.abandon()
        self._file.discard()
