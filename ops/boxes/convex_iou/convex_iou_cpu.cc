// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/convex_iou/convex_iou.h"
#include "ops/boxes/convex_pairs.h"

namespace polyop {
namespace {

template <class T>
Status ConvexIouCpu(const ConvexIou&, const Context& context, Tensor<const T, 2> pointsets, Tensor<const T, 2> polygons,
                    Tensor<T, 2> ious) {
  const Scratch<ConvexPolygon> hulls = context.Allocate<ConvexPolygon>(pointsets.dim(0));
  const Scratch<ConvexPolygon> others = context.Allocate<ConvexPolygon>(polygons.dim(0));
  if (!hulls || !others) return Internal("out of memory: ", hulls.size(), " hulls, ", others.size(), " polygons");
  context.ParallelFor(hulls.size(), GrainFor(300), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) hulls[i] = ConvexPolygon::HullOf<9>(pointsets.data() + 18 * i);
  });
  for (int64_t k = 0; k < others.size(); ++k) others[k] = ConvexPolygon::HullOf<4>(polygons.data() + 8 * k);
  return MeasureConvexPairs(context, 1, hulls.size(), others.size(), hulls.data(), others.data(), false, ious.data());
}

POLYOP_PLAIN_CPU_KERNELS(ConvexIou, ConvexIouCpu, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
