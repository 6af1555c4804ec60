"""Reads and writes models, of any size, whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import onnx
import onnx_ir as ir

from polyop.optimizing.errors import OptimizeError

# Larger models' tensors are put beside the working copy, and larger results' beside the file: a protobuf ends at 2 GiB.
_KEEP_IN_MEMORY = 256 << 20
_KEEP_IN_FILE = 1800 << 20
_DATA = "weights.data"


class Source:
    """A model as it is read: from a file, or from a ModelProto."""

    def __init__(self, model: str | Path | onnx.ModelProto, folder: Path) -> None:
        self.path = None if isinstance(model, onnx.ModelProto) else Path(model)
        self.name = self.path.name if self.path else "the model"
        self._given = model
        self._folder = folder
        self.data_folder: Path | None = None

    def load(self) -> ir.Model:
        """The model anew. Raises OptimizeError for what is missing, damaged, or reaches out of the file's folder."""
        try:
            if self.path is None:
                return ir.from_proto(self._given)
            model = ir.load(self.path)
        except FileNotFoundError:
            raise OptimizeError(f"{self.path} does not exist") from None
        except OSError as error:
            raise OptimizeError(f"{self.path} cannot be read: {error.strerror or error}") from error
        except Exception as error:  # protobuf and onnx_ir have many
            raise OptimizeError(f"{self.path} is no ONNX model, or damaged: {_line(error)}") from error
        if not len(model.graph) or not model.graph.outputs:
            raise OptimizeError(f"{self.path} is no ONNX model, or damaged: its graph has no nodes or no outputs")
        self._check_external(model)
        if self.data_folder is None and self.path.stat().st_size > _KEEP_IN_MEMORY:
            ir.external_data.unload_from_model(model, self._folder, _DATA, size_threshold_bytes=1024)
            self.data_folder = self._folder
        elif self.data_folder is None:
            self.data_folder = self.path.resolve().parent
        elif self.data_folder == self._folder:
            ir.external_data.unload_from_model(model, self._folder, _DATA, size_threshold_bytes=1024)
        return model

    def _check_external(self, model: ir.Model) -> None:
        """Paths out of the file's folder are refused before anything is read from them."""
        folder = self.path.resolve().parent
        for tensor in external_tensors(model):
            path = Path(tensor.path).resolve()
            what = f"{self.path}: the data of tensor '{tensor.name}'"
            if not path.is_relative_to(folder):
                raise OptimizeError(f"{what} lies outside of the model's folder: {tensor.location}")
            if not path.is_file():
                raise OptimizeError(f"{what} is missing: {path}")
            end = (tensor.offset or 0) + (tensor.length or 0)
            if end > path.stat().st_size:
                raise OptimizeError(f"{what} ends at byte {end} of {path}, which has {path.stat().st_size}")


def external_tensors(model: ir.Model) -> list[ir.ExternalTensor]:
    values = [v for graph in model.graphs() for v in graph.initializers.values()]
    return [v.const_value for v in values if isinstance(v.const_value, ir.ExternalTensor)]


def size_of(model: ir.Model) -> int:
    return sum(
        v.const_value.nbytes for g in model.graphs() for v in g.initializers.values() if v.const_value is not None
    )


def save(model: ir.Model, path: Path, source: Source, step: Callable[[str, int, int], None]) -> None:
    """Writes PATH, and PATH.data where the tensors lay outside of the model or are too large to lie within: first under
    another name, in the same folder, so that nothing is half-written."""
    outside = source.path is not None and source.data_folder != source.path.resolve().parent
    was_outside = bool(external_tensors(model)) and not outside
    try:
        folder = Path(tempfile.mkdtemp(prefix=".polyop-", dir=path.resolve().parent))
    except OSError as error:
        raise OptimizeError(f"{path} cannot be written: {error.strerror}") from error
    try:
        if was_outside or size_of(model) > _KEEP_IN_FILE:
            ir.save(
                model, folder / path.name, external_data=f"{path.name}.data",
                callback=lambda tensor, info: step("writing", info.index + 1, info.total),
            )  # fmt: skip
            os.replace(folder / f"{path.name}.data", path.with_name(f"{path.name}.data"))
        else:
            ir.external_data.load_to_model(model)
            ir.save(model, folder / path.name)
        os.replace(folder / path.name, path)
    except OSError as error:
        raise OptimizeError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def copy(source: Source, path: Path) -> None:
    """The file as it is, with the data that lies outside of it."""
    if source.path.resolve() == path.resolve():
        return
    model = source.load()
    if source.data_folder == source.path.resolve().parent and path.resolve().parent != source.data_folder:
        for location in sorted({tensor.location for tensor in external_tensors(model)}):
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
        raise OptimizeError(f"{path} cannot be written: {error.strerror}") from error


def _line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
