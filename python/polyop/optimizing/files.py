# SPDX-License-Identifier: Apache-2.0
"""Reads models of any size, and writes them atomically."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx
import onnx_ir as ir

from polyop._onnx.atomic_file import AtomicFile, prepare_folder
from polyop._onnx.files import ModelFileError, copy_external_files, copy_file, data_folder, external_files
from polyop.errors import one_line
from polyop.optimizing import one_file
from polyop.optimizing.errors import FileError

# The tensors of larger models are stored next to the working copy, and those of larger results next to the file: a
# protobuf holds 2 GiB.
_KEEP_IN_MEMORY = 16 << 20
_KEEP_IN_FILE = 1800 << 20
_KEEP_WITHIN = 256  # bytes of tensors that stay in the model
_COPY, _DATA = "model.onnx", "weights.data"


class Source:
    """A model that can be loaded repeatedly, from a ModelProto or a file, which is read once."""

    folder = Path()
    """For the working copy with the tensors of large models."""

    def __init__(self, model: str | Path | onnx.ModelProto, path: Path | None = None) -> None:
        """path: the file that a ModelProto was read from, without its external data. Raises FileError."""
        self.path = path if isinstance(model, onnx.ModelProto) else Path(model)
        self.name = str(self.path) if self.path else "the model"
        self.data_folder = self.path.parent.resolve() if self.path else None  # of external tensors
        self.proto = model if isinstance(model, onnx.ModelProto) else _read(self.path)

    def load(self) -> ir.Model:
        """Returns the unchanged model. Raises FileError if a file is missing or damaged."""
        if not self.is_copied:
            model = _parsed(self.proto, self.path)
            if self.path is not None and (tensors := external_tensors(model)):
                self.data_folder = Path(tensors[0].base_dir)
            if external_tensors(model) or _of_attributes(model) or size_of(model) <= _KEEP_IN_MEMORY:
                return model
            ir.external_data.unload_from_model(model, self.folder, _DATA, size_threshold_bytes=1024)
            ir.save(model, self.folder / _COPY)
            self.data_folder = self.folder
            del model, self.proto  # a single small tensor keeps all bytes of the file alive
        return _parsed(_read(self.folder / _COPY), self.folder / _COPY)

    @property
    def is_copied(self) -> bool:
        """True if the tensors are in the model's file, and external in the working copy."""
        return self.data_folder == self.folder


def _read(path: Path) -> onnx.ModelProto:
    """Reads a model without its external data. Raises FileError."""
    try:
        return onnx.load(path, load_external_data=False)
    except FileNotFoundError:
        raise FileError(f"{path} does not exist") from None
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}") from error
    except Exception as error:  # protobuf raises errors of many types
        raise FileError(f"{path} is not an ONNX model, or damaged: {one_line(error)}") from error


def _parsed(proto: onnx.ModelProto, path: Path | None) -> ir.Model:
    """Returns a model that was read from this file. Raises FileError if it is damaged, or if its external data is
    missing, damaged or outside the file's folder."""
    if path is None:
        model = ir.from_proto(proto)
        _normalize(model)
        return model
    try:
        model = ir.from_proto(proto)
    except Exception as error:  # onnx_ir raises errors of many types
        raise FileError(f"{path} is not an ONNX model, or damaged: {one_line(error)}") from error
    ir.external_data.set_base_dir(model.graph, path.parent)
    if not len(model.graph) or not model.graph.outputs:
        raise FileError(f"{path} is not an ONNX model, or damaged: its graph has no nodes or no outputs")
    _normalize(model)
    if (name := _calls_itself(model)) is not None:
        raise FileError(f"{path} is damaged: its function {name} calls itself")
    tensors = [*external_tensors(model), *(tensor for _, _, tensor in _of_attributes(model))]
    try:
        folder = data_folder(path, {str(tensor.location) for tensor in tensors})
    except ModelFileError as error:
        raise FileError(f"{path}: {error}", error.hint) from error
    for tensor in tensors:
        if (why := _data_error(tensor)) is not None:
            raise FileError(f"{path}: the data of tensor '{tensor.name}' {why}")
    for graph in model.graphs():
        for value in graph.initializers.values():
            if isinstance(value.const_value, ir.ExternalTensor):
                value.const_value = _after_links(value.const_value, folder)
    for node, name, tensor in _of_attributes(model):
        node.attributes[name] = ir.AttrTensor(name, _after_links(tensor, folder))
    return model


def _after_links(tensor: ir.ExternalTensor, folder: Path) -> ir.ExternalTensor:
    """Returns the tensor with the location of its file in `folder` after links: ONNX Runtime reads no links out of the
    folder of a model that it gets as bytes."""
    location = Path(tensor.path).resolve().relative_to(folder)
    return ir.ExternalTensor(
        location, tensor.offset, tensor.length, tensor.dtype, shape=tensor.shape, name=tensor.name, base_dir=folder
    )


