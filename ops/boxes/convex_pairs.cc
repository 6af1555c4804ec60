// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/convex_pairs.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/boxes/convex_pairs.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/boxes/box_pairs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class T>
Status MeasureConvex(const Context& context, int64_t batches, int64_t rows, int64_t columns, const ConvexPolygon* a,
                     const ConvexPolygon* b, bool iof, T* overlap) {
  return MeasurePairs<ConvexPolygon>(
      context, batches, rows, columns, [=](int64_t i) { return a[i]; }, [=](int64_t k) { return b[k]; },
      [](const ConvexPolygon& polygon) { return polygon.Bounds(); },
      [=](const ConvexPolygon& p, const ConvexPolygon& q) { return IouOrIof(p, q, iof); }, overlap);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_SIMD_TABLES(MeasureConvex, MeasureConvex);

template <class T>
Status MeasureConvexPairs(const Context& context, int64_t batches, int64_t rows, int64_t columns,
                          const ConvexPolygon* a, const ConvexPolygon* b, bool iof, T* overlap) {
  return POLYOP_SIMD(MeasureConvex, T)(context, batches, rows, columns, a, b, iof, overlap);
}
POLYOP_FOR_FLOATS(MeasureConvexPairs);
}  // namespace polyop
#endif
