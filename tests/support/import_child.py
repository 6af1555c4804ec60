# SPDX-License-Identifier: Apache-2.0
"""What `import polyop` changes of PyTorch, and what PyTorch's exporters then write.

    python -m tests.support.import_child changes torch.onnx|polyop  imports this one first; prints what is another
    python -m tests.support.import_child lacking NAME[,NAME…]…      imports polyop without each of these functions

Tests start it in a separate process. A NAME is one of PATCHES in polyop/_aten/patches.py; several are one case.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import logging
import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import torch
from torch import Tensor, nn

_PACKAGES = ("torch", "onnxscript", "onnx_ir", "torchvision")
_KEYS = ("CPU", "CUDA", "Meta", "AutogradCPU", "AutocastCPU", "CompositeImplicitAutograd", "CompositeExplicitAutograd")


# ---- changes -------------------------------------------------------------------------------------------


def _code_of(value: Any) -> CodeType | None:
    value = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
    value = value.fget if isinstance(value, property) else value
    return value.__code__ if isinstance(value, FunctionType) else value if isinstance(value, CodeType) else None


def _parts(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yields what can be exchanged in the value of an attribute: a function and its code, or entries of a table."""
    if isinstance(value, dict):
        yield from ((f"{name}[{key!r}]", item) for key, item in list(value.items()) if callable(item))
    elif isinstance(value, (list, tuple)):
        yield from ((f"{name}[{i}]", item) for i, item in enumerate(value) if callable(item))
    elif callable(value) or isinstance(value, (classmethod, staticmethod, property)):
        yield name, value
    if (code := _code_of(value)) is not None:
        yield f"{name}.__code__", code


def _attributes() -> Iterator[tuple[str, Any]]:
    for module_name, module in list(sys.modules.items()):
        if module_name.partition(".")[0] not in _PACKAGES or not isinstance(module, ModuleType):
            continue
        for attribute, value in list(vars(module).items()):
            yield from _parts(f"{module_name}.{attribute}", value)
            if isinstance(value, type) and value.__module__ == module_name:
                for of_class, item in list(vars(value).items()):
                    yield from _parts(f"{module_name}.{attribute}.{of_class}", item)


def _entries() -> Iterator[tuple[str, Any]]:
    """Yields what computes, decomposes and writes PyTorch's operators."""
    from onnxscript.function_libs.torch_lib.registration import default_registry
    from torch.onnx._internal.exporter._torchlib import _torchlib_registry
    from torch.onnx._internal.torchscript_exporter.registration import registry

    for operator in registry.all_functions():
        group = registry.get_function_group(operator)
        assert group is not None
        yield from ((f"TorchScript's form of {operator}, opset {n}", group.get(n)) for n in range(7, 24))
    for meta in _torchlib_registry.get_torchlib_ops():
        yield f"dynamo's form of {meta.fx_target}", meta.onnx_function
    for operator, functions in default_registry.items():
        yield from ((f"onnxscript's form of {operator}", f) for f in (*functions.overloads, *functions.complex))
    for kind, table in torch._decomp.global_decomposition_table.items():
        yield from ((f"{kind} decomposition of {operator}", function) for operator, function in table.items())
    for operator, function in torch.export.default_decompositions().items():
        yield f"default decomposition of {operator}", _code_of(function)
    for key in _KEYS:
        yield from ((f"{key}'s {name}", key) for name in torch._C._dispatch_get_registrations_for_dispatch_key(key))


def _snapshot() -> dict[str, Any]:
    """Returns everything by name. Of several of a name, each has its number."""
    counted: Counter[str] = Counter()
    found = {}
    for name, value in (*_attributes(), *_entries()):
        counted[name] += 1
        found[f"{name} ({counted[name]})"] = value
    return found


def _changes(first: str) -> list[str]:
    """Returns the names of what is another object after the import, or new, or has polyop's code. Entries of operators
    of polyop are expected.
    """
    before: dict[str, Any] = {}
    files: dict[str, str] = {}
    if first == "torch.onnx":
        files = _files()
        _snapshot()  # looks up what exists from the first use on
        before = _snapshot()
    import polyop

    folder = str(Path(polyop.__file__).parent)
    assert torch.ops.polyop.nms is not None
    importlib.import_module("torch.onnx")
    after = _snapshot()
    assert sum("polyop::nms" in name or "polyop.nms" in name for name in after) > 2, "it registers its own operators"
    changed = [name for name, value in before.items() if after.get(name) is not value]
    changed += [name for name in after if before and name not in before]
    changed += [n for n, v in after.items() if (code := _code_of(v)) and code.co_filename.startswith(folder)]
    changed = sorted({name for name in changed if "polyop" not in name})
    if files:
        changed += [f"the file of {name}" for name, file in _files().items() if file != files[name]]
    return changed


