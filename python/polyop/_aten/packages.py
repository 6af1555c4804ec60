# SPDX-License-Identifier: Apache-2.0
"""Functions of other packages that stop an export while PyTorch captures a program. During the capture they are
replaced by those below. Results are the same.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from polyop._aten.shapes import example


def heatmap_to_keypoints(
    _: Callable[..., Any], heatmap: Tensor, n: int | None = None, window_size: int = 5, score_threshold: float = 0.0
) -> list[Any]:
    """kornia's, which selects the n strongest maxima if there are more than n."""
    detector: Any = sys.modules["kornia.feature.disk.detector"]
    size = (window_size, window_size)
    maxima = detector.nms2d(heatmap, size, mask_only=True).squeeze(1) & (heatmap.squeeze(1) > score_threshold)
    found = []
    for of_image, is_maximum in zip(heatmap.squeeze(1), maxima, strict=True):
        xy, score = is_maximum.nonzero().flip((1,)), of_image[is_maximum]
        if n is not None:
            # The n-th largest of the scores and n that are lower than all.
            padded = torch.cat([score, torch.full([max(n, 1)], -torch.inf, dtype=score.dtype, device=score.device)])
            last = padded.topk(max(n, 1)).values[-1]
            above, tied = score > last, score == last
            kept = (above | (tied & (tied.cumsum(0) <= n - above.sum()))) & (n > 0)
            xy, score = xy[kept], score[kept]
        found.append(detector.Keypoints(xy, score))
    return found


def inlined(call: Callable[..., Any], function: Any, *args: Any, **given: Any) -> Any:
    """Calls the Python function that torch.jit.script compiled: TorchScript takes no sizes that are not constant."""
    written = getattr(function, "_torchdynamo_inline", None)
    return call(function, *args, **given) if written is None else written(*args, **given)


def contract_path(call: Callable[..., Any], subscripts: Any, *operands: Any, **given: Any) -> Any:
    """opt_einsum's, which chooses the order of a product's factors by their sizes: here by the example's."""
    shapes: list[Any] = [getattr(operand, "shape", None) for operand in operands]
    sizes = [size for shape in shapes for size in shape or ()]
    if not isinstance(subscripts, str) or None in shapes or all(isinstance(size, int) for size in sizes):
        return call(subscripts, *operands, **given)
    chosen, *details = call(subscripts, *(tuple(example(s) or 1 for s in of) for of in shapes), **given, shapes=True)
    return list(operands) if given.get("einsum_call") else chosen, *details


REPLACED: dict[str, Callable[..., Any]] = {
    "kornia.feature.disk.detector:heatmap_to_keypoints": heatmap_to_keypoints,
    "opt_einsum.contract:contract_path": contract_path,
    "torch.jit:ScriptFunction.__call__": inlined,
}
"""By the name in PATCHES."""
