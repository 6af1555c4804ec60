// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/convex_giou/convex_giou.h"
#include "ops/boxes/convex_giou/giou_slope.h"

namespace polyop {
namespace {

template <class T>
Status ConvexGiouCpu(const ConvexGiou&, const Context& context, Tensor<const T, 2> pointsets,
                     Tensor<const T, 2> polygons, Tensor<T, 2> output) {
  context.ParallelFor(output.dim(0), GrainFor(2500), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      ConvexGiouWithSlope(pointsets.data() + 18 * i, polygons.data() + 8 * i, output.data() + 19 * i);
    }
  });
  return Status::Ok();
}

POLYOP_PLAIN_CPU_KERNELS(ConvexGiou, ConvexGiouCpu, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
