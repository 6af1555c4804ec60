# SPDX-License-Identifier: Apache-2.0
"""Sparse convolution from lists of pairs: a gather, a matrix product and a sum for each position of the filter."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas import Call

DIFFERENTIABLE = (0, 1)


def formula(
    features: Tensor,
    filters: Tensor,
    indice_pairs: Tensor,
    indice_num_per_loc: Tensor,
    num_act_out: Tensor,
    is_subm: bool,
) -> Tensor:
    wide = torch.promote_types(features.dtype, torch.float32)  # the sums are in float
    rows, weights = features.to(wide), filters.flatten(1, 3).to(wide)
    counts, outputs = indice_num_per_loc.tolist(), int(num_act_out)
    sums = rows.new_zeros(outputs, weights.shape[0])
    for position, count in enumerate(counts):
        if is_subm and position == len(counts) // 2:
            sums = sums + rows[:outputs] @ weights[:, position].T
            continue
        if is_subm and position > len(counts) // 2:
            count = counts[-1 - position]
        inputs_of, outputs_of = indice_pairs[:, position, :count].long()
        sums = sums.index_add(0, outputs_of, rows[inputs_of] @ weights[:, position].T)
    return sums.to(features.dtype)


def body(call: Call, *, is_subm: bool) -> str | None:
    if call.opset < 16:
        return None  # ScatterND has no reduction
    return f"""
        zero = Constant <value = int64[1] {{0}}> ()
        one = Constant <value = int64[1] {{1}}> ()
        start = Constant <value = int64 {{0}}> ()
        step = Constant <value = int64 {{1}}> ()
        blank = Constant <value = float {{0}}> ()
        extents = Shape (features)
        count = Gather (extents, zero)
        channels = Gather (extents, one)
        row_shape = Concat <axis = 0> (one, channels)
        blank_row = Expand (blank, row_shape)
        padded = Concat <axis = 0> (features, blank_row)
        filter_extents = Shape (filters)
        filter_count = Gather (filter_extents, zero)
        positions_count = Size (indice_num_per_loc)
        position_count = Reshape (positions_count, one)
        matrices_shape = Concat <axis = 0> (filter_count, position_count, channels)
        matrices = Reshape <allowzero = 1> (filters, matrices_shape)
        by_position = Transpose <perm = [1, 2, 0]> (matrices)
        pairs = Cast <to = 7> (indice_pairs)
        inputs_of = Gather <axis = 0> (pairs, start)
        outputs_of = Gather <axis = 0> (pairs, step)
        pair_extents = Shape (inputs_of)
        last = Gather (pair_extents, step)
        columns = Range (start, last, step)
        counts_i64 = Cast <to = 7> (indice_num_per_loc)
        {_SUBM_LIMITS if is_subm else "limits = Identity (counts_i64)"}
        limit = Unsqueeze (limits, one)
        is_pair = Less (columns, limit)
        in_rows = Where (is_pair, inputs_of, count)
        outputs = Cast <to = 7> (num_act_out)
        out_count = Reshape (outputs, one)
        out_rows = Where (is_pair, outputs_of, out_count)
        gathered = Gather (padded, in_rows)
        products = MatMul (gathered, by_position)
        out_count_and_one = Add (out_count, one)
        sums_shape = Concat <axis = 0> (out_count_and_one, filter_count)
        nothing = Expand (blank, sums_shape)
        last_axis = Constant <value = int64[1] {{-1}}> ()
        targets = Unsqueeze (out_rows, last_axis)
        sums = ScatterND <reduction = "add"> (nothing, targets, products)
        kept = Slice (sums, zero, out_count, zero)
        {_SUBM_CENTRE if is_subm else "out = Identity (kept)"}
    """


# After the centre a position has the count of its mirror image. At the centre each row contributes to its own output,
# without pairs.
_SUBM_LIMITS = """
        two = Constant <value = int64 {2}> ()
        centre = Div (positions_count, two)
        positions = Range (start, positions_count, step)
        is_after_centre = Greater (positions, centre)
        is_centre = Equal (positions, centre)
        from_end = Sub (positions_count, positions)
        mirrored = Sub (from_end, step)
        of_mirrors = Gather (counts_i64, mirrored)
        of_sides = Where (is_after_centre, of_mirrors, counts_i64)
        limits = Where (is_centre, start, of_sides)
"""
_SUBM_CENTRE = """
        centre_rows = Slice (features, zero, out_count, zero)
        centre_matrix = Gather <axis = 0> (by_position, centre)
        centre_products = MatMul (centre_rows, centre_matrix)
        out = Add (kept, centre_products)
"""
