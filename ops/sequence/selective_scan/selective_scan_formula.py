# SPDX-License-Identifier: Apache-2.0
"""The selective scan. In torch, steps are composed in pairs (Hillis and Steele, Data Parallel Algorithms, 1986), which
is exact for any decay, in about log2(length) passes; in ONNX it is a Scan, whose body is one step."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import softplus

from polyop.formulas import Call, NoBodyError

DIFFERENTIABLE = (0, 1, 2, 3, 4, 5, 6, 7, 8)


def formula(
    u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor, D: Tensor | None, z: Tensor | None,  # noqa: N803
    delta_bias: Tensor | None, initial_state: Tensor | None, *, delta_softplus: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    batch, dim, length = u.shape
    groups, states = B.shape[1:3]
    channels = dim // groups if groups else 0
    steps, x = delta.to(A.dtype), u.to(A.dtype)
    if delta_bias is not None:
        steps = steps + delta_bias[:, None]
    if delta_softplus:
        steps = softplus(steps)

    def of_channels(coefficients: Tensor) -> Tensor:
        """[batch, groups, states, length] -> [batch, dim, states, length]"""
        each = coefficients.to(A.dtype)[:, :, None].expand(batch, groups, channels, states, length)
        return each.reshape(batch, dim, states, length)

    decay = torch.exp(steps[:, :, None] * A[:, :, None])
    term = (steps * x)[:, :, None] * of_channels(B)
    step = 1
    while step < length:
        term = torch.cat([term[..., :step], term[..., step:] + decay[..., step:] * term[..., :-step]], 3)
        decay = torch.cat([decay[..., :step], decay[..., step:] * decay[..., :-step]], 3)
        step *= 2
    state = term if initial_state is None else term + decay * initial_state[..., None]
    y = (state * of_channels(C)).sum(2)
    if D is not None:
        y = y + D[:, None] * x
    if z is not None:
        gate = z.to(A.dtype)
        y = y * (gate * gate.sigmoid())
    if length > 0:
        return y.to(u.dtype), state[..., -1].clone()
    return y.to(u.dtype), A.new_zeros(batch, dim, states) if initial_state is None else initial_state.clone()


def _padded(name: str, result: str) -> str:
    """A Scan of no steps, or over slices without elements, ends the process in ONNX Runtime: pads extents of 0 to 1."""
    return f"""
        {result}_extents = Shape ({name})
        {result}_zeros = Sub ({result}_extents, {result}_extents)
        {result}_wide = Max ({result}_extents, one)
        {result}_missing = Sub ({result}_wide, {result}_extents)
        {result}_pads = Concat <axis = 0> ({result}_zeros, {result}_missing)
        {result} = Pad ({name}, {result}_pads)
    """


def body(call: Call, *, delta_softplus: bool) -> str:
    if call.opset < 14:
        raise NoBodyError(f"expected opset 14 or later, got {call.opset}")
    biased = "biases = Unsqueeze (delta_bias, one)\n biased = Add (delta, biases)"
    skipped = "skips = Unsqueeze (D, one)\n skipped = Mul (u, skips)\n sums = Add (y, skipped)"
    gated = "sigmoid = Sigmoid (z)\n gate = Mul (z, sigmoid)\n output = Mul (sums, gate)"
    first = "Reshape (initial_state, of_states)" if call.has("initial_state") else "Expand (nothing, of_states)"
    return f"""
        zero = Constant <value = int64[1] {{0}}> ()
        one = Constant <value = int64[1] {{1}}> ()
        two = Constant <value = int64[1] {{2}}> ()
        three = Constant <value = int64[1] {{3}}> ()
        nothing = Constant <value = float {{0}}> ()
        extents = Shape (u)
        batch = Gather (extents, zero)
        dim = Gather (extents, one)
        length = Gather (extents, two)
        coefficients = Shape (B)
        groups = Gather (coefficients, one)
        states = Gather (coefficients, two)
        groups_or_one = Max (groups, one)
        channels = Div (dim, groups_or_one)
        of_steps = Concat <axis = 0> (batch, groups, channels, length)
        of_rates = Concat <axis = 0> (groups, channels, states)
        of_states = Concat <axis = 0> (batch, groups, channels, states)
        {biased if call.has("delta_bias") else "biased = Identity (delta)"}
        sizes = {"Softplus" if delta_softplus else "Identity"} (biased)
        products = Mul (sizes, u)
        grouped_sizes = Reshape <allowzero = 1> (sizes, of_steps)
        grouped_products = Reshape <allowzero = 1> (products, of_steps)
        grouped_rates = Reshape <allowzero = 1> (A, of_rates)
        grouped_state = {first.replace("Reshape (", "Reshape <allowzero = 1> (")}
        {_padded("grouped_sizes", "all_sizes")}
        {_padded("grouped_products", "all_products")}
        {_padded("grouped_rates", "rates")}
        {_padded("grouped_state", "first_state")}
        {_padded("B", "all_b")}
        {_padded("C", "all_c")}
        wide_state, wide_y = Scan <num_scan_inputs = 4, scan_input_axes = [3, 3, 3, 3], scan_output_axes = [3],
            body = one_step (float[n, g, e, s] state, float[n, g, e] size, float[n, g, e] product, float[n, g, s] b,
                float[n, g, s] c) => (float[n, g, e, s] next, float[n, g, e] sum) {{
                size_column = Unsqueeze (size, three)
                exponent = Mul (size_column, rates)
                decay = Exp (exponent)
                kept = Mul (decay, state)
                product_column = Unsqueeze (product, three)
                b_row = Unsqueeze (b, two)
                added = Mul (product_column, b_row)
                next = Add (kept, added)
                c_column = Unsqueeze (c, three)
                sum_column = MatMul (next, c_column)
                sum = Squeeze (sum_column, three)
            }}>
            (first_state, all_sizes, all_products, all_b, all_c)
        cut_y = Slice (wide_y, all_sizes_zeros, all_sizes_extents)
        cut_state = Slice (wide_state, first_state_zeros, first_state_extents)
        y = Reshape <allowzero = 1> (cut_y, extents)
        of_last = Concat <axis = 0> (batch, dim, states)
        last_state = Reshape <allowzero = 1> (cut_state, of_last)
        {skipped if call.has("D") else "sums = Identity (y)"}
        {gated if call.has("z") else "output = Identity (sums)"}
    """
