# SPDX-License-Identifier: Apache-2.0
"""Functions of PyTorch and other packages that exports replace.

A replacement by `replaced` applies to the thread, or the task, that is in its `with` block; others call the function as
before. Blocks may be nested, and several threads may be in one: the first replaces the function by one that chooses,
the last restores it.
"""

from __future__ import annotations

import functools
import importlib
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.util import find_spec
from types import FunctionType, MappingProxyType
from typing import Any


@dataclass(frozen=True)
class Patch:
    """A function that is replaced, or called.

    loses: what an export cannot write without it.
    by_code: modules have it under other names, too, so that its code is replaced, and not the module's attribute.
    optional: nothing is lost if its module is not imported.
    """

    loses: str
    by_code: bool = False
    optional: bool = False


_ALL = "translations of PyTorch's operators"
_OWN = "polyop's operators"
_SIZES = "conditions on sizes that depend on values of tensors"
_RECURRENT = "recurrent layers with packed sequences"
_TRANSFORMERS = "masks of transformers"
_DETECTORS = "detectors of torchvision"
_MMDET = "detectors of mmdet"
PATCHES: Mapping[str, Patch] = {
    "onnxscript.function_libs.torch_lib.ops.nn:_aten_upsample_scales": Patch("resizes of dynamic sizes by factors"),
    "onnxscript.rewriter:RewriteRule.try_rewrite": Patch("several bounds of one tensor"),
    "onnxscript.rewriter._matcher:SimplePatternMatcher._match_constant": Patch("sums with numbers close to 0"),
    "torch.onnx._internal.exporter._core:_prepare_exported_program_for_export": Patch(_SIZES),
    "torch.onnx._internal.exporter._core:_set_node_metadata": Patch("the names of PyTorch's operators"),
    "torch.onnx._internal.exporter._core:torch_dtype_to_onnx_dtype": Patch("complex numbers of type complex32"),
    "torch.onnx._internal.exporter._core:current_tracer": Patch(_OWN),
    "torch.onnx._internal.exporter._torchlib._torchlib_registry:onnx_impl": Patch(_OWN),
    "torch.onnx._internal.exporter._capture_strategies:TorchExportNonStrictStrategy._capture": Patch(_ALL),
    "torch.onnx._internal.exporter._fx_passes:decompose_with_registry": Patch(_ALL),
    "torch._higher_order_ops.flex_attention:trace_flex_attention": Patch("flex_attention"),
    "torch._meta_registrations:pooling_output_shape_pad_lr": Patch("pools of dynamic sizes with ceil_mode"),
    "torch._subclasses.fake_tensor:FakeTensorMode.from_tensor": Patch("conditions on values of buffers"),
    "torch.fx.experimental.symbolic_shapes:ShapeEnv.evaluate_expr": Patch(_SIZES),
    "torch.nn.functional:scaled_dot_product_attention": Patch("attention that is causal by a condition on sizes"),
    "torch.nn.modules.rnn:LSTM.check_forward_args": Patch(_RECURRENT),
    "torch.nn.modules.rnn:RNNBase.check_forward_args": Patch(_RECURRENT),
    "torch.nn.modules.transformer:TransformerEncoder.forward": Patch(_TRANSFORMERS),
    "torch.nn.modules.transformer:_detect_is_causal_mask": Patch(_TRANSFORMERS),
    "torch.ao.quantization.fake_quantize:FakeQuantize.forward": Patch("fake quantization", optional=True),
    "mmdet.models.dense_heads:RPNHead._bbox_post_process": Patch(_MMDET, optional=True),
    "mmdet.models.dense_heads.base_dense_head:BaseDenseHead._bbox_post_process": Patch(_MMDET, optional=True),
    "mmdet.models.roi_heads.roi_extractors:SingleRoIExtractor.forward": Patch(_MMDET, optional=True),
    "kornia.feature.disk.detector:heatmap_to_keypoints": Patch("DISK of kornia", by_code=True, optional=True),
    "opt_einsum.contract:contract_path": Patch("products of three and more factors", by_code=True, optional=True),
    "torch.jit:ScriptFunction.__call__": Patch("functions of torch.jit.script"),
    "torch:SymInt.__hash__": Patch("sizes that a program looks up"),
    "torch:SymInt.__repr__": Patch("texts that a program makes of sizes"),
    "torch:SymInt.__int__": Patch("sizes that a program makes integers"),
    "torch:Tensor.split": Patch(_MMDET),
    "torch.onnx:is_in_onnx_export": Patch(_MMDET),
    "torchvision.models.detection.roi_heads:heatmaps_to_keypoints": Patch(_DETECTORS, by_code=True, optional=True),
    "torchvision.models.detection.roi_heads:paste_masks_in_image": Patch(_DETECTORS, by_code=True, optional=True),
    "torchvision.ops.boxes:batched_nms": Patch(_DETECTORS, by_code=True, optional=True),
    "torchvision.ops.poolers:_multiscale_roi_align": Patch(_DETECTORS, by_code=True, optional=True),
}
"""The functions, as module:name."""

