# SPDX-License-Identifier: Apache-2.0
"""Polyop's nodes in onnxscript, for models that are written by hand.

    from onnxscript import FLOAT, script
    from polyop.onnxscript import mmcv

    @script()
    def pool(x: FLOAT[...], rois: FLOAT[...]) -> FLOAT[...]:
        return mmcv.MMCVRoiAlign(x, rois, output_height=7, output_width=7)

A name of this module is a domain of nodes: `polyop`, `mmcv`, `mmdeploy`, … `domain(name)` returns one whose name is not
an identifier.
"""

from __future__ import annotations

from functools import cache

from onnxscript import values

from polyop.onnx_schemas import register


@cache
def domain(name: str) -> values.Opset:
    """Returns the nodes of a domain, as attributes. Raises AttributeError if polyop has none in it."""
    domains = {node.split("::")[0] for node in register()} - {""}
    if name not in domains:
        raise AttributeError(f"expected one of polyop's domains, {', '.join(sorted(domains))}, got '{name}'")
    return values.Opset(name, 1)


def __getattr__(name: str) -> values.Opset:
    return domain(name)
