// SPDX-License-Identifier: Apache-2.0
// Measures all pairs of two sets of convex polygons.
#pragma once

#include "core/context.h"
#include "core/status.h"
#include "ops/boxes/convex_polygons.h"

namespace polyop {

/// Sets overlap[b, i, k] to IouOrIof(a[b, i], b[b, k], iof) on the CPU. T is f32, f16 or bf16.
template <class T>
Status MeasureConvexPairs(const Context& context, int64_t batches, int64_t rows, int64_t columns,
                          const ConvexPolygon* a, const ConvexPolygon* b, bool iof, T* overlap);

}  // namespace polyop
