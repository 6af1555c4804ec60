# SPDX-License-Identifier: Apache-2.0
"""Gradient kernels of other projects for bench/gradients.py, compiled from checkouts of their repositories:
POLYOP_MMCV_SOURCE names one of github.com/open-mmlab/mmcv, POLYOP_TORCHVISION_SOURCE one of github.com/pytorch/vision
whose sources fit this PyTorch. The compiled libraries are kept in build/rivals.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from torch.utils import cpp_extension

BUILD = Path(__file__).parents[1] / "build" / "rivals"
TENSOR, INT, FLOAT, BOOL = "at::Tensor", "int", "float", "bool"
# Parameters of MMCV's functions, which have no header: tensors, then the others.
MMCV = {
    "roi_align": {
        "roi_align_forward": (5, [INT, INT, FLOAT, INT, INT, BOOL]),
        "roi_align_backward": (5, [INT, INT, FLOAT, INT, INT, BOOL]),
    },
    "roi_align_rotated": {"roi_align_rotated_backward": (3, [INT, INT, FLOAT, INT, BOOL, BOOL])},
    "rotated_feature_align": {"rotated_feature_align_backward": (3, [FLOAT, INT])},
    "bezier_align": {"bezier_align_backward": (3, [INT, INT, FLOAT, INT, BOOL])},
    "deform_conv": {
        "deform_conv_backward_input": (7, [INT] * 11),
        "deform_conv_backward_parameters": (6, [INT] * 10 + [FLOAT, INT]),
    },
    "modulated_deform_conv": {"modulated_deform_conv_backward": (13, [INT] * 10 + [BOOL])},
    "active_rotated_filter": {"active_rotated_filter_backward": (3, [])},
    "psamask": {"psamask_backward": (2, [INT] * 8)},
}
TORCHVISION = ("roi_align", "roi_pool", "deform_conv2d")


def compile_sources(name: str, sources: dict[str, str], includes: Sequence[Path], module: bool) -> Any:
    """Compiles sources, given as text, and loads the library. Recompiles if the text has changed."""
    folder = BUILD / name
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in sources.items():
        path = folder / f"{file}.cpp"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    (folder / "lock").unlink(missing_ok=True)  # PyTorch would wait for a process that was killed
    return cpp_extension.load(
        name, [str(folder / f"{file}.cpp") for file in sources], build_directory=str(folder),
        extra_include_paths=[str(path) for path in includes], extra_cflags=["-O3", "-w"], is_python_module=module,
    )  # fmt: skip


@cache
def mmcv_diff_iou_rotated() -> Any:
    """Returns MMCV's module that composes the IoU of rotated boxes, with polyop's sorting of vertices, or None without
    a checkout.
    """
    root = os.environ.get("POLYOP_MMCV_SOURCE")
    if root is None:
        return None
    sort = torch.ops.polyop.diff_iou_rotated_sort_vertices
    compiled = SimpleNamespace(diff_iou_rotated_sort_vertices_forward=sort)
    module = ModuleType("mmcv_diff_iou_rotated")
    module.__dict__["ext_loader"] = SimpleNamespace(load_ext=lambda *_: compiled)
    text = (Path(root) / "mmcv" / "ops" / "diff_iou_rotated.py").read_text()
    exec(text.replace("from ..utils import ext_loader", ""), module.__dict__)
    return module


@cache
def mmcv() -> Any:
    """Returns a module of MMCV's loops for the CPU, or None without a checkout."""
    root = os.environ.get("POLYOP_MMCV_SOURCE")
    if root is None:
        return None
    csrc = Path(root).resolve() / "mmcv" / "ops" / "csrc"
    sources = {
        op: f'#include "{csrc}/pytorch/{op}.cpp"\n#include "{csrc}/pytorch/cpu/{op}.cpp"\n'
        for op in MMCV
    }  # fmt: skip
    functions = {name: signature for of_op in MMCV.values() for name, signature in of_op.items()}
    declared = [f"void {f}({', '.join([TENSOR] * count + rest)});" for f, (count, rest) in functions.items()]
    exported = [f'  m.def("{f}", &{f});' for f in functions]
    sources["module"] = "\n".join(
        ["#include <torch/extension.h>", *declared, "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {", *exported, "}\n"]
    )
    return compile_sources("mmcv_loops", sources, [csrc / "common", csrc], True)


