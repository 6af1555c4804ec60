# SPDX-License-Identifier: Apache-2.0
"""Moves plugin nodes into the domain that ONNX Runtime's provider for TensorRT expects them in."""

from __future__ import annotations

import onnx_ir as ir

from polyop._onnx.catalogue import PLUGIN_DOMAIN, find_node

__all__ = ["PLUGIN_DOMAIN", "move"]

_HOW_WRITTEN = ("renames", "presets", "spellings")


def move(model: ir.Model) -> int:
    """Moves polyop's nodes and NVIDIA's, also those of branches and loops, into PLUGIN_DOMAIN. Returns their number.

    A node stays if its name has another meaning there.
    """
    count = 0
    for node in ir.traversal.RecursiveGraphIterator(model.graph):
        if node.domain == PLUGIN_DOMAIN:
            continue
        values = {name: attribute.value for name, attribute in node.attributes.items() if not attribute.is_ref()}
        found, there = (find_node(domain, node.op_type, values) for domain in (node.domain, PLUGIN_DOMAIN))
        if found is None or there is None or found[0] is not there[0]:
            continue
        if all(found[1][key] == there[1][key] for key in _HOW_WRITTEN):
            node.domain = PLUGIN_DOMAIN
            count += 1
    if count:
        model.opset_imports.setdefault(PLUGIN_DOMAIN, 1)
    return count
