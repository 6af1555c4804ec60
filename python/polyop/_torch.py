"""torch.ops.polyop.* and the operators of packages: libraries loaded, fake kernels for shapes."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from warnings import warn

import torch

from polyop import _library
from polyop._late_export import tell_exporters
from polyop._shapes import Library, Size
from polyop.packages import check_version, libraries

_LIBRARY = _library("libpolyop_torch.so")


@dataclass(frozen=True)
class Input:
    """One input as the signature writes it."""

    name: str
    optional: bool
    variadic: bool
    types: tuple[str, ...]
    """Those of the CPU's kernels; none: any."""
    value: bool
    """Its value decides shapes, so it is read in the processor's memory."""


class Operator:
    """One operator as the library describes it."""

    def __init__(self, record: dict[str, Any], library: Library) -> None:
        self._library = library
        self.namespace = library.namespace
        self.name: str = record["name"]
        self.inputs = [Input(**{**i, "types": tuple(i["types"])}) for i in record["inputs"]]
        self.num_outputs = len(record["outputs"])
        self.attributes: list[dict[str, Any]] = record["attributes"]
        self.nodes: list[dict[str, Any]] = record["nodes"]

    @property
    def overload(self) -> torch._ops.OpOverload:
        return getattr(getattr(torch.ops, self.namespace), self.name).default

    def values(self, given: dict[str, Any]) -> dict[str, Any]:
        """All attributes: those given, else the defaults."""
        values = {a["name"]: a["choices"][a["default"]] if self._coded(a) else a["default"] for a in self.attributes}
        return {**values, **{k: v for k, v in given.items() if v is not None}}

    @staticmethod
    def _coded(attribute: dict[str, Any]) -> bool:
        return bool(attribute["choices"]) and isinstance(attribute["default"], int)

    def flatten(self, args: Sequence[Any]) -> list[torch.Tensor | None]:
        """Inputs one by one, a variadic one's too; those left out at the end are None."""
        return [tensor for _, tensor in self._named(args)]

    def _named(self, args: Sequence[Any]) -> list[tuple[Input, torch.Tensor | None]]:
        """The same, each with the input that it belongs to."""
        named: list[tuple[Input, torch.Tensor | None]] = []
        for spec, arg in zip(self.inputs, args, strict=False):
            named += [(spec, tensor) for tensor in (arg if spec.variadic else [arg])]
        return named

    def device(self, args: Sequence[Any]) -> torch.device:
        """Where the outputs are: with the inputs that are more than a size."""
        named = [(spec, tensor) for spec, tensor in self._named(args) if tensor is not None]
        return min(named, key=lambda pair: pair[0].value)[1].device

    def outputs(
        self, args: Sequence[Any], given: dict[str, Any], new_size: Callable[[int | None], Size]
    ) -> list[tuple[torch.dtype, tuple[Size, ...]]]:
        """Type and shape of each output. A call that does not fit raises RuntimeError with the text of a real one."""
        named = self._named(args)
        given = {name: value for name, value in given.items() if value is not None}
        return self._library.outputs(self.name, [i.name for i, _ in named], [t for _, t in named], given, new_size)

    def through(self, formula: Callable[..., Any]) -> Callable[..., Any]:
        """The formula as a function that is called as the operator is."""

        def call(*args: Any, **given: Any) -> Any:
            left_out = [None] * (len(self.inputs) - len(args))
            return formula(*self.flatten(args), *left_out, **self.values(given))

        return call

    def node(self, values: dict[str, Any], domain: str) -> tuple[str, dict[str, Any]]:
        """The ONNX node's name and attributes. Of several names the one of `domain`, else the first that fits."""
        fitting = [n for n in self.nodes if all(str(values[k]) == v for k, v in n["presets"].items())]
        node = next((n for n in fitting if n["name"].startswith(domain + "::")), fitting[0])
        attributes = {}
        for attribute in self.attributes:
            name, value = attribute["name"], values[attribute["name"]]
            if name in node["presets"] or value is None or value == []:
                continue
            if node["spellings"]:
                value = node["spellings"].get(value, value)
            elif self._coded(attribute):
                value = attribute["choices"].index(value)
            attributes[node["renames"].get(name, name)] = float(value) if attribute["type"] == "float" else value
        return node["name"], attributes


def _load(namespace: str, path: Path, own: ctypes.CDLL | None = None) -> tuple[ctypes.CDLL, dict[str, Operator]]:
    """Registers a library's operators with PyTorch; raises ImportError with what is wrong."""
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise ImportError(f"{path} cannot be loaded: {error}") from error
    if own is not None:
        check_version(namespace, library, own)
    library.polyop_torch_register.restype = ctypes.c_char_p
    library.polyop_catalogue.restype = ctypes.c_char_p
    if error := library.polyop_torch_register():
        raise ImportError(error.decode())
    shapes = Library(library, namespace)
    return library, {record["name"]: Operator(record, shapes) for record in json.loads(library.polyop_catalogue())}


def _load_own() -> tuple[ctypes.CDLL, dict[str, Operator]]:
    if not _LIBRARY.is_file():
        raise ImportError(
            f"polyop's PyTorch library is missing: {_LIBRARY}. In a checkout run `make build`; an installed package "
            "has it if PyTorch was there when it was built."
        )
    return _load("polyop", _LIBRARY)


def _load_packages(own: ctypes.CDLL) -> list[Operator]:
    """Those that can be used; of others a warning says why not."""
    made: list[Operator] = []
    for package, path in libraries("torch"):
        try:
            made += _load(package.name, path, own)[1].values()
        except ImportError as error:
            warn(f"torch.ops.{package.name} is not there: {error}", stacklevel=2)
    return made


def _register_fake(operator: Operator) -> None:
    def fake(*args: Any, **attributes: Any) -> Any:
        def new_size(most: int | None) -> torch.SymInt:
            return torch.library.get_ctx().new_dynamic_size(max=most)

        device = operator.device(args)
        made = [torch.empty(s, dtype=t, device=device) for t, s in operator.outputs(args, attributes, new_size)]
        return made[0] if len(made) == 1 else tuple(made)

    torch.library.register_fake(f"{operator.namespace}::{operator.name}", fake)


_own, OPERATORS = _load_own()
ALL_OPERATORS = [*OPERATORS.values(), *_load_packages(_own)]
"""polyop's and those of packages."""
for _operator in ALL_OPERATORS:
    _register_fake(_operator)

tell_exporters()
