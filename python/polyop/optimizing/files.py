"""Reads and writes models, of any size, whole or not at all."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import onnx
import onnx_ir as ir

from polyop._whole_files import WholeFile, sweep
from polyop.optimizing import one_file
from polyop.optimizing.errors import FileError, said

# Larger models' tensors are put beside the working copy, and larger results' beside the file: a protobuf ends at 2 GiB.
_KEEP_IN_MEMORY = 16 << 20
_KEEP_IN_FILE = 1800 << 20
_KEEP_WITHIN = 256  # bytes of a tensor that does not go there
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
    if (name := _calls_itself(model)) is not None:
        raise FileError(f"{path} is damaged: its function {name} calls itself")
    for tensor in [*external_tensors(model), *_of_attributes(model)]:
        if (why := _is_not_there(tensor, path.resolve().parent)) is not None:
            raise FileError(f"{path}: the data of tensor '{tensor.name}' {why}")
    return model


def _is_not_there(tensor: ir.ExternalTensor, folder: Path) -> str | None:
    """Why a tensor's data cannot be what the model says."""
    where, begin = Path(tensor.path).resolve(), tensor.offset or 0
    if not where.is_relative_to(folder):
        return f"lies outside of the model's folder: {tensor.location}"
    if not where.is_file():
        return f"is missing: {where}"
    if tensor.dtype == ir.DataType.STRING:
        return "is of strings, which lie within a model"
    length = tensor.nbytes if tensor.length is None else tensor.length
    if length != tensor.nbytes:
        return f"has {length} bytes, and {list(tensor.shape)} of {tensor.dtype} has {tensor.nbytes}"
    if begin + length > where.stat().st_size:
        return f"lies at bytes {begin} to {begin + length} of {where}, which has {where.stat().st_size}"
    return None


def _of_attributes(model: ir.Model) -> list[ir.ExternalTensor]:
    nodes = [*model.graph.all_nodes(), *(node for f in model.functions.values() for node in f.all_nodes())]
    tensors = [a.value for n in nodes for a in n.attributes.values() if a.type == ir.AttributeType.TENSOR]
    return [tensor for tensor in tensors if isinstance(tensor, ir.ExternalTensor)]


def _calls_itself(model: ir.Model) -> str | None:
    """A function that does, directly or through others: ONNX Runtime 1.20 ends the process on one."""
    calls = {(f.domain, f.name): {(n.domain, n.op_type) for n in f.all_nodes()} for f in model.functions.values()}
    for start in calls:
        open_, seen = list(calls[start]), set()
        while open_:
            called = open_.pop()
            if called == start:
                return "::".join(start)
            if called in calls and called not in seen:
                open_ += calls[called]
            seen.add(called)
    return None


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
    """Raises FileError if nothing can be written there: before the work, and not after it. Removes what was left there
    half-written."""
    try:
        with tempfile.NamedTemporaryFile(prefix=".polyop-", dir=path.resolve().parent):
            pass
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror}") from error
    if path.is_dir():
        raise FileError(f"{path} cannot be written: it is a folder")
    sweep(path.resolve().parent, deep=False)


def save(model: ir.Model, path: Path, source: Source, step: Callable[[str, int, int], None]) -> None:
    """Writes PATH, and PATH.data where the tensors lay outside of the model or are too large to lie within. Nothing is
    half-written; only between two renames the data are the new ones, and the model is not."""
    outside = not source.is_copied and any(t.nbytes > _KEEP_WITHIN for t in external_tensors(model))
    try:
        if outside or size_of(model) > _KEEP_IN_FILE:
            data = path.with_name(f"{path.name}.data")
            with WholeFile(path) as new, WholeFile(data) as new_data:  # the latter has its name first
                _move_outside(model, new_data, data.name, step)
                new.write_bytes(ir.to_proto(model).SerializeToString())
        else:
            with WholeFile(path) as new:
                one_file.write(model, new, lambda done, steps: step("writing", done, steps))
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror or error}") from error


def _move_outside(model: ir.Model, path: Path, name: str, step: Callable[[str, int, int], None]) -> None:
    """Writes the tensors into a file; the model says that it has that name."""
    ir.external_data.unload_from_model(
        model, path.parent, path.name, size_threshold_bytes=_KEEP_WITHIN,
        callback=lambda tensor, info: step("writing", info.index + 1, info.total),
    )  # fmt: skip
    for graph in model.graphs():
        for value in graph.initializers.values():
            tensor = value.const_value
            if isinstance(tensor, ir.ExternalTensor):
                value.const_value = ir.ExternalTensor(
                    name, tensor.offset, tensor.length, tensor.dtype, shape=tensor.shape, name=tensor.name,
                    base_dir=path.parent,
                )  # fmt: skip


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
        with WholeFile(path) as new:
            shutil.copyfile(source, new)
            shutil.copymode(source, new)
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror}") from error