def _normalize(model: ir.Model) -> None:
    """Gives ONNX's own operators the empty domain, of which "ai.onnx" is another spelling. Makes negative dimensions of
    inputs and outputs unknown, which is what exporters mean by them."""
    for value in (*model.graph.inputs, *model.graph.outputs):
        if value.shape is not None and any(isinstance(dim, int) and dim < 0 for dim in value.shape):
            value.shape = ir.Shape(None if isinstance(dim, int) and dim < 0 else dim for dim in value.shape)
    parts: list[ir.Model | ir.Function] = [model, *model.functions.values()]
    for part in parts:
        if (version := part.opset_imports.pop("ai.onnx", None)) is not None:
            part.opset_imports.setdefault("", version)
    for nodes in (model.graph.all_nodes(), *(function.all_nodes() for function in model.functions.values())):
        for node in nodes:
            node.domain = "" if node.domain == "ai.onnx" else node.domain


def _data_error(tensor: ir.ExternalTensor) -> str | None:
    """Returns why a tensor's external data, whose file exists, is invalid, or None."""
    where, begin = Path(tensor.path).resolve(), tensor.offset or 0
    if tensor.dtype == ir.DataType.STRING:
        return "is external: expected strings in the model's file"
    length = tensor.nbytes if tensor.length is None else tensor.length
    if length != tensor.nbytes:
        return f"has the wrong length: expected {tensor.nbytes} bytes for {list(tensor.shape)} of {tensor.dtype}, got {length}"
    if begin + length > where.stat().st_size:
        return f"is incomplete: expected bytes {begin} to {begin + length} in {where}, got {where.stat().st_size} bytes"
    return None


def _of_attributes(model: ir.Model) -> list[tuple[ir.Node, str, ir.ExternalTensor]]:
    """Returns the external tensors that are attributes, with their nodes and names."""
    nodes = [*model.graph.all_nodes(), *(node for f in model.functions.values() for node in f.all_nodes())]
    found = [(n, a) for n in nodes for a in n.attributes.values() if a.type == ir.AttributeType.TENSOR]
    return [(n, a.name, a.value) for n, a in found if not a.is_ref() and isinstance(a.value, ir.ExternalTensor)]


def _check_not_read(data: Path, path: Path, source: Source) -> None:
    """Raises FileError if the new data would overwrite the model's own data, but not the model."""
    if source.path is None or source.path.resolve() == path.resolve():
        return
    if any(Path(tensor.path).resolve() == data.resolve() for tensor in external_tensors(source.load())):
        raise FileError(f"{path}: expected another name: {data.name} has the data of {source.name}")


def _calls_itself(model: ir.Model) -> str | None:
    """Returns the name of a recursive function, or None: ONNX Runtime 1.20 aborts the process on one."""
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


def size_of(model: ir.Model) -> int:
    return sum(
        v.const_value.nbytes for g in model.graphs() for v in g.initializers.values() if v.const_value is not None
    )


def check_writable(path: Path) -> None:
    """Creates the folder of a file. Raises FileError if the file cannot be written, before the work is done."""
    try:
        prepare_folder(path)
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror}") from error


def save(model: ir.Model, path: Path, source: Source, step: Callable[[str, int, int], None]) -> list[str]:
    """Writes PATH, and PATH.data if the tensors were external or are too large for the file. Returns the names of the
    files of external data.

    Both writes are atomic. Between the two renames, the data is new and the model is not.
    """
    for node, name, tensor in _of_attributes(model):
        node.attributes[name] = ir.AttrTensor(name, ir.tensor(tensor.numpy(), name=tensor.name))
    outside = not source.is_copied and any(t.nbytes > _KEEP_WITHIN for t in external_tensors(model))
    try:
        if outside or size_of(model) > _KEEP_IN_FILE:
            data = path.with_name(f"{path.name}.data")
            _check_not_read(data, path, source)
            with AtomicFile(path) as new, AtomicFile(data) as new_data:  # the latter is renamed first
                _move_outside(model, new_data, data.name, step)
                new.write_bytes(ir.to_proto(model).SerializeToString())
            return [data.name]
        with AtomicFile(path) as new:
            one_file.write(model, new, lambda done, steps: step("writing", done, steps))
        return []
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror or error}") from error


def _move_outside(model: ir.Model, path: Path, name: str, step: Callable[[str, int, int], None]) -> None:
    """Writes the tensors to a file, which the model refers to by `name`."""
    ir.external_data.unload_from_model(
        model,
        path.parent,
        path.name,
        size_threshold_bytes=_KEEP_WITHIN,
        callback=lambda tensor, info: step("writing", info.index + 1, info.total),
    )
    for graph in model.graphs():
        for value in graph.initializers.values():
            tensor = value.const_value
            if isinstance(tensor, ir.ExternalTensor):
                value.const_value = ir.ExternalTensor(
                    name, tensor.offset, tensor.length, tensor.dtype, shape=tensor.shape, name=tensor.name,
                    base_dir=path.parent,
                )  # fmt: skip


def copy(source: Source, path: Path) -> list[str]:
    """Copies the file and its external data. Returns the names of the files of external data."""
    try:
        data = [] if source.is_copied else external_files(source.proto, source.path)
        if source.path.resolve() != path.resolve():
            if data:
                copy_external_files(source.proto, source.path, path.parent)
            copy_file(source.path, path)
        return data
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror}") from error
    except ModelFileError as error:
        raise FileError(str(error), error.hint) from error
