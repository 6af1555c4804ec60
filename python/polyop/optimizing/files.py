"""Reads and writes models, of any size, whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import onnx
import onnx_ir as ir

from polyop.optimizing import whole_file
from polyop.optimizing.errors import FileError, said

# Larger models' tensors are put beside the working copy, and larger results' beside the file: a protobuf ends at 2 GiB.
_KEEP_IN_MEMORY = 16 << 20
_KEEP_IN_FILE = 1800 << 20
_COPY, _DATA = "model.onnx", "weights.data"


class Source:
    """A model as it is read, as often as it is asked for: from a file, or from a ModelProto."""

    def __init__(self, model: str | Path | onnx.ModelProto, folder: Path) -> None:
        """folder: of the working copy, where the tensors of large models go."""
        self.path = None if isinstance(model, onnx.ModelProto) else Path(model)
        self.name = str(self.path) if self.path else "the model"
        self.data_folder = self.path.resolve().parent if self.path else None  # where tensors outside of the model lie
        self._given = model
        self._folder = folder

    def load(self) -> ir.Model:
        """The model anew, no changes in it. Raises FileError for what is missing or damaged."""
        if not self.is_copied:
            model = ir.from_proto(self._given) if self.path is None else read(self.path)
            if external_tensors(model) or size_of(model) <= _KEEP_IN_MEMORY:
                return model
            ir.external_data.unload_from_model(model, self._folder, _DATA, size_threshold_bytes=1024)
            ir.save(model, self._folder / _COPY)
            self.data_folder = self._folder
            del model  # a small tensor that is left keeps the whole file's bytes
        return read(self._folder / _COPY)

    @property
    def is_copied(self) -> bool:
        """True if the tensors lie within the model's file, and in the working copy outside of it."""
        return self.data_folder == self._folder


def read(path: Path) -> ir.Model:
    """Raises FileError for what is missing, damaged, or reaches out of the file's folder."""
    try:
        model = ir.load(path)
    except FileNotFoundError:
        raise FileError(f"{path} does not exist") from None
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}") from error
    except Exception as error:  # protobuf and onnx_ir have many
        raise FileError(f"{path} is no ONNX model, or damaged: {said(error)}") from error
    if not len(model.graph) or not model.graph.outputs:
        raise FileError(f"{path} is no ONNX model, or damaged: its graph has no nodes or no outputs")
    folder = path.resolve().parent
    for tensor in external_tensors(model):
        where = Path(tensor.path).resolve()
        what = f"{path}: the data of tensor '{tensor.name}'"
        if not where.is_relative_to(folder):
            raise FileError(f"{what} lies outside of the model's folder: {tensor.location}")
        if not where.is_file():
            raise FileError(f"{what} is missing: {where}")
        end = (tensor.offset or 0) + (tensor.length or 0)
        if end > where.stat().st_size:
            raise FileError(f"{what} ends at byte {end} of {where}, which has {where.stat().st_size}")
    return model


def external_tensors(model: ir.Model) -> list[ir.ExternalTensor]:
    values = [v for graph in model.graphs() for v in graph.initializers.values()]
    return [v.const_value for v in values if isinstance(v.const_value, ir.ExternalTensor)]


def locations(path: Path) -> list[str]:
    """Of the files with the tensors that lie outside of the model's, as it names them."""
    return sorted({tensor.location for tensor in external_tensors(read(path))})


def size_of(model: ir.Model) -> int:
    return sum(
        v.const_value.nbytes for g in model.graphs() for v in g.initializers.values() if v.const_value is not None
    )


def check_writable(path: Path) -> None:
    """Raises FileError if nothing can be written there: before the work, and not after it."""
    try:
        with tempfile.NamedTemporaryFile(prefix=".polyop-", dir=path.resolve().parent):
            pass
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror}") from error
    if path.is_dir():
        raise FileError(f"{path} cannot be written: it is a folder")


def save(model: ir.Model, path: Path, source: Source, step: Callable[[str, int, int], None]) -> None:
    """Writes PATH, and PATH.data where the tensors lay outside of the model or are too large to lie within: first under
    another name, in the same folder, so that nothing is half-written."""
    outside = bool(external_tensors(model)) and not source.is_copied
    try:
        folder = Path(tempfile.mkdtemp(prefix=".polyop-", dir=path.resolve().parent))
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror}") from error
    try:
        if outside or size_of(model) > _KEEP_IN_FILE:
            ir.save(
                model, folder / path.name, external_data=f"{path.name}.data",
                callback=lambda tensor, info: step("writing", info.index + 1, info.total),
            )  # fmt: skip
            os.replace(folder / f"{path.name}.data", path.with_name(f"{path.name}.data"))
        else:
            whole_file.write(model, folder / path.name, lambda done, steps: step("writing", done, steps))
        os.replace(folder / path.name, path)
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def copy(source: Source, path: Path) -> None:
    """The file as it is, with the data that lies outside of it."""
    if source.path.resolve() == path.resolve():
        return
    if path.resolve().parent != source.path.resolve().parent:
        for location in locations(source.path):
            (path.parent / location).parent.mkdir(parents=True, exist_ok=True)
            _copy_file(source.path.parent / location, path.parent / location)
    _copy_file(source.path, path)


def _copy_file(source: Path, path: Path) -> None:
    try:
        with tempfile.NamedTemporaryFile(prefix=".polyop-", dir=path.resolve().parent, delete=False) as part:
            part.close()
            shutil.copyfile(source, part.name)
            shutil.copymode(source, part.name)
            os.replace(part.name, path)
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror}") from error
