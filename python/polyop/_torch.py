"""torch.ops.polyop.*: the library loaded, fake kernels for shapes, and both of PyTorch's ONNX exporters taught."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Sequence
from typing import Any

import torch

from polyop import _library
from polyop._signature import Signature

_LIBRARY = _library("libpolyop_torch.so")
_TYPES = {
    "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "f64": torch.float64, "i8": torch.int8,
    "u8": torch.uint8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "bool": torch.bool,
}  # fmt: skip


class Operator:
    """One operator as the library describes it."""

    def __init__(self, record: dict[str, Any]) -> None:
        self.name: str = record["name"]
        self.signatures = [Signature(text) for text in record["signatures"]]
        self.attributes: list[dict[str, Any]] = record["attributes"]
        self.nodes: list[dict[str, Any]] = record["nodes"]

    @property
    def overload(self) -> torch._ops.OpOverload:
        return getattr(torch.ops.polyop, self.name).default

    def values(self, given: dict[str, Any]) -> dict[str, Any]:
        """All attributes: those given, else the defaults."""
        values = {a["name"]: a["choices"][a["default"]] if self._coded(a) else a["default"] for a in self.attributes}
        return {**values, **{k: v for k, v in given.items() if v is not None}}

    @staticmethod
    def _coded(attribute: dict[str, Any]) -> bool:
        return bool(attribute["choices"]) and isinstance(attribute["default"], int)

    def flatten(self, args: Sequence[Any]) -> list[torch.Tensor | None]:
        """Inputs one by one, a variadic one's too; those left out at the end are None."""
        flat: list[torch.Tensor | None] = []
        for spec, arg in zip(self.signatures[0].inputs, args, strict=False):
            flat += list(arg) if spec.variadic else [arg]
        return flat

    def outputs(self, args: Sequence[Any], given: dict[str, Any], new_size) -> list[tuple[torch.dtype, tuple]]:
        """Type and shape of each output."""
        flat = self.flatten(args)
        shapes = [None if t is None else tuple(t.shape) for t in flat]
        signature = next((s for s in self.signatures if s.matches(shapes)), None)
        if signature is None:
            wanted = " or ".join(str([f"{t.name}{list(t.dims)}" for t in s.inputs]) for s in self.signatures)
            raise ValueError(f"polyop::{self.name}: inputs of shapes {shapes}, wanted {wanted}")
        variables = {}
        for i, tensor in enumerate(flat):
            spec = signature.inputs[min(i, len(signature.inputs) - 1)]
            if tensor is not None and spec.dtype not in _TYPES:
                variables.setdefault(spec.dtype, tensor.dtype)
        functions = {"min": torch.sym_min, "max": torch.sym_max}
        sizes = signature.output_shapes(shapes, self.values(given), new_size, functions)
        types = [_TYPES.get(t.dtype) or variables[t.dtype] for t in signature.outputs]
        return list(zip(types, sizes, strict=True))

    def node(self, values: dict[str, Any], domain: str) -> tuple[str, dict[str, Any]]:
        """The ONNX node's name and attributes. Of several names the one of `domain`, else the first that fits."""
        fitting = [n for n in self.nodes if all(str(values[k]) == v for k, v in n["presets"].items())]
        node = next((n for n in fitting if n["name"].startswith(domain + "::")), fitting[0])
        attributes = {}
        for attribute in self.attributes:
            name, value = attribute["name"], values[attribute["name"]]
            if name in node["presets"] or value is None or value == []:
                continue
            if self._coded(attribute):
                value = attribute["choices"].index(value)
            attributes[node["renames"].get(name, name)] = float(value) if attribute["type"] == "float" else value
        return node["name"], attributes


def _load() -> dict[str, Operator]:
    if not _LIBRARY.is_file():
        raise ImportError(
            f"polyop's PyTorch library is missing: {_LIBRARY}. In a checkout run `make build`; an installed package "
            "has it if PyTorch was there when it was built."
        )
    library = ctypes.CDLL(str(_LIBRARY))
    library.polyop_torch_register.restype = ctypes.c_char_p
    library.polyop_catalogue.restype = ctypes.c_char_p
    if error := library.polyop_torch_register():
        raise ImportError(error.decode())
    return {record["name"]: Operator(record) for record in json.loads(library.polyop_catalogue())}


def _register_fake(operator: Operator) -> None:
    def fake(*args: Any, **attributes: Any) -> Any:
        def new_size() -> torch.SymInt:
            return torch.library.get_ctx().new_dynamic_size()

        device = next(t.device for t in operator.flatten(args) if t is not None)
        made = [torch.empty(s, dtype=t, device=device) for t, s in operator.outputs(args, attributes, new_size)]
        return made[0] if len(made) == 1 else tuple(made)

    torch.library.register_fake(f"polyop::{operator.name}", fake)


OPERATORS = _load()
for _operator in OPERATORS.values():
    _register_fake(_operator)
