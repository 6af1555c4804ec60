// All pairs of two sets of convex polygons.
#pragma once

#include "core/context.h"
#include "core/status.h"
#include "families/boxes/convex_polygons.h"

namespace polyop {

/// overlap[b, i, k] is Share(a[b, i], b[b, k], of_first), on the CPU. T: f32, f16, bf16.
template <class T>
Status MeasureConvexPairs(const Context& context, int64_t batches, int64_t rows, int64_t columns,
                          const ConvexPolygon* a, const ConvexPolygon* b, bool of_first, T* overlap);

}  // namespace polyop
