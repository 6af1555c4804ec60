// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/box_iou_quadri/box_iou_quadri.h"
#include "ops/boxes/convex_pairs.h"

namespace polyop {
namespace {

template <class T>
Status Measure(const BoxIouQuadri& op, const Context& context, int64_t batches, int64_t rows, int64_t columns,
               const T* boxes_a, const T* boxes_b, T* overlap) {
  const Scratch<ConvexPolygon> a = context.Allocate<ConvexPolygon>(batches * rows);
  const Scratch<ConvexPolygon> b = context.Allocate<ConvexPolygon>(batches * columns);
  if (!a || !b) return Internal("out of memory: ", batches * rows, " and ", batches * columns, " quadrilaterals");
  for (int64_t i = 0; i < a.size(); ++i) a[i] = ConvexPolygon::HullOf<4>(boxes_a + 8 * i);
  for (int64_t i = 0; i < b.size(); ++i) b[i] = ConvexPolygon::HullOf<4>(boxes_b + 8 * i);
  return MeasureConvexPairs(context, batches, rows, columns, a.data(), b.data(), op.mode == BoxIouQuadri::Mode::kIof,
                            overlap);
}

template <class T>
Status BoxIouQuadriCpu(const BoxIouQuadri& op, const Context& context, Tensor<const T, 2> boxes_a,
                       Tensor<const T, 2> boxes_b, Tensor<T, 2> overlap) {
  return Measure(op, context, 1, boxes_a.dim(0), boxes_b.dim(0), boxes_a.data(), boxes_b.data(), overlap.data());
}

template <class T>
Status BoxIouQuadriOfBatchesCpu(const BoxIouQuadri& op, const Context& context, Tensor<const T, 3> boxes_a,
                                Tensor<const T, 3> boxes_b, Tensor<T, 3> overlap) {
  return Measure(op, context, boxes_a.dim(0), boxes_a.dim(1), boxes_b.dim(1), boxes_a.data(), boxes_b.data(),
                 overlap.data());
}

POLYOP_PLAIN_CPU_KERNELS(BoxIouQuadri, BoxIouQuadriCpu, float, Half, BFloat16);
POLYOP_PLAIN_CPU_KERNELS(BoxIouQuadri, BoxIouQuadriOfBatchesCpu, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
