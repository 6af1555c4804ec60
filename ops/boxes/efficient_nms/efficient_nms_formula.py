# SPDX-License-Identifier: Apache-2.0
"""ONNX's NonMaxSuppression per class, then the TopK of an image."""

from __future__ import annotations

from typing import Any

from polyop.formulas import Call

# The greatest factor below 1: "IoU of at least x" is "IoU greater than the next smaller number".
_NEXT_SMALLER = 1 - 2**-24


def body(
    call: Call, *, score_threshold: float, iou_threshold: float, max_output_boxes: int, background_class: int,
    score_activation: bool, box_coding: str, class_agnostic: bool, **_: Any,
) -> str:  # fmt: skip
    per_class = call.rank(0) == 4
    return f"""
        zero = Constant <value = int64[1] {{0}}> ()
        one = Constant <value = int64[1] {{1}}> ()
        two = Constant <value = int64[1] {{2}}> ()
        four = Constant <value = int64[1] {{4}}> ()
        last = Constant <value = int64[1] {{-1}}> ()
        large = Constant <value = float {{3e38}}> ()
        negative = Neg (large)
        lowest = Mul (negative, large)
        extents = Shape (scores)
        images = Gather (extents, zero)
        count = Gather (extents, one)
        classes = Gather (extents, two)
        pairs = Mul (count, classes)
        {_corners(call, box_coding)}
        probability = Constant <value_float: float = {score_threshold!r}> ()
        {_LOGIT if score_activation else "min_score = Identity (probability)"}
        is_high = GreaterOrEqual (scores, min_score)
        start = Constant <value = int64 {{0}}> ()
        step = Constant <value = int64 {{1}}> ()
        number_of_classes = Squeeze (classes, zero)
        class_row = Range (start, number_of_classes, step)
        background = Constant <value = int64 {{{background_class}}}> ()
        is_background = Equal (class_row, background)
        is_class = Not (is_background)
        is_candidate = And (is_high, is_class)
        open_scores = Where (is_candidate, scores, lowest)
        {_sets(per_class, class_agnostic)}
        limit = Constant <value = int64[1] {{{max_output_boxes}}}> ()
        threshold = Constant <value_float: float = {iou_threshold!r}> ()
        factor = Constant <value = float {{{_NEXT_SMALLER}}}> ()
        below = Mul (threshold, factor)
        most = Constant <value = float {{1}}> ()
        overlap = Min (below, most)
        selected = NonMaxSuppression (set_boxes, set_scores, limit, overlap, negative)
        set_number = Gather <axis = 1> (selected, zero)
        class_number = Gather <axis = 1> (selected, one)
        box_number = Gather <axis = 1> (selected, two)
        {_positions(per_class, class_agnostic)}
        index = Concat <axis = 1> (image, position)
        table_shape = Concat <axis = 0> (images, pairs)
        table_of_scores = Reshape <allowzero = 1> (open_scores, table_shape)
        kept_scores = GatherND (table_of_scores, index)
        nothing_kept = Expand (lowest, table_shape)
        table = ScatterND (nothing_kept, index, kept_scores)
        spare_shape = Concat <axis = 0> (images, limit)
        spare = Expand (lowest, spare_shape)
        enough = Concat <axis = 1> (table, spare)
        top_scores, top = TopK <axis = 1, sorted = 1> (enough, limit)
        is_valid = Greater (top_scores, lowest)
        ones = Cast <to = 7> (is_valid)
        total = ReduceSum <keepdims = 1> (ones, one)
        num_detections = Cast <to = 6> (total)
        divisor = Max (classes, one)
        number = Div (top, divisor)
        first_of_box = Mul (number, classes)
        label = Sub (top, first_of_box)
        none = Constant <value = int64 {{0}}> ()
        label_or_none = Where (is_valid, label, none)
        detection_classes = Cast <to = 6> (label_or_none)
        number_or_none = Where (is_valid, number, none)
        detection_indices = Cast <to = 6> (number_or_none)
        shown = {"Sigmoid" if score_activation else "Identity"} (top_scores)
        low = Constant <value = float {{0}}> ()
        detection_scores = Where (is_valid, shown, low)
        rows = {"Identity (pairs)" if per_class else "Identity (count)"}
        row = Where (is_valid, {"top" if per_class else "number"}, rows)
        rows_shape = Concat <axis = 0> (images, rows, four)
        box_rows = Reshape <allowzero = 1> ({"each" if per_class else "corners"}, rows_shape)
        empty_shape = Concat <axis = 0> (images, one, four)
        empty = Expand (low, empty_shape)
        rows_or_empty = Concat <axis = 1> (box_rows, empty)
        row_tuples = Unsqueeze (row, last)
        detection_boxes = GatherND <batch_dims = 1> (rows_or_empty, row_tuples)
    """


