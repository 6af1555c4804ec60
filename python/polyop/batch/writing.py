# SPDX-License-Identifier: Apache-2.0
"""Writes results: single files, and shards, whose results arrive in any order."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from polyop._onnx.atomic_file import AtomicFile
from polyop.batch import images
from polyop.batch.images import Format


def encoded(results: Mapping[str, np.ndarray], format: str, images_as: Format) -> bytes:
    """Returns a file's content.

    Formats other than npz hold one output. Raises SampleError if a result is not an image.
    """
    buffer = io.BytesIO()
    if format == "npz":
        arrays: dict[str, Any] = dict(results)
        np.savez(buffer, **arrays)
        return buffer.getvalue()
    ((name, array),) = results.items()
    if format == "npy":
        np.save(buffer, array)
        return buffer.getvalue()
    return images.encode(images.from_tensor(array, images_as, name), format)


class Writer(Protocol):
    """Writes the results of a shard's samples, in order."""

    def add(self, index: int, key: str, result: Any) -> None: ...
    def close(self) -> None: ...
    def abandon(self) -> None: ...


class TarWriter:
    """Writes files as a WebDataset shard: KEY.npz, KEY.png, …"""

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
    """The results of a shard. They arrive in any order and are written in the order of the samples."""

    def __init__(self, file: AtomicFile, writer: Writer) -> None:
        self._file, self._writer = file, writer
        self._waiting: dict[int, tuple[str, Any, int]] = {}
        self._next = 0
        self.count: int | None = None  # of samples, once it is known

    def put(self, index: int, key: str, result: Any, size: int) -> int:
        """Adds the result of a sample, of `size` bytes; None if it has none. Returns the size of those that this
        wrote."""
        self._waiting[index] = (key, result, size)
        written = 0
        while self._next in self._waiting:
            key, result, size = self._waiting.pop(self._next)
            if result is not None:
                self._writer.add(self._next, key, result)
            self._next += 1
            written += size
        return written

    @property
    def held(self) -> int:
        """The bytes of the results that wait for others."""
        return sum(size for _, _, size in self._waiting.values())

    @property
    def is_complete(self) -> bool:
        return self.count == self._next

    def close(self) -> None:
        self._writer.close()
        self._file.commit()

    def abandon(self) -> None:
        self._writer.abandon()
        self._file.discard()
