# SPDX-License-Identifier: Apache-2.0
"""The input files of a batch and the paths of their results."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from polyop.batch.errors import BatchError, InputFileError

IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff")
ARRAYS = (".npy", ".npz", ".bin")
VIDEOS = (".mp4", ".avi", ".mov", ".mkv", ".webm")
SHARDS = (".parquet", ".tar", *VIDEOS)
KINDS = (*IMAGES, *ARRAYS, *SHARDS)
RECORD = "polyop-batch.json"
"""The file that marks a folder of results."""
FORMATS = ("npz", "npy", "png", "jpg")


@dataclass(frozen=True)
class Task:
    """An input file and the file of its results, which is written atomically."""

    source: Path
    result: Path

    @property
    def kind(self) -> str:
        return self.source.suffix.lower()

    @property
    def is_shard(self) -> bool:
        return self.kind in SHARDS

    @property
    def is_done(self) -> bool:
        """True if the results exist and are not older than the input."""
        try:
            return self.result.stat().st_mtime_ns >= self.source.stat().st_mtime_ns
        except FileNotFoundError:
            return False


@dataclass(frozen=True)
class Input:
    """An `-i` option: the name of an input, or "", and a pattern of files."""

    name: str
    pattern: str

    @staticmethod
    def parse(text: str) -> Input:
        """Parses NAME=PATTERN or PATTERN. The name of an existing file or folder may have an equals sign."""
        whole = Input("", text)
        path, _ = whole._split()
        name, equals, pattern = text.partition("=")
        return Input(name, pattern) if equals and not ("=" in str(path) and path.exists()) else whole

    def _split(self) -> tuple[Path, tuple[str, ...]]:
        """Returns the path before the first part that is a pattern, and the parts from there.

        The name of an existing file or folder is not a pattern: it may have brackets.
        """
        parts, fixed = Path(self.pattern).parts, 0
        while fixed < len(parts) and (not glob.has_magic(parts[fixed]) or Path(*parts[: fixed + 1]).exists()):
            fixed += 1
        return Path(*parts[:fixed]), parts[fixed:]

    @property
    def is_one_file(self) -> bool:
        path, pattern = self._split()
        return not pattern and not path.is_dir()

    @property
    def base(self) -> Path:
        """The folder whose subfolders are repeated in the results."""
        path, pattern = self._split()
        return path if pattern or path.is_dir() else path.parent

    def finds(self, path: Path) -> bool:
        """Returns true if `path` would be among the files if it existed."""
        folder, pattern = self._split()
        if not _is_inside(path, folder):
            return False
        inside = path.resolve().relative_to(folder.resolve()).as_posix()
        return fnmatch(inside, "/".join(pattern).replace("**/", "*")) if pattern else path.suffix.lower() in KINDS

    def files(self, output: Path) -> list[Path]:
        """Returns the files, sorted by name. Those in a subfolder `output` are results of earlier runs and left out.

        Raises BatchError if there are none, or if a folder contains the results of another run.
        """
        path, pattern = self._split()
        if not pattern and path.is_dir():
            found = []
            for folder, _, names in os.walk(path):
                if RECORD in names and not Path(folder).samefile(path) and not _is_inside(Path(folder), output):
                    raise BatchError(
                        f"-i {self.pattern}: expected inputs alone, found results of a batch in '{folder}'",
                        f"name the files by a pattern, for example -i '{path}/*.png'",
                    )
                found += [Path(folder, name) for name in names if Path(name).suffix.lower() in KINDS]
        elif pattern:
            names = glob.glob(os.path.join(glob.escape(str(path)), *pattern), recursive=True)
            found = [Path(name) for name in names if Path(name).is_file()]
        else:
            found = [path] if path.is_file() else []
        if not self.is_one_file and not _is_inside(self.base, output):
            own = {folder for folder in {file.parent for file in found} if _is_inside(folder, output)}
            found = [file for file in found if file.parent not in own]
        if not found:
            if not pattern and not path.exists():
                raise InputFileError(f"-i {self.pattern}: '{path}' does not exist")
            hint = "quote patterns: -i 'photos/**/*.jpg'" if pattern else f"expected one of {' '.join(KINDS)}"
            raise InputFileError(f"-i {self.pattern}: expected files, found none", hint)
        unknown = next((path for path in found if path.suffix.lower() not in KINDS), None)
        if unknown is not None:
            raise BatchError(f"'{unknown}': expected one of {' '.join(KINDS)}, got another kind of file")
        return sorted(found)


def _is_inside(path: Path, folder: Path) -> bool:
    """Returns true if `path` is the folder or below it."""
    path, folder = path.resolve(), folder.resolve()
    return path == folder or folder in path.parents


def split(inputs: Sequence[Input]) -> tuple[list[Input], list[Input]]:
    """Returns the inputs whose files are samples, and those with one file that is a value for all samples.

    The samples are those of the first input with many files.
    """
    if not inputs:
        raise BatchError("expected at least one input, got none", "for example -i 'photos/**/*.jpg'")
    many = [given for given in inputs if not given.is_one_file or Path(given.pattern).suffix.lower() in SHARDS]
    name = (many or inputs)[0].name
    streams = [given for given in inputs if given.name == name]
    constants = [given for given in inputs if given.name != name]
    wrong = next((given for given in constants if given in many or not given.name), None)
    if wrong is not None:
        raise BatchError(
            f"-i {wrong.pattern}: expected files of one input, got files of '{name or 'the first input'}' as well",
            "put arrays that belong together into one .npz, .tar or .parquet file",
        )
    return streams, constants


def tasks(streams: Sequence[Input], output: Path, format: str) -> list[Task]:
    """Returns the tasks in order.

    Raises BatchError if two files have the same result, or if a result overwrites an input or would be an input of the
    next run.
    """
    if format not in FORMATS:
        raise BatchError(f"format: expected one of {', '.join(FORMATS)}, got '{format}'")
    created: dict[Path, Task] = {}
    for stream in streams:
        for source in stream.files(output):
            inside = source.relative_to(stream.base)
            if ".." in inside.parts:
                raise BatchError(f"-i {stream.pattern}: expected a pattern without '..' after the first *")
            kind = source.suffix.lower()
            extension = ".tar" if kind in VIDEOS else kind if kind in SHARDS else f".{format}"
            result = output / (inside if extension == kind else inside.with_suffix(extension))
            if created.get(result, Task(source, result)).source != source:
                raise BatchError(
                    f"'{created[result].source}' and '{source}' have the same result, '{result}'",
                    "run them into separate folders",
                )
            if result.exists() and result.samefile(source):
                raise BatchError(f"'{source}' would be overwritten by its result", "choose another folder for results")
            if _is_inside(stream.base, output) and not stream.is_one_file and stream.finds(result):
                raise BatchError(f"'{result}' would be an input of the next run", "choose another folder for results")
            created[result] = Task(source, result)
    return list(created.values())
