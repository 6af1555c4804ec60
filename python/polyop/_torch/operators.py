# SPDX-License-Identifier: Apache-2.0
"""Loads the libraries of torch.ops.polyop.* and of packages, and registers fake kernels, which compute shapes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any
from warnings import warn

import torch

from polyop._base.libraries import find_library, library_file, read_catalogue
from polyop._base.packages import check_version, libraries
from polyop._torch.shapes import Library, Size

_LIBRARY = find_library(library_file("polyop", "torch"))


@cache
def _fragment(namespace: str) -> torch.library.Library:
    """Returns the Python registrations of a namespace, which end when the object is destroyed."""
    return torch.library.Library(namespace, "FRAGMENT")


@dataclass(frozen=True)
class Input:
    """One input of a signature."""

    name: str
    optional: bool
    variadic: bool
    types: tuple[str, ...]
    """The types that the CPU kernels accept; empty if they accept any."""
    value: bool
    """True if the input's value decides shapes, so that it is read in CPU memory."""


class Operator:
    """One operator, as its library describes it."""

    def __init__(self, record: dict[str, Any], library: Library) -> None:
        self._library = library
        self.record = record
        """The operator in the catalogue of its library."""
        self.namespace = library.namespace
        self.name: str = record["name"]
        self.inputs = [
            Input(i["name"], i["optional"], i["variadic"], tuple(i["types"]), i["value"]) for i in record["inputs"]
        ]
        self.outputs_named: list[str] = [output["name"] for output in record["outputs"]]
        self.num_outputs = len(record["outputs"])
        self.devices: list[str] = record["devices"]
        self.nondeterministic_devices: list[str] = record.get("nondeterministic_devices", [])
        """The devices whose kernels add in the order in which threads arrive: the last bits differ from run to run."""
        self.gradient_of: str | None = record.get("gradient_of")
        self.gradient: Operator | None = None
        """The kernels of the operator's gradient, itself an operator, if there are any."""
        self.attributes: list[dict[str, Any]] = record["attributes"]
        self._defaults = {
            a["name"]: a["choices"][a["default"]] if self._coded(a) else a["default"] for a in self.attributes
        }
        self.nodes: list[dict[str, Any]] = record["nodes"]

    def register(self, kernel: Callable[..., Any], key: str, with_keyset: bool = False) -> None:
        """Registers a Python kernel at a dispatch key. With with_keyset its first argument is the call's keys."""
        _fragment(self.namespace).impl(self.name, kernel, key, with_keyset=with_keyset)

    @cached_property
    def overload(self) -> torch._ops.OpOverload:
        return getattr(getattr(torch.ops, self.namespace), self.name).default

    def values(self, given: dict[str, Any]) -> dict[str, Any]:
        """Returns the values of all attributes: the given ones, else the defaults."""
        return {**self._defaults, **{k: v for k, v in given.items() if v is not None}}

    @staticmethod
    def _coded(attribute: dict[str, Any]) -> bool:
        return bool(attribute["choices"]) and isinstance(attribute["default"], int)

    def complete(self, args: Sequence[Any]) -> list[Any]:
        """Returns a value for each input. PyTorch leaves out arguments at the end that have their default, None."""
        return [*args, *([] if spec.variadic else None for spec in self.inputs[len(args) :])]

    def flatten(self, args: Sequence[Any]) -> list[Any]:
        """Returns the inputs one by one, also those of a variadic input. An omitted input is None."""
        return [tensor for _, tensor in self._named(args)]

    def nest(self, tensors: Sequence[Any]) -> list[Any]:
        """The inverse of `flatten`: returns one value for each input, a list for a variadic one."""
        if not self.inputs[-1].variadic:
            return list(tensors)
        single = len(self.inputs) - 1
        return [*tensors[:single], list(tensors[single:])]

    def input_of(self, tensor: int) -> int:
        """Returns the number of the input to which a tensor of `flatten` belongs."""
        return min(tensor, len(self.inputs) - 1)

    def _named(self, args: Sequence[Any]) -> list[tuple[Input, torch.Tensor | None]]:
        """Like `flatten`, with the input that each tensor belongs to."""
        named: list[tuple[Input, torch.Tensor | None]] = []
        for spec, arg in zip(self.inputs, args, strict=False):
            named += [(spec, tensor) for tensor in (arg if spec.variadic else [arg])]
        return named

    def device(self, args: Sequence[Any]) -> torch.device:
        """Returns the device of the outputs: that of the inputs, where possible of one whose value is not a size."""
        named = [(spec, tensor) for spec, tensor in self._named(args) if tensor is not None]
        return min(named, key=lambda pair: pair[0].value)[1].device

    def outputs(
        self, args: Sequence[Any], given: dict[str, Any], new_size: Callable[[int | None], Size]
    ) -> list[tuple[torch.dtype, tuple[Size, ...]]]:
        """Returns the type and shape of each output.

        Raises RuntimeError with the kernel's message for an invalid call.
        """
        named = self._named(args)
        given = {name: value for name, value in given.items() if value is not None}
        return self._library.outputs(self.name, [i.name for i, _ in named], [t for _, t in named], given, new_size)

    def through(self, formula: Callable[..., Any]) -> Callable[..., Any]:
        """Returns the formula as a function with the operator's arguments."""

        def call(*args: Any, **given: Any) -> Any:
            return formula(*self.flatten(self.complete(args)), **self.values(given))

        return call

    def node(self, values: dict[str, Any], domain: str) -> tuple[str, dict[str, Any]]:
        """Returns the name and attributes of the ONNX node.

        Prefers the node name of `domain`, else takes the first match.
        """
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
    """Registers a library's operators with PyTorch. Raises ImportError if that fails."""
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise ImportError(f"{path} cannot be loaded: {error}") from error
    if own is not None:
        check_version(namespace, library, own)
    library.polyop_torch_register.restype = ctypes.c_char_p
    if message := library.polyop_torch_register():
        raise ImportError(message.decode())
    shapes = Library(library, namespace)
    records = [Operator(record, shapes) for record in read_catalogue(library)]
    operators = {operator.name: operator for operator in records if operator.gradient_of is None}
    for gradient in records:
        if gradient.gradient_of is not None:
            operators[gradient.gradient_of].gradient = gradient
    return library, operators


