# SPDX-License-Identifier: Apache-2.0
"""Nearest neighbours: TopK of all distances."""

from __future__ import annotations

from polyop.formulas import Call


def body(call: Call) -> str:
    self_query = not call.has("new_xyz")
    return f"""
        queries = Identity ({"xyz" if self_query else "new_xyz"})
        query_ends = Identity ({"offset" if self_query else "new_offset"})
        zero = Constant <value = int64[1] {{0}}> ()
        one = Constant <value = int64[1] {{1}}> ()
        points_f64 = Cast <to = 11> (xyz)
        queries_f64 = Cast <to = 11> (queries)
        points = Unsqueeze (points_f64, zero)
        from = Unsqueeze (queries_f64, one)
        difference = Sub (from, points)
        squares = Mul (difference, difference)
        x_at = Constant <value = int64 {{0}}> ()
        y_at = Constant <value = int64 {{1}}> ()
        z_at = Constant <value = int64 {{2}}> ()
        xx = Gather <axis = 2> (squares, x_at)
        yy = Gather <axis = 2> (squares, y_at)
        zz = Gather <axis = 2> (squares, z_at)
        xy = Add (xx, yy)
        square = Add (xy, zz)
        {_cloud_of("xyz", "offset", "point")}
        {_cloud_of("queries", "query_ends", "query")}
        point_clouds = Unsqueeze (point_cloud, zero)
        query_clouds = Unsqueeze (query_cloud, one)
        same = Equal (query_clouds, point_clouds)
        max_f32 = Constant <value = float {{3e38}}> ()
        beyond_f32 = Mul (max_f32, max_f32)
        beyond = Cast <to = 11> (beyond_f32)
        near = Less (square, beyond)
        is_neighbour = And (same, near)
        distances = Where (is_neighbour, square, beyond)
        sizes = Shape (queries)
        number = Gather (sizes, zero)
        samples = Reshape (nsample, one)
        shape = Concat <axis = 0> (number, samples)
        none_left = Expand (beyond, shape)
        enough = Concat <axis = 1> (distances, none_left)
        nearest, index = TopK <axis = 1, largest = 0, sorted = 1> (enough, samples)
        found = Less (nearest, beyond)
        index_i32 = Cast <to = 6> (index)
        no_neighbour = Constant <value = int32 {{-1}}> ()
        idx = Where (found, index_i32, no_neighbour)
        root = Sqrt (nearest)
        root_f32 = Cast <to = 1> (root)
        far = Constant <value = float {{100000}}> ()
        dist = Where (found, root_f32, far)
    """


def _cloud_of(points: str, ends: str, name: str) -> str:
    """Counts the clouds that end before each point."""
    return f"""
        {name}_extents = Shape ({points})
        {name}_first = Constant <value = int64 {{0}}> ()
        {name}_step = Constant <value = int64 {{1}}> ()
        {name}_number = Gather ({name}_extents, {name}_first)
        {name}_row = Range ({name}_first, {name}_number, {name}_step)
        {name}_column = Unsqueeze ({name}_row, one)
        {name}_past = GreaterOrEqual ({name}_column, {ends})
        {name}_past_f32 = Cast <to = 1> ({name}_past)
        {name}_ends_shape = Shape ({ends})
        {name}_ones_shape = Concat <axis = 0> ({name}_ends_shape, one)
        {name}_one = Constant <value = float {{1}}> ()
        {name}_ones = Expand ({name}_one, {name}_ones_shape)
        {name}_ends_before = MatMul ({name}_past_f32, {name}_ones)
        {name}_cloud = Squeeze ({name}_ends_before, one)
    """
