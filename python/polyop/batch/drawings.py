# SPDX-License-Identifier: Apache-2.0
"""Drawings, a contact sheet and a table of the detections that a batch wrote."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from polyop._onnx.atomic_file import prepare_folder, write_atomically
from polyop.attaching.drawing import Detection, detections, draw
from polyop.attaching.listing import csv_text
from polyop.batch import images, video
from polyop.batch.memory import Memory
from polyop.batch.sources import IMAGES, VIDEOS, Task

_COLUMNS, _CELL = 5, 240  # of a contact sheet; a cell is square
_TEXT_HEIGHT = 16
MAX_CELLS = 100
"""The number of photos and first frames of videos in a contact sheet."""


@dataclass
class Drawings:
    """folder: of the drawings, or None. names: of the classes. memory: as of `polyop.batch.run`."""

    output: Path
    names: Sequence[str]
    folder: Path | None = None
    memory: int = 0
    rows: list[dict[str, Any]] = field(default_factory=list)
    cells: list[tuple[str, np.ndarray]] = field(default_factory=list)

    def add(self, task: Task) -> None:
        """Draws the results of an image or a video. Raises AttachError if they are not detections."""
        if not task.is_done:  # it failed
            return
        if task.kind in IMAGES:
            pixels = images.read(task.source.read_bytes(), str(task.source), Memory(self.memory))
            with np.load(task.result) as file:
                drawing = self._drawn(str(task.source), "", pixels, detections(dict(file), self.names))
            if self.folder is not None:
                target = self._target(task, ".png")
                write_atomically(target, images.encode(drawing, "png"))
            self._add_cell(task, drawing)
        elif task.kind in VIDEOS:
            self._add_video(task)

    def _add_video(self, task: Task) -> None:
        drawn = (
            self._drawn(str(task.source), str(index), pixels, found)
            for index, (pixels, found) in enumerate(_of_video(task, self.names))
        )
        first = next(drawn, None)
        if first is None:
            return
        self._add_cell(task, first)
        if self.folder is None:
            for _ in drawn:  # for the table
                pass
            return
        with video.VideoWriter(self._target(task, ".mp4"), video.rate(task.source)) as writer:
            writer.add(first)
            for drawing in drawn:
                writer.add(drawing)

    def _drawn(self, source: str, frame: str, pixels: np.ndarray, found: Sequence[Detection]) -> np.ndarray:
        self.rows += [{"file": source, "frame": frame, **detection.as_json()} for detection in found]
        return draw(pixels, found)

    def _target(self, task: Task, extension: str) -> Path:
        assert self.folder is not None
        target = self.folder / task.result.relative_to(self.output).with_suffix(extension)
        prepare_folder(target)
        return target

    def _add_cell(self, task: Task, drawing: np.ndarray) -> None:
        if len(self.cells) < MAX_CELLS:
            image = Image.fromarray(drawing)
            image.thumbnail((_CELL, _CELL))
            self.cells.append((task.source.name, np.asarray(image)))

    def sheet(self) -> np.ndarray:
        """Returns the contact sheet: the drawings in rows, with their file names."""
        rows = -(-len(self.cells) // _COLUMNS)
        columns = min(len(self.cells), _COLUMNS)
        canvas = Image.new("RGB", (max(columns, 1) * _CELL, max(rows, 1) * (_CELL + _TEXT_HEIGHT)), "white")
        text, font = ImageDraw.Draw(canvas), ImageFont.load_default(11)
        for i, (name, pixels) in enumerate(self.cells):
            left, top = i % _COLUMNS * _CELL, i // _COLUMNS * (_CELL + _TEXT_HEIGHT)
            image = Image.fromarray(pixels)
            canvas.paste(image, (left + (_CELL - image.width) // 2, top + (_CELL - image.height) // 2))
            text.text((left + 2, top + _CELL), name, (0, 0, 0), font)
        return np.asarray(canvas)

    def table(self) -> str:
        """Returns the detections of all files as CSV."""
        return csv_text(self.rows, ("file", "frame"))


def _of_video(task: Task, names: Sequence[str]) -> Iterator[tuple[np.ndarray, list[Detection]]]:
    """Yields the frames with their detections. A frame that failed has none."""
    with tarfile.open(task.result) as archive:
        members = {Path(member.name).stem: member for member in archive.getmembers()}
        for index, pixels in enumerate(video.frames(task.source)):
            member = members.get(video.key(index))
            stream = archive.extractfile(member) if member is not None else None
            found: list[Detection] = []
            if stream is not None:
                with np.load(io.BytesIO(stream.read())) as file:
                    found = detections(dict(file), names)
            yield pixels, found
