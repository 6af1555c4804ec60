# SPDX-License-Identifier: Apache-2.0
"""Non-maximum suppression by ONNX's NonMaxSuppression, which is greedy, too."""

from __future__ import annotations

from polyop.formulas import Call


def body(
    call: Call, *, iou_threshold: float, offset: int, score_threshold: float | None, max_output_boxes_per_class: int,
    center_point_box: int,
) -> str:  # fmt: skip
    many = call.rank(0) == 3
    threshold = "" if score_threshold is None else f"min_score = Constant <value_float: float = {score_threshold!r}> ()"
    return f"""
        first = Constant <value = int64[1] {{0}}> ()
        {_MANY if many else _ONE}
        pixel = Constant <value = float[4] {{0, 0, {offset}, {offset}}}> ()
        areas = Add (many_boxes, pixel)
        extents = Shape (many_scores)
        last = Constant <value = int64[1] {{2}}> ()
        count = Gather (extents, last)
        {_max_boxes(max_output_boxes_per_class)}
        overlap = Constant <value_float: float = {iou_threshold!r}> ()
        {threshold}
        selected = NonMaxSuppression <center_point_box = {int(center_point_box)}>
            (areas, many_scores, max_boxes, overlap{", min_score" if threshold else ""})
        {_PADDED if many else _INDICES}
    """


def _max_boxes(limit: int) -> str:
    if limit == 0:
        return "max_boxes = Identity (count)"
    return f"""
        limit = Constant <value = int64[1] {{{limit}}}> ()
        max_boxes = Min (count, limit)
    """


# One set of boxes and one of scores, or many.
_ONE = """
        pair = Constant <value = int64[2] {0, 1}> ()
        many_boxes = Unsqueeze (boxes, first)
        many_scores = Unsqueeze (scores, pair)
"""
_MANY = """
        many_boxes = Identity (boxes)
        many_scores = Identity (scores)
"""

_INDICES = """
        boxes_at = Constant <value = int64 {2}> ()
        keep = Gather <axis = 1> (selected, boxes_at)
"""

# Pads the selected boxes with rows of -1.
_PADDED = """
        two = Constant <value = int64[2] {0, 1}> ()
        sets = Gather (extents, two)
        number_of_sets = ReduceProd <keepdims = 1> (sets)
        rows = Mul (number_of_sets, max_boxes)
        selected_shape = Shape (selected)
        kept = Gather (selected_shape, first)
        missing = Sub (rows, kept)
        three = Constant <value = int64[1] {3}> ()
        shape = Concat <axis = 0> (missing, three)
        none = Constant <value = int64 {-1}> ()
        fill = Expand (none, shape)
        filled = Concat <axis = 0> (selected, fill)
        keep = Cast <to = 6> (filled)
"""