Replacement = Callable[..., Any]
"""Gets the function that it replaces, then the arguments."""

_active: ContextVar[Mapping[str, Callable[..., Any]]] = ContextVar("polyop.patches", default=MappingProxyType({}))
_originals: dict[str, Callable[..., Any]] = {}


class Shared:
    """A context manager for several threads: the first enters the one that `create` returns, the last leaves it."""

    def __init__(self, create: Callable[[], AbstractContextManager[Any]]) -> None:
        self._create, self._lock, self._count = create, threading.Lock(), 0
        self._entered = ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            if self._count == 0:
                self._entered.enter_context(self._create())
            self._count += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._count -= 1
            if self._count == 0:
                self._entered.close()


@contextmanager
def replaced(replacements: Mapping[str, Replacement]) -> Iterator[None]:
    """In a `with` block, this thread calls these replacements of functions in PATCHES.

    A function that this PyTorch does not have is left out, as are those of modules that are not imported.
    """
    with ExitStack() as stack:
        now = dict(_active.get())
        for name, replacement in replacements.items():
            if _found(name) is not None:
                stack.enter_context(_CHOOSING[name])
                now[name] = functools.partial(replacement, now.get(name, _originals[name]))
        token = _active.set(now)
        try:
            yield
        finally:
            _active.reset(token)


def missing() -> list[str]:
    """Returns the functions that this PyTorch does not have, each with what an export cannot write without it."""
    if find_spec("onnxscript") is None:  # there is no dynamo exporter
        return []
    return [
        f"{name.replace(':', '.')}: exports lack {patch.loses}"
        for name, patch in PATCHES.items()
        if _found(name) is None and not (patch.optional and name.partition(":")[0] not in sys.modules)
    ]


def _found(name: str) -> tuple[Any, str] | None:
    """Returns the module or class, and the attribute. None if it does not exist, or its module is not imported."""
    module, _, path = name.partition(":")
    *owners, attribute = path.split(".")
    try:
        owner: Any = sys.modules.get(module) if PATCHES[name].optional else importlib.import_module(module)
        for part in owners:
            owner = getattr(owner, part)
        function = getattr(owner, attribute)
    except (AttributeError, ImportError):
        return None
    has_own_code = isinstance(function, FunctionType) and not function.__closure__
    return (owner, attribute) if has_own_code or not PATCHES[name].by_code else None


@contextmanager
def _choosing(name: str) -> Iterator[None]:
    """In a `with` block, the function is one that chooses between the calling thread's replacement and the original."""
    found = _found(name)
    assert found is not None
    owner, attribute = found
    function = getattr(owner, attribute)
    if PATCHES[name].by_code:
        own = function.__code__
        original = FunctionType(own, function.__globals__, attribute, function.__defaults__, function.__closure__)
        original.__kwdefaults__ = function.__kwdefaults__
        _originals[name] = original
        code = _call.__code__
        function.__code__ = code.replace(co_consts=tuple(name if c == _NAME else c for c in code.co_consts))
        try:
            yield
        finally:
            function.__code__ = own
        return
    own_attribute = vars(owner).get(attribute)  # what binds it to an instance is lost in `function`
    _originals[name] = function

    @functools.wraps(function)
    def choose(*args: Any, **given: Any) -> Any:
        return _active.get().get(name, function)(*args, **given)

    setattr(owner, attribute, choose)
    try:
        yield
    finally:
        if vars(owner).get(attribute) is choose:
            delattr(owner, attribute) if own_attribute is None else setattr(owner, attribute, own_attribute)


_NAME = "a name in PATCHES"


def _call(*args: Any, **given: Any) -> Any:
    """The code that functions get. It runs among the globals of their modules."""
    from polyop._aten import patches

    return patches.choose_by_code("a name in PATCHES", args, given)


def choose_by_code(name: str, args: tuple[Any, ...], given: Mapping[str, Any]) -> Any:
    return _active.get().get(name, _originals[name])(*args, **given)


_CHOOSING = {name: Shared(functools.partial(_choosing, name)) for name in PATCHES}
