# SPDX-License-Identifier: Apache-2.0
"""Reads, hashes and copies ONNX files with external data."""

from __future__ import annotations

import filecmp
import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import onnx

from polyop._onnx.atomic_file import AtomicFile
from polyop._onnx.graph import nodes_of
from polyop.errors import FileError

_BLOCK = 1 << 22
_INCOMPLETE = "is it complete? Export it again, or check it with onnx.checker.check_model"


class ModelFileError(FileError, ValueError):
    """A file is not a model, or its external data cannot be copied."""


class _Hash(Protocol):
    def update(self, data: bytes, /) -> None: ...


def read_model(path: Path) -> onnx.ModelProto:
    """Reads a model without its external data. Raises OSError, or ModelFileError if the file is not a model."""
    try:
        model = onnx.load(path, load_external_data=False)
    except OSError:
        raise
    except Exception as error:  # protobuf raises errors of many types
        raise ModelFileError(f"{path} is not an ONNX model, or damaged", _INCOMPLETE) from error
    if not model.graph.node and not model.graph.output:
        why = "its graph has no nodes and no outputs" if path.stat().st_size else "it is empty"
        raise ModelFileError(f"{path} is not an ONNX model, or damaged: {why}", _INCOMPLETE)
    return model


def external_files(model: onnx.ModelProto, path: Path) -> list[str]:
    """Returns the files of the external data of a model that was read from `path`, relative to its folder, sorted.

    Raises ModelFileError as data_folder does.
    """
    found = {entry.value for t in _tensors(model) for entry in t.external_data if entry.key == "location"}
    data_folder(path, found)
    return sorted(found)


def data_folder(path: Path, locations: Collection[str]) -> Path:
    """Returns the folder that contains the files of a model's external data after links: the model's folder, or that of
    the file that the model is a link to. In Hugging Face's cache, both are links to one folder.

    Raises ModelFileError if a file is missing or in neither folder: data that others wrote must not read other files.
    ONNX Runtime has the same rule.
    """
    files = {location: (path.parent / location).resolve() for location in locations}
    folders = [path.parent.resolve(), path.resolve().parent]
    for folder in folders:
        if all(folder in file.parents for file in files.values()):
            break
    else:
        location = next((key for key, file in files.items() if not set(folders) & set(file.parents)), min(files))
        raise ModelFileError(
            f"external data '{location}' is outside the model's folder: write the file next to the model"
        )
    for location, file in files.items():
        if not file.is_file():
            raise ModelFileError(
                f"external data '{location}' is missing in {path.parent}",
                "copy the file to the folder of the model, or export the model again",
            )
    return folder


def _tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Yields the tensors of the graph, of subgraphs and of attributes."""
    yield from _initializers(model.graph)
    for node in nodes_of(model):
        for attribute in node.attribute:
            yield attribute.t
            yield from attribute.tensors
            for sparse in (attribute.sparse_tensor, *attribute.sparse_tensors):
                yield from (sparse.values, sparse.indices)
            for graph in (attribute.g, *attribute.graphs):
                yield from _initializers(graph)


def _initializers(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)


def copy_external_files(model: onnx.ModelProto, path: Path, target: Path, *, overwrite: bool = False) -> list[Path]:
    """Copies the files of the external data of a model that was read from `path` to the folder of another file of it,
    atomically. Returns the copies.

    Raises ModelFileError if a file is missing, outside the folder, code, or, unless `overwrite`, differs from an
    existing one in `target`, which may belong to another model. Files that are in `target` already must not be links:
    the other file could not be read.
    """
    locations = external_files(model, path)
    if target.resolve() == path.parent.resolve():
        folder = data_folder(path, locations)
        if locations and folder != target.resolve():
            raise ModelFileError(
                f"external data '{locations[0]}' is a link out of {target}, which only {path.name} itself may have",
                "write to another folder, to which the data is copied",
            )
        return []
    copies = {path.parent / location: target / location for location in locations}
    if code := next((location for location in locations if _may_run(location)), None):
        raise ModelFileError(f"external data '{code}': expected the name of a file of data, got that of code")
    missing = {location: to for location, to in copies.items() if not _is_copy(to, location)}
    for to in missing.values():
        if to.exists() and not overwrite:
            raise ModelFileError(
                f"{to} already exists with other data: expected none or a copy of the model's external data, which would "
                "overwrite it; write to another folder"
            )
    for location, to in missing.items():
        to.parent.mkdir(parents=True, exist_ok=True)
        copy_file(location, to)
    return list(copies.values())


@contextmanager
def without_links(path: Path) -> Iterator[Path]:
    """Yields the path, or, while the block runs, that of a copy with copies of the external data: OpenVINO and onnx
    follow no links of data, as in Hugging Face's cache. Raises ModelFileError as copy_external_files does."""
    model = read_model(path) if path.is_symlink() else None
    if model is None or not external_files(model, path):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="polyop-", ignore_cleanup_errors=True) as folder:
        copy_external_files(model, path, Path(folder))
        copy_file(path, Path(folder, path.name))
        yield Path(folder, path.name)


def _may_run(location: str) -> bool:
    """Returns True if Python, a loader or a shell could run a file of this name because of where it is: a model must
    not plant a json.py in the folder of results."""
    return any(part.startswith(".") and part not in (".", "..") for part in Path(location).parts) or Path(
        location
    ).suffix.lower() in (".py", ".pyc", ".pyd", ".pth", ".so", ".dll", ".dylib", ".exe", ".bat", ".cmd", ".sh")


def _is_copy(file: Path, of: Path) -> bool:
    return file.is_file() and filecmp.cmp(file, of, shallow=False)


def copy_file(source: Path, target: Path) -> None:
    """Copies a file and its permissions, atomically."""
    with AtomicFile(target) as new:
        shutil.copyfile(source, new)
        shutil.copymode(source, new)


def update_hash(digest: _Hash, path: Path) -> None:
    """Adds a model's file and its external data to a hash. Raises OSError or ModelFileError."""
    for part in (path, *(path.parent / location for location in external_files(read_model(path), path))):
        with part.open("rb") as stream:
            while block := stream.read(_BLOCK):
                digest.update(block)
