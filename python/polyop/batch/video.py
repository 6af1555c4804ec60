# SPDX-License-Identifier: Apache-2.0
"""Frames of videos, by OpenCV."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, TracebackType

import numpy as np

from polyop._onnx.atomic_file import AtomicFile
from polyop.batch.errors import BatchError, SampleError

_USUAL_RATE = 25.0  # of files that do not state theirs


def _opencv(path: Path) -> ModuleType:
    try:
        import cv2
    except ImportError:
        raise BatchError(
            f"'{path}': expected OpenCV for videos, it is not installed", "pip install opencv-python-headless"
        ) from None
    return cv2


def key(index: int) -> str:
    """Returns the name of a frame's results."""
    return f"{index:06}"


def frames(path: Path) -> Iterator[np.ndarray]:
    """Yields the pixels [H, W, 3] of the frames, RGB. Raises SampleError if the file is not a readable video."""
    cv2 = _opencv(path)
    capture = cv2.VideoCapture(str(path))
    try:
        read, frame = capture.read()
        if not read:
            raise SampleError(f"'{path}' is not a readable video")
        while read:
            yield frame[..., ::-1]
            read, frame = capture.read()
    finally:
        capture.release()


def rate(path: Path) -> float:
    """Returns the frames per second."""
    cv2 = _opencv(path)
    capture = cv2.VideoCapture(str(path))
    try:
        return float(capture.get(cv2.CAP_PROP_FPS)) or _USUAL_RATE
    finally:
        capture.release()


class VideoWriter:
    """Writes an .mp4 file atomically: within `with`, `add` takes frames [H, W, 3], RGB, of one size."""

    def __init__(self, path: Path, rate: float) -> None:
        self._cv2, self._path, self._rate = _opencv(path), path, rate
        self._file = AtomicFile(path)
        self._partial = self._file.partial.with_name(f"{self._file.partial.name}.mp4")  # OpenCV requires the extension
        self._writer: object = None

    def __enter__(self) -> VideoWriter:
        return self

    def add(self, frame: np.ndarray) -> None:
        if self._writer is None:
            height, width = frame.shape[:2]
            code = self._cv2.VideoWriter.fourcc(*"mp4v")
            self._writer = self._cv2.VideoWriter(str(self._partial), code, self._rate, (width, height))
        self._writer.write(np.ascontiguousarray(frame[..., ::-1]))  # type: ignore[attr-defined]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._writer is not None:
            self._writer.release()  # type: ignore[attr-defined]
        if error is None and self._partial.exists():
            self._partial.replace(self._file.partial)
            self._file.commit()
        else:
            self._partial.unlink(missing_ok=True)
            self._file.discard()
            if error is None:
                raise BatchError(f"'{self._path}' cannot be written by OpenCV")
