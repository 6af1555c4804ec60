# SPDX-License-Identifier: Apache-2.0
"""Einsum by Transpose, Reshape and MatMul, operand by operand."""

from __future__ import annotations

from itertools import chain

import onnx_ir as ir

from polyop.optimizing.matching import Builder
from polyop.optimizing.rewrites import Build, Without
from polyop.optimizing.rewrites._maker import Dim, Maker, RefusedError
from polyop.optimizing.scope import Scope

OPERATORS = ("Einsum",)

Operand = tuple[ir.Value, list[str], dict[str, Dim]]
"""A tensor, the labels of its dimensions, and their sizes."""


def rewrite(scope: Scope, node: ir.Node, without: Without) -> Build:
    shapes = [scope.shape(v) for v in node.inputs]
    if None in shapes:
        raise RefusedError("expected known shapes of its inputs")
    equation = node.attributes.get_string("equation", "").replace(" ", "")
    terms, result = _labels(equation, [len(shape) for shape in shapes if shape is not None])
    for term in (*terms, result):
        if len(set(term)) < len(term):
            raise RefusedError(f"equation '{equation}' takes a diagonal")
    sizes: dict[str, set[int]] = {}
    for term, shape in zip(terms, shapes, strict=True):
        for label, size in zip(term, shape or (), strict=True):
            sizes.setdefault(label, set()).add(size)
    if any(len(of_label) > 1 for of_label in sizes.values()):
        raise RefusedError(f"equation '{equation}' broadcasts")

    def build(b: Builder, inputs: list[ir.Value]) -> list[ir.Value]:
        m = Maker(b)
        given = dict(zip(dict.fromkeys(node.inputs), inputs, strict=True))
        operands: list[Operand] = []
        for value, term in zip(node.inputs, terms, strict=True):
            dims = m.extents(scope, value, given[value])
            operands.append((given[value], term, dict(zip(term, dims, strict=True))))
        whole = operands[0]
        for i, operand in enumerate(operands[1:], 1):
            kept = set(result).union(*(term for _, term, _ in operands[i + 1 :]))
            whole = _product(m, _only(m, whole, kept | set(operand[1])), _only(m, operand, kept | set(whole[1])), kept)
        value, labels, _ = _only(m, whole, set(result))
        return [m.transpose(value, [labels.index(label) for label in result])]

    return build


def _labels(equation: str, ranks: list[int]) -> tuple[list[list[str]], list[str]]:
    """Returns the labels of each operand and of the result. Those of an ellipsis are numbers, counted from the end."""
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise RefusedError(f"equation '{equation}' has {len(terms)} operands, the node {len(ranks)}")

    def expanded(term: str, more: int) -> list[str]:
        before, dots, after = term.partition("...")
        return [*before, *(str(i) for i in reversed(range(more))), *after] if dots else list(term)

    hidden = [rank - len(term.replace("...", "")) for term, rank in zip(terms, ranks, strict=True)]
    each = [expanded(term, more) for term, more in zip(terms, hidden, strict=True)]
    if [len(term) for term in each] != ranks:
        raise RefusedError(f"equation '{equation}' does not fit the inputs' ranks {ranks}")
    most = max((n for term, n in zip(terms, hidden, strict=True) if "..." in term), default=0)
    if arrow:
        return each, expanded(right, most)
    letters = [label for label in chain(*each) if not label.isdigit()]
    return each, [*map(str, reversed(range(most))), *sorted(label for label in letters if letters.count(label) == 1)]


def _only(m: Maker, operand: Operand, kept: set[str]) -> Operand:
    """Sums over the labels that nothing else reads."""
    value, labels, dims = operand
    axes = [axis for axis, label in enumerate(labels) if label not in kept]
    return m.sum(value, *axes), [label for label in labels if label in kept], dims


def _product(m: Maker, x: Operand, y: Operand, kept: set[str]) -> Operand:
    """Returns the products of two operands, summed over their common labels that are not kept."""
    dims = {**x[2], **y[2]}
    both = [label for label in x[1] if label in y[1]]
    batch, summed = [label for label in both if label in kept], [label for label in both if label not in kept]
    rows, columns = ([label for label in labels if label not in both] for labels in (x[1], y[1]))
    left = _matrices(m, x, batch, rows, summed, dims)
    right = _matrices(m, y, batch, summed, columns, dims)
    labels = [*batch, *rows, *columns]
    product = m.b("MatMul", left, right)
    if len(rows) != 1 or len(columns) != 1:
        product = m.reshape(product, [dims[label] for label in labels])
    return product, labels, dims


def _matrices(
    m: Maker, operand: Operand, batch: list[str], rows: list[str], columns: list[str], dims: dict[str, Dim]
) -> ir.Value:
    value, labels, _ = operand
    value = m.transpose(value, [labels.index(label) for label in (*batch, *rows, *columns)])
    if len(rows) == len(columns) == 1:
        return value
    sides = [m.product([dims[label] for label in side]) for side in (rows, columns)]
    return m.reshape(value, [*(dims[label] for label in batch), *sides])
