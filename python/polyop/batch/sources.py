"""Which files are a batch's inputs, and where the result of each goes."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from polyop.batch import pictures
from polyop.batch.errors import BatchError

ARRAYS = (".npy", ".npz", ".bin")
SHARDS = (".parquet", ".tar")
KINDS = (*pictures.EXTENSIONS, *ARRAYS, *SHARDS)
FORMATS = ("npz", "npy", "png", "jpg")


@dataclass(frozen=True)
class Task:
    """One file, and the one file that holds its results: what is done whole or not at all."""

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
        """Results are not older than what they were made of."""
        try:
            return self.result.stat().st_mtime_ns >= self.source.stat().st_mtime_ns
        except FileNotFoundError:
            return False


@dataclass(frozen=True)
class Input:
    """What -i says: a name, or "", and files."""

    name: str
    pattern: str

    @staticmethod
    def parse(text: str) -> Input:
        """NAME=PATTERN, or a pattern alone."""
        name, equals, pattern = text.partition("=")
        return Input(name, pattern) if equals else Input("", text)

    @property
    def is_one_file(self) -> bool:
        return not glob.has_magic(self.pattern) and not Path(self.pattern).is_dir()

    @property
    def base(self) -> Path:
        """The folder whose structure the results repeat."""
        if Path(self.pattern).is_dir():
            return Path(self.pattern)
        parts = Path(self.pattern).parts
        fixed = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts) - 1)
        return Path(*parts[:fixed])

    def files(self) -> list[Path]:
        """In the order of their names. Raises BatchError if there is none."""
        if Path(self.pattern).is_dir():
            walked = ((folder, name) for folder, _, names in os.walk(self.pattern) for name in names)
            found = [Path(folder, name) for folder, name in walked if Path(name).suffix.lower() in KINDS]
        else:
            found = [path for path in map(Path, glob.glob(self.pattern, recursive=True)) if path.is_file()]
            if self.is_one_file and Path(self.pattern).is_file():
                found = [Path(self.pattern)]
        if not found:
            raise BatchError(f"-i {self.pattern}: there is no such file", "quote patterns: -i 'photos/**/*.jpg'")
        unknown = next((path for path in found if path.suffix.lower() not in KINDS), None)
        if unknown is not None:
            raise BatchError(f"'{unknown}' is of an unknown kind", f"inputs are {' '.join(KINDS)} files")
        return sorted(found)


def split(inputs: Sequence[Input]) -> tuple[list[Input], list[Input]]:
    """Those that are run through, and those that are one value for all: files of another input than the first of many."""
    if not inputs:
        raise BatchError("there is no input", "say -i 'photos/**/*.jpg'")
    many = [given for given in inputs if not given.is_one_file or Path(given.pattern).suffix.lower() in SHARDS]
    name = (many or inputs)[0].name
    streams = [given for given in inputs if given.name == name]
    constants = [given for given in inputs if given.name != name]
    wrong = next((given for given in constants if given in many or not given.name), None)
    if wrong is not None:
        raise BatchError(
            f"-i {wrong.pattern}: the files of '{name or 'the first input'}' are run through already",
            "put arrays that belong together into one .npz, .tar or .parquet file",
        )
    return streams, constants


def tasks(streams: Sequence[Input], output: Path, format: str) -> list[Task]:
    """In order. Raises BatchError where two files would have one result, or results would lie among the inputs."""
    if format not in FORMATS:
        raise BatchError(f"results are {', '.join(FORMATS)} files, not '{format}'")
    made: dict[Path, Task] = {}
    for stream in streams:
        for source in stream.files():
            inside = source.relative_to(stream.base)
            shard = source.suffix.lower() in SHARDS
            result = output / (inside if shard else inside.with_suffix(f".{format}"))
            if made.get(result, Task(source, result)).source != source:
                raise BatchError(f"'{made[result].source}' and '{source}' would have one result, '{result}'",
                                 "run them into folders of their own")  # fmt: skip
            if result.exists() and result.samefile(source):
                raise BatchError(f"'{source}' would be overwritten by its result", "choose another folder for results")
            made[result] = Task(source, result)
    return list(made.values())
