#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the types of the operators' functions in one of polyop's modules, from the operators' definitions."""

from __future__ import annotations

import argparse
import inspect
import math
import textwrap

from polyop._arrays.functions import Function, Parameter, functions, signature_of

HEADS = {
    "functional": """from collections.abc import Sequence
from typing import Any

from torch import Tensor

from polyop._torch.node_domain import node_domain as node_domain

Array = Tensor
Result = Tensor
""",
    "numpy": """from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Any

import numpy as np

Array = Any  # an array, an object with __dlpack__ or the buffer protocol, or lists of numbers
Result = np.ndarray
Out = np.ndarray | Sequence[np.ndarray | None] | None

def set_num_threads(count: int, pool: Executor | None = None) -> None: ...
""",
    "jax": """from collections.abc import Sequence
from typing import Any

import jax

Array = Any  # an array of JAX or NumPy, or lists of numbers
Result = jax.Array
""",
    "tvm_ffi": """from collections.abc import Sequence
from typing import Any

Array = Any  # a tensor of PyTorch, NumPy, JAX, CuPy, Paddle or tvm-ffi
Result = Any  # a tensor of PyTorch if an input is one, otherwise of tvm-ffi
""",
}
TYPES = {
    "input": "Array", "variadic": "Sequence[Array]", "int": "int", "float": "float", "string": "str", "flag": "bool",
    "ints": "int | Sequence[int]", "floats": "float | Sequence[float]", "pair": "int | Sequence[int]",
}  # fmt: skip


def type_of(function: Function, parameter: Parameter) -> str:
    """Returns a parameter's type, with None if the caller may leave it out."""
    choices = {a["name"] for a in function.record["attributes"] if a["choices"]}
    optional = {i["name"] for i in function.record["inputs"] if i["optional"]}
    source = parameter.sources[0]
    kind = "str" if source in choices else TYPES[parameter.kind]
    kind = "bool | Sequence[bool]" if kind == "int | Sequence[int]" and isinstance(parameter.default, bool) else kind
    return f"{kind} | None" if source in optional or parameter.default is None else kind


def written(function: Function, module: str) -> str:
    """Returns the function's lines."""
    signature = signature_of(function)
    if function.composite is None:
        types = {p.name: type_of(function, p) for p in function.parameters}
        result = results(function, module)
    else:
        own = inspect.signature(function.composite)
        types = {name: str(p.annotation).replace("Any", "Array") for name, p in own.parameters.items()}
        types |= {name: "Array | None" for name, p in signature.parameters.items() if p.default is None}
        result = str(own.return_annotation).replace("Any", "Result")
        result = "Any" if function.name == "voxelization" else result  # one result or three
    parameters = []
    for name, p in signature.parameters.items():
        default = "..." if isinstance(p.default, float) and math.isinf(p.default) else repr(p.default)
        parameters.append(f"{name}: {types[name]}" + ("" if p.default is p.empty else f" = {default}"))
    if module == "numpy" and function.is_call:
        parameters += ["*", "out: Out = None"]
    text = ", ".join(parameters)
    glued = (
        f"def {function.name}("
        + text.replace(" ", "\0").replace(",\0", ", ")
        + f")\0->\0{result}:\0...".replace(" ", "\0")
    )
    return "\n".join(textwrap.wrap(glued, 120, subsequent_indent="    ", break_long_words=False)).replace("\0", " ")


def results(function: Function, module: str) -> str:
    record = function.record
    count = len(record["outputs"]) if function.row is None or function.row.outputs is None else function.row.outputs
    counted = module == "jax" and any(found for signature in record["found_sizes"] for found in signature)
    # A count follows the outputs of those signatures whose sizes are found.
    if counted and not all(any(signature) for signature in record["found_sizes"]):
        return "Any"
    outputs = ["Result"] * (count + counted)
    return outputs[0] if len(outputs) == 1 else f"tuple[{', '.join(outputs)}]"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("module", choices=sorted(HEADS))
    chosen = parser.parse_args().module
    from polyop._arrays.calls import operators  # after the arguments, so that --help needs no library

    print("# fmt: off\n# Written by `make docs` from the operators' definitions.")
    print(HEADS[chosen])
    for each in functions(operators()).values():
        print(written(each, chosen))