@cache
def torchvision() -> Any:
    """Returns torchvision's operators, or None without a checkout."""
    root = os.environ.get("POLYOP_TORCHVISION_SOURCE")
    if root is None:
        return None
    csrc = Path(root).resolve() / "torchvision" / "csrc"
    parts = ("{}.cpp", "cpu/{}_kernel.cpp", "autograd/{}_kernel.cpp")
    sources = {op: "".join(f'#include "{csrc}/ops/{part.format(op)}"\n' for part in parts) for op in TORCHVISION}
    compile_sources("torchvision_kernels", sources, [csrc], False)
    return torch.ops.torchvision


def mmcv_roi_align(
    features: Tensor, rois: Tensor, size: int, ratio: int, mode: str
) -> Callable[[Tensor, Tensor], list[Tensor]]:
    """Returns a function of the gradient and the features. The forward pass is computed once, for the positions of
    maxima.
    """
    loops, shape, number = mmcv(), (rois.shape[0], features.shape[1], size, size), 0 if mode == "max" else 1
    at = [torch.zeros(shape if mode == "max" else 0) for _ in range(2)]
    if loops is not None:
        loops.roi_align_forward(features, rois, torch.empty(shape), *at, size, size, 1.0, ratio, number, True)

    def backward(grad: Tensor, features: Tensor) -> list[Tensor]:
        to = torch.zeros_like(features)
        loops.roi_align_backward(grad, rois, *at, to, size, size, 1.0, ratio, number, True)
        return [to]

    return backward


def mmcv_roi_align_rotated(grad: Tensor, features: Tensor, rois: Tensor, size: int, ratio: int) -> list[Tensor]:
    to = torch.zeros_like(features)
    mmcv().roi_align_rotated_backward(grad, rois, to, size, size, 1.0, ratio, True, False)
    return [to]


def mmcv_rotated_feature_align(grad: Tensor, features: Tensor, best: Tensor, scale: float, points: int) -> list[Tensor]:
    to = torch.zeros_like(features)
    mmcv().rotated_feature_align_backward(grad, best, to, scale, points)
    return [to]


def mmcv_bezier_align(grad: Tensor, features: Tensor, rois: Tensor, size: tuple[int, int], ratio: int) -> list[Tensor]:
    to = torch.zeros_like(features)
    mmcv().bezier_align_backward(grad, rois, to, *size, 1.0, ratio, True)
    return [to]


def mmcv_deform_conv2d(grad: Tensor, x: Tensor, offset: Tensor, weight: Tensor) -> list[Tensor]:
    """Computes the gradients for a kernel of 3 x 3 with a padding of 1, an image at a time."""
    to, empty, square = [torch.zeros_like(t) for t in (x, offset, weight)], torch.empty(0), [3, 3, 1, 1, 1, 1, 1, 1]
    mmcv().deform_conv_backward_input(x, offset, grad, to[0], to[1], weight, empty, *square, 1, 1, 1)
    mmcv().deform_conv_backward_parameters(x, offset, grad, to[2], empty, empty, *square, 1, 1, 1.0, 1)
    return to


def mmcv_modulated_deform_conv2d(
    grad: Tensor, x: Tensor, offset: Tensor, mask: Tensor, weight: Tensor, bias: Tensor
) -> list[Tensor]:
    """Computes the gradients for a kernel of 3 x 3 with a padding of 1."""
    to = [torch.zeros_like(t) for t in (x, offset, mask, weight, bias)]
    of_x, of_offset, of_mask, of_weight, of_bias = to
    mmcv().modulated_deform_conv_backward(
        x, weight, bias, torch.empty(0), offset, mask, torch.empty(0), of_x, of_weight, of_bias, of_offset, of_mask,
        grad, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, True,
    )  # fmt: skip
    return to


def mmcv_active_rotated_filter(grad: Tensor, weight: Tensor, indices: Tensor) -> list[Tensor]:
    to = torch.zeros_like(weight)
    mmcv().active_rotated_filter_backward(grad, indices, to)
    return [to]


def mmcv_psa_mask(grad: Tensor, x: Tensor, size: int) -> list[Tensor]:
    """Computes the gradient of type "collect"."""
    to, (height, width) = torch.zeros_like(x), x.shape[2:]
    half = (size - 1) // 2
    mmcv().psamask_backward(grad, to, 0, x.shape[0], height, width, size, size, half, half)
    return [to]
