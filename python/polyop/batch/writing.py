"""Writes results: files of their own, and shards, whose results come in any order."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from polyop._whole_files import WholeFile
from polyop.batch import pictures
from polyop.batch.pictures import Format


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
