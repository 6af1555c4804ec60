# SPDX-License-Identifier: Apache-2.0
"""ONNX's NonMaxSuppression per class, then the TopK of an image.

The boxes of one class of one image are a set. Each function returns the nodes of one step, in the order of `body`.
"""

from __future__ import annotations

from typing import Any

from polyop.formulas import Call


def _sizes() -> str:
    """Returns constants and the numbers of images, boxes of an image (`count`), classes and sets."""
    return """
        zero = Constant <value = int64[1] {0}> ()
        one = Constant <value = int64[1] {1}> ()
        two = Constant <value = int64[1] {2}> ()
        four = Constant <value = int64[1] {4}> ()
        all_of_them = Constant <value = int64[1] {-1}> ()
        extents = Shape (scores)
        images = Gather (extents, zero)
        count = Gather (extents, one)
        classes = Gather (extents, two)
        sets = Mul (images, classes)
    """


def _sets(background_label_id: int) -> str:
    """Returns the boxes and scores of each set. `lowest` is the score of what cannot be a result."""
    return f"""
        full = Concat <axis = 0> (extents, four)
        each = Expand (boxes, full)
        by_class = Transpose <perm = [0, 2, 1, 3]> (each)
        boxes_shape = Concat <axis = 0> (sets, count, four)
        set_boxes = Reshape <allowzero = 1> (by_class, boxes_shape)
        scores_by_class = Transpose <perm = [0, 2, 1]> (scores)
        large = Constant <value = float {{3e38}}> ()
        negative = Neg (large)
        lowest = Mul (negative, large)
        start = Constant <value = int64 {{0}}> ()
        step = Constant <value = int64 {{1}}> ()
        number_of_classes = Squeeze (classes, zero)
        class_row = Range (start, number_of_classes, step)
        class_column = Unsqueeze (class_row, one)
        background = Constant <value = int64 {{{background_label_id}}}> ()
        is_background = Equal (class_column, background)
        open_scores = Where (is_background, lowest, scores_by_class)
        scores_shape = Concat <axis = 0> (sets, one, count)
        set_scores = Reshape <allowzero = 1> (open_scores, scores_shape)
    """


def _best_of_sets(topk: int) -> str:
    """Returns the boxes with the highest scores of each set, `part` of them, which are compared."""
    limit = f"limit = Constant <value = int64[1] {{{topk}}}> ()" if topk > 0 else ""
    part = "Min (count, limit)" if topk > 0 else "Identity (count)"
    return f"""
        {limit}
        part = {part}
        best_scores, best = TopK <axis = 2, sorted = 1> (set_scores, part)
        best_rows = Squeeze (best, one)
        row_tuples = Unsqueeze (best_rows, all_of_them)
        best_boxes = GatherND <batch_dims = 1> (set_boxes, row_tuples)
    """


def _suppress(score_threshold: float, iou_threshold: float) -> str:
    """Returns `table`, the scores of these boxes: `lowest` for those that are suppressed."""
    return f"""
        overlap = Constant <value_float: float = {iou_threshold!r}> ()
        min_score = Constant <value_float: float = {score_threshold!r}> ()
        selected = NonMaxSuppression (best_boxes, best_scores, part, overlap, min_score)
        kept_scores = GatherND (best_scores, selected)
        table_shape = Concat <axis = 0> (sets, one, part)
        empty = Expand (lowest, table_shape)
        table = ScatterND (empty, selected, kept_scores)
    """


def _best_of_images(keep_topk: int) -> str:
    """Returns the results of each image. `top` has indices in an image's rows of all sets, `safe` those in all rows;
    where `is_valid` is false, `safe` is the index after them."""
    return f"""
        width = Mul (classes, part)
        image_shape = Concat <axis = 0> (images, width)
        image_scores = Reshape <allowzero = 1> (table, image_shape)
        keep = Constant <value = int64[1] {{{keep_topk}}}> ()
        spare_shape = Concat <axis = 0> (images, keep)
        spare = Expand (lowest, spare_shape)
        enough = Concat <axis = 1> (image_scores, spare)
        top_scores, top = TopK <axis = 1, sorted = 1> (enough, keep)
        is_valid = Greater (top_scores, lowest)
        number_of_images = Squeeze (images, zero)
        image_row = Range (start, number_of_images, step)
        image_column = Unsqueeze (image_row, one)
        image_start = Mul (image_column, width)
        position = Add (image_start, top)
        rows = Mul (images, width)
        safe = Where (is_valid, position, rows)
    """


def _boxes(clip_boxes: bool) -> str:
    """Returns `dets`, the boxes with their scores; zeros in unused rows."""
    high = "high = Constant <value = float {1}> ()" if clip_boxes else ""
    shown = "Clip (top_boxes, low, high)" if clip_boxes else "Identity (top_boxes)"
    return f"""
        flat_shape = Concat <axis = 0> (rows, four)
        flat = Reshape <allowzero = 1> (best_boxes, flat_shape)
        nothing = Constant <value = float[1, 4] {{0, 0, 0, 0}}> ()
        boxes_or_nothing = Concat <axis = 0> (flat, nothing)
        top_boxes = Gather (boxes_or_nothing, safe)
        low = Constant <value = float {{0}}> ()
        {high}
        shown = {shown}
        score_or_zero = Where (is_valid, top_scores, low)
        score_column = Unsqueeze (score_or_zero, two)
        dets = Concat <axis = 2> (shown, score_column)
    """


def _labels() -> str:
    """Returns `labels`, the classes; -1 in unused rows."""
    return """
        no_divisor = Max (part, one)
        label = Div (top, no_divisor)
        no_label = Constant <value = int64 {-1}> ()
        no_labels = Identity (all_of_them)
        label_or_none = Where (is_valid, label, no_label)
        labels = Cast <to = 6> (label_or_none)
    """


def _indices() -> str:
    """Returns `index`, the numbers of the boxes in the input, with the class if each class has its own boxes."""
    return """
        numbers = Reshape <allowzero = 1> (best_rows, rows)
        numbers_or_none = Concat <axis = 0> (numbers, no_labels)
        number = Gather (numbers_or_none, safe)
        box_extents = Shape (boxes)
        kinds = Gather (box_extents, two)
        many_kinds = Sub (kinds, one)
        capped = Min (many_kinds, one)
        class_offset = Mul (label, count)
        own_offset = Mul (class_offset, capped)
        own_number = Add (own_offset, number)
        number_or_none = Where (is_valid, own_number, no_label)
        index = Cast <to = 6> (number_or_none)
    """


def body(
    call: Call, *, background_label_id: int, topk: int, keep_topk: int, score_threshold: float, iou_threshold: float,
    clip_boxes: int, **_: Any,
) -> str:  # fmt: skip
    steps = (
        _sizes(),
        _sets(background_label_id),
        _best_of_sets(topk),
        _suppress(score_threshold, iou_threshold),
        _best_of_images(keep_topk),
        _boxes(bool(clip_boxes)),
        _labels(),
        _indices(),
    )
    return "".join(steps)
