# SPDX-License-Identifier: Apache-2.0
"""Nodes of ONNX's own operators that TensorRT's parser refuses. They stay in the file; the report names them.

The list is that of TensorRT-RTX 1.7 and of the operators that TensorRT 10's parser documents.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from polyop.optimizing.graph import is_standard
from polyop.optimizing.matching import Match, matches_of, name_of
from polyop.optimizing.scope import Scope
from polyop.optimizing.target import Target

NAME = "refused by TensorRT"
ORDER = 100  # after what is rewritten
TARGETS = (Target.TENSORRT, Target.TENSORRT_POLYOP)

_MISSING = (
    "AffineGrid", "BitShift", "CenterCropPad", "Col2Im", "DeformConv", "Det", "DFT", "MaxUnpool", "Multinomial",
    "Unique",
)  # fmt: skip
_CONDITIONAL = ("Resize", "ScatterElements", "ScatterND")
_PLUGINS = ("RoiAlign",)  # which polyop's plugin library has, too: then the node has been replaced


def find(scope: Scope) -> Iterator[Match]:
    def match(node: ir.Node) -> Match | None:
        why = _reason(node, scope)
        return Match(name_of(node), [], [], lambda b, i: [], 0, why, what=node.op_type) if why else None

    kinds = [*_MISSING, *_CONDITIONAL, *(_PLUGINS if scope.target is Target.TENSORRT else ())]
    yield from matches_of((n for n in scope.graph if is_standard(n, *kinds)), match)


def _reason(node: ir.Node, scope: Scope) -> str:
    """Returns why TensorRT refuses the node, or ""."""
    given = {name: attribute.value for name, attribute in node.attributes.items()}
    if node.op_type in _MISSING:
        return f"TensorRT has no {node.op_type}"
    if node.op_type in _PLUGINS:
        return f"TensorRT-RTX has no {node.op_type}, and TensorRT's is a plugin; --plugins polyop writes polyop's"
    if node.op_type != "Resize":
        reduction = given.get("reduction", "none")
        return "" if reduction == "none" else f"TensorRT has no {node.op_type} with reduction {reduction}"
    mode = given.get("coordinate_transformation_mode", "half_pixel")
    if mode in ("half_pixel_symmetric", "tf_crop_and_resize"):
        return f"TensorRT has no Resize with coordinate_transformation_mode {mode}"
    if given.get("antialias", 0):
        return "TensorRT has no Resize with antialias"
    shape = scope.shape(node.inputs[0])
    if given.get("mode") == "cubic" and shape is not None and len(shape) > 4:
        return f"TensorRT has a cubic Resize for images only, got {len(shape)} dimensions"
    return ""
