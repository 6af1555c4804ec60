# SPDX-License-Identifier: Apache-2.0
"""The memory that the contents of files may take: a small file may claim contents of any size."""

from __future__ import annotations

from polyop.batch.errors import UnreadableError

FREE, PER_BYTE = 1 << 28, 64
"""Bytes of memory by default: for a file, and for each of its bytes. As in cli/base/file.h."""


class Memory:
    """Counts the memory for files that are read together."""

    def __init__(self, limit: int = 0) -> None:
        """limit: in bytes; 0: the default."""
        self._limit = limit
        self._taken, self._allowed = 0, FREE

    def take(self, source: str, needed: int, size: int) -> None:
        """Call it before the contents of a file of `size` bytes are allocated. Raises UnreadableError."""
        self._taken += needed
        self._allowed += PER_BYTE * size
        allowed = self._limit or self._allowed
        if self._taken > allowed:
            raise UnreadableError(
                f"'{source}': expected contents of at most {allowed / 1e6:.1f} MB, got {self._taken / 1e6:.1f} MB",
                "--memory GB, or memory= of the function, allows more",
            )
