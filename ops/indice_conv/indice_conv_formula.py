"""A sparse convolution's products by lists of pairs: for each place of the filter one gather, one product, one sum."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas import Call

DIFFERENTIABLE = (0, 1)


def formula(
    features: Tensor, filters: Tensor, indice_pairs: Tensor, indice_num_per_loc: Tensor, num_act_out: Tensor,
    is_subm: bool,
) -> Tensor:  # fmt: skip
    wide = torch.promote_types(features.dtype, torch.float32)  # sums are
    rows, weights = features.to(wide), filters.flatten(1, 3).to(wide)
    counts, outputs = indice_num_per_loc.tolist(), int(num_act_out)
    sums = rows.new_zeros(outputs, weights.shape[0])
    for place, count in enumerate(counts):
        if is_subm and place == len(counts) // 2:
            sums = sums + rows[:outputs] @ weights[:, place].T
            continue
        if is_subm and place > len(counts) // 2:
            count = counts[-1 - place]
        inputs_of, outputs_of = indice_pairs[:, place, :count].long()
        sums = sums.index_add(0, outputs_of, rows[inputs_of] @ weights[:, place].T)
    return sums.to(features.dtype)


def body(call: Call, *, is_subm: bool) -> str | None:
    if call.opset < 16:
        return None  # ScatterND does not add
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
        numbers = Gather (filter_extents, zero)
        places = Size (indice_num_per_loc)
        place_count = Reshape (places, one)
        matrices_shape = Concat <axis = 0> (numbers, place_count, channels)
        matrices = Reshape <allowzero = 1> (filters, matrices_shape)
        by_place = Transpose <perm = [1, 2, 0]> (matrices)
        pairs = Cast <to = 7> (indice_pairs)
        inputs_of = Gather <axis = 0> (pairs, start)
        outputs_of = Gather <axis = 0> (pairs, step)
        pair_extents = Shape (inputs_of)
        last = Gather (pair_extents, step)
        columns = Range (start, last, step)
        told = Cast <to = 7> (indice_num_per_loc)
        {_SUBM_LIMITS if is_subm else "limits = Identity (told)"}
        limit = Unsqueeze (limits, one)
        is_pair = Less (columns, limit)
        in_rows = Where (is_pair, inputs_of, count)
        wanted = Cast <to = 7> (num_act_out)
        out_count = Reshape (wanted, one)
        out_rows = Where (is_pair, outputs_of, out_count)
        gathered = Gather (padded, in_rows)
        products = MatMul (gathered, by_place)
        out_count_and_one = Add (out_count, one)
        sums_shape = Concat <axis = 0> (out_count_and_one, numbers)
        nothing = Expand (blank, sums_shape)
        last_axis = Constant <value = int64[1] {{-1}}> ()
        targets = Unsqueeze (out_rows, last_axis)
        sums = ScatterND <reduction = "add"> (nothing, targets, products)
        kept = Slice (sums, zero, out_count, zero)
        {_SUBM_CENTRE if is_subm else "out = Identity (kept)"}
    """


# Behind the centre a place has its mirror's count; at the centre each row feeds its own output, without pairs.
_SUBM_LIMITS = """
        two = Constant <value = int64 {2}> ()
        centre = Div (places, two)
        numbers_of_places = Range (start, places, step)
        is_behind = Greater (numbers_of_places, centre)
        is_centre = Equal (numbers_of_places, centre)
        from_end = Sub (places, numbers_of_places)
        mirrored = Sub (from_end, step)
        of_mirrors = Gather (told, mirrored)
        of_sides = Where (is_behind, of_mirrors, told)
        limits = Where (is_centre, start, of_sides)
"""
_SUBM_CENTRE = """
        own_rows = Slice (features, zero, out_count, zero)
        centre_matrix = Gather <axis = 0> (by_place, centre)
        own_products = MatMul (own_rows, centre_matrix)
        out = Add (kept, own_products)
"""