def _load_own() -> tuple[ctypes.CDLL, dict[str, Operator]]:
    if not _LIBRARY.is_file():
        raise ImportError(
            f"polyop's PyTorch library is missing: {_LIBRARY}. In a checkout run `make build`; an installed package "
            "has it if PyTorch was installed when it was built."
        )
    return _load("polyop", _LIBRARY)


def _load_packages(own: ctypes.CDLL) -> list[Operator]:
    """Returns the operators of the usable packages. Warns about the others."""
    result: list[Operator] = []
    for package, path in libraries("torch"):
        try:
            result += _load(package.name, path, own)[1].values()
        except ImportError as error:
            warn(f"torch.ops.{package.name} is not available: {error}", stacklevel=2)
    return result


def _register_fake(operator: Operator) -> None:
    def fake(*args: Any, **attributes: Any) -> Any:
        def new_size(max_size: int | None) -> torch.SymInt:
            return torch.library.get_ctx().new_dynamic_size(max=max_size)

        device = operator.device(args)
        result = [torch.empty(s, dtype=t, device=device) for t, s in operator.outputs(args, attributes, new_size)]
        return result[0] if len(result) == 1 else tuple(result)

    torch.library.register_fake(f"{operator.namespace}::{operator.name}", fake)


_own, OPERATORS = _load_own()
ALL_OPERATORS = [*OPERATORS.values(), *_load_packages(_own)]
"""The operators of polyop and of packages."""
for _operator in ALL_OPERATORS:
    _register_fake(_operator)
    if _operator.gradient is not None:
        _register_fake(_operator.gradient)