_LOGIT = """
        certain = Constant <value = float {1}> ()
        others = Sub (certain, probability)
        log = Log (probability)
        log_of_others = Log (others)
        min_score = Sub (log, log_of_others)
"""


def _corners(call: Call, box_coding: str) -> str:
    """Decodes boxes, and anchors if there are any, to corners: fp32, of the rank of `boxes`."""
    halves = """
        head = Slice (boxes, zero, two, last)
        tail = Slice (boxes, two, four, last)
    """
    if call.has("anchors"):
        halves += f"""
        anchor_rows = {"Unsqueeze (anchors, two)" if call.rank(0) == 4 else "Identity (anchors)"}
        anchor_head = Slice (anchor_rows, zero, two, last)
        anchor_tail = Slice (anchor_rows, two, four, last)
        """
    if box_coding == "center_size":
        decoded = (
            """
        moved = Mul (head, anchor_tail)
        center = Add (moved, anchor_head)
        grown = Exp (tail)
        size = Mul (grown, anchor_tail)
        """
            if call.has("anchors")
            else """
        center = Identity (head)
        size = Identity (tail)
        """
        )
        return f"""{halves}{decoded}
        half = Constant <value = float {{0.5}}> ()
        reach = Mul (size, half)
        near = Sub (center, reach)
        far = Add (center, reach)
        corners = Concat <axis = -1> (near, far)
        """
    if not call.has("anchors"):
        return "corners = Identity (boxes)"
    return f"""{halves}
        box_near = Min (head, tail)
        box_far = Max (head, tail)
        anchor_near = Min (anchor_head, anchor_tail)
        anchor_far = Max (anchor_head, anchor_tail)
        near = Add (box_near, anchor_near)
        far = Add (box_far, anchor_far)
        corners = Concat <axis = -1> (near, far)
    """


def _sets(per_class: bool, class_agnostic: bool) -> str:
    """Returns statements for the boxes and scores of NonMaxSuppression: sets of boxes that may suppress each other."""
    if not per_class and class_agnostic:  # a box suppresses itself in its other classes
        return """
        labels = ArgMax <axis = 2, keepdims = 0> (open_scores)
        label_tuples = Unsqueeze (labels, last)
        best = GatherElements <axis = 2> (open_scores, label_tuples)
        set_boxes = Identity (corners)
        set_scores = Transpose <perm = [0, 2, 1]> (best)
        """
    if not per_class:
        return """
        set_boxes = Identity (corners)
        set_scores = Transpose <perm = [0, 2, 1]> (open_scores)
        """
    each = """
        each_shape = Concat <axis = 0> (extents, four)
        each = Expand (corners, each_shape)
    """
    if class_agnostic:
        return f"""{each}
        boxes_shape = Concat <axis = 0> (images, pairs, four)
        set_boxes = Reshape <allowzero = 1> (each, boxes_shape)
        scores_shape = Concat <axis = 0> (images, one, pairs)
        set_scores = Reshape <allowzero = 1> (open_scores, scores_shape)
        """
    return f"""{each}
        sets = Mul (images, classes)
        by_class = Transpose <perm = [0, 2, 1, 3]> (each)
        boxes_shape = Concat <axis = 0> (sets, count, four)
        set_boxes = Reshape <allowzero = 1> (by_class, boxes_shape)
        scores_by_class = Transpose <perm = [0, 2, 1]> (open_scores)
        scores_shape = Concat <axis = 0> (sets, one, count)
        set_scores = Reshape <allowzero = 1> (scores_by_class, scores_shape)
    """


def _positions(per_class: bool, class_agnostic: bool) -> str:
    """Returns statements for the image of each selected row, and its position: box * classes + class."""
    if per_class and class_agnostic:
        return """
        image = Identity (set_number)
        position = Identity (box_number)
        """
    label = """
        image = Identity (set_number)
        number_of_class = Identity (class_number)
    """
    if per_class:
        label = """
        image = Div (set_number, classes)
        first_set = Mul (image, classes)
        number_of_class = Sub (set_number, first_set)
        """
    elif class_agnostic:
        label = """
        image = Identity (set_number)
        set_and_box = Concat <axis = 1> (set_number, box_number)
        label_of_box = GatherND (labels, set_and_box)
        number_of_class = Unsqueeze (label_of_box, last)
        """
    return f"""{label}
        first_position = Mul (box_number, classes)
        position = Add (first_position, number_of_class)
    """