# ---- files ---------------------------------------------------------------------------------------------


def _export(model: nn.Module, *args: Tensor, dynamic: Any = None) -> bytes:
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(model.eval(), args, dynamo=True, verbose=False, dynamic_shapes=dynamic)
    assert program is not None
    return program.model_proto.SerializeToString(deterministic=True)


class Call(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *tensors: Tensor) -> Any:
        return self.function(*tensors)


def _of_dynamic_sizes(x: Tensor) -> list[Tensor]:
    y = torch.clip(torch.clip(x, 0.0, 1.0) * 2, 0.5, 1.5) / (x + 1e-8)
    return [nn.functional.interpolate(y * 1.00001, scale_factor=1.7), x.sum() * (x.shape[2] / x.shape[3])]


def _as_pytorch_does(x: Tensor) -> list[Tensor]:
    """What polyop writes otherwise, because PyTorch's form is wrong or slow, or has a condition."""
    return [
        torch.fft.fft2(x).abs(), torch.logit(x, 1e-5), x.cumsum(-1), nn.functional.avg_pool2d(x, 3, 2, 1),
        torch.zeros_like(x).scatter_reduce(0, torch.zeros(x.shape, dtype=torch.int64), x, "mean"),
        nn.functional.interpolate(x, scale_factor=0.3, mode="bilinear"), torch.linalg.vector_norm(x, 1.5, -1),
        nn.functional.interpolate(x, (5, 6), mode="bicubic", antialias=True), x.unfold(-1, 3, 2), torch.linalg.det(x),
        torch.bincount((x * 3).flatten().long()),
    ]  # fmt: skip


_IMAGES = torch.linspace(0, 1, 2 * 3 * 8 * 8).reshape(2, 3, 8, 8)
_SIZES = (({2: torch.export.Dim.DYNAMIC, 3: torch.export.Dim.DYNAMIC},),)
_MODELS: dict[str, Callable[[], bytes]] = {
    "operators": lambda: _export(Call(_as_pytorch_does), _IMAGES),
    "dynamic sizes": lambda: _export(Call(_of_dynamic_sizes), _IMAGES, dynamic=_SIZES),
    "an inverse": lambda: _export(Call(torch.linalg.inv), _IMAGES),
}


def _files() -> dict[str, str]:
    found = {}
    for name, write in _MODELS.items():
        torch.manual_seed(0)
        try:
            found[name] = hashlib.sha256(write()).hexdigest()
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error.__cause__}"
    return found


# ---- lacking -------------------------------------------------------------------------------------------


def _delete(name: str) -> None:
    module, _, path = name.partition(":")
    *owners, attribute = path.split(".")
    try:
        owner = importlib.import_module(module)
    except ImportError:  # a package that is not installed
        return
    for part in owners:
        owner = getattr(owner, part)
    delattr(owner, attribute)


def _imports_without(names: str) -> str:
    """Returns what fails, in a copy of this process, if PyTorch lacks the functions; empty if nothing does."""
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        try:
            for name in names.split(","):
                _delete(name)
            import polyop

            polyop.nms(torch.rand(1, 4), torch.rand(1), iou_threshold=0.5)
            text = "" if "polyop._torch.onnx_operators" in sys.modules else f"{names}: nothing is registered"
        except BaseException as error:
            text = f"{names}: {type(error).__name__}: {error}"
        os.write(write, text.encode())
        os._exit(0)
    os.close(write)
    with open(read, "rb") as file:
        text = file.read().decode()
    return text if os.waitpid(child, 0)[1] == 0 else f"{names}: {text}: the process ended"


def main(what: str, *names: str) -> None:
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(1)  # a fork would not have the threads
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the exporter prints
    if what == "changes":
        result: Any = _changes(*names)
    else:
        importlib.import_module("torch.onnx")
        result = [failure for name in names if (failure := _imports_without(name))]
    print(json.dumps(result), file=answer)


if __name__ == "__main__":
    main(*sys.argv[1:])
