# SPDX-License-Identifier: Apache-2.0
"""References to compare operators with: torch in double precision, and ONNX Runtime's built-in operators."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import torch
from onnx import helper

from tests.support.single_node import DTYPES


def bilinear(image: torch.Tensor, y: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Samples image [C, H, W] at pixel coordinates, as if it were padded with zeros."""
    h, w = image.shape[-2:]
    y0, x0 = y.floor().long(), x.floor().long()
    total = torch.zeros(image.shape[:1] + y.shape, dtype=image.dtype)
    for dy in (0, 1):
        for dx in (0, 1):
            yy, xx = y0 + dy, x0 + dx
            weight = (1 - (y - yy).abs()) * (1 - (x - xx).abs())
            inside = (yy >= 0) & (yy < h) & (xx >= 0) & (xx < w)
            total += image[:, yy.clamp(0, h - 1), xx.clamp(0, w - 1)] * (weight * inside)
    return total


def deform_conv(x, offset, mask, weight, bias, stride, padding, dilation, groups, deform_groups):
    """Deformable convolution by its definition: samples, then an inner product for every output."""
    n, c, h, w = x.shape
    o, _, kh, kw = weight.shape
    oh = (h + 2 * padding[0] - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    ow = (w + 2 * padding[1] - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    base_y = (torch.arange(oh) * stride[0] - padding[0]).double()[:, None].expand(oh, ow)
    base_x = (torch.arange(ow) * stride[1] - padding[1]).double()[None, :].expand(oh, ow)
    columns = torch.zeros(n, c, kh * kw, oh, ow, dtype=torch.float64)
    per_group = c // deform_groups
    for image in range(n):
        for g in range(deform_groups):
            for k in range(kh * kw):
                at = 2 * (g * kh * kw + k)
                y = base_y + (k // kw) * dilation[0] + offset[image, at]
                xx = base_x + (k % kw) * dilation[1] + offset[image, at + 1]
                sample = bilinear(x[image, g * per_group : (g + 1) * per_group], y, xx)
                if mask is not None:
                    sample = sample * mask[image, g * kh * kw + k]
                columns[image, g * per_group : (g + 1) * per_group, k] = sample
    columns = columns.reshape(n, groups, c // groups * kh * kw, oh * ow)
    kernel = weight.reshape(groups, o // groups, -1)
    out = torch.einsum("gok,ngkp->ngop", kernel, columns).reshape(n, o, oh, ow)
    return out if bias is None else out + bias[:, None, None]


def built_in(op_type: str, opset: int, inputs: dict[str, np.ndarray], **attributes: object) -> np.ndarray:
    node = helper.make_node(op_type, list(inputs), ["y"], **attributes)
    infos = [helper.make_tensor_value_info(k, DTYPES[v.dtype], v.shape) for k, v in inputs.items()]
    graph = helper.make_graph([node], "g", infos, [onnx.ValueInfoProto(name="y")])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return ort.InferenceSession(proto.SerializeToString()).run(None, inputs)[0]
