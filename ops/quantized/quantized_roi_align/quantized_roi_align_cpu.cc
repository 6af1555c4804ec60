// SPDX-License-Identifier: Apache-2.0
#include "ops/quantized/quantized_roi_align/quantized_roi_align.h"
#include "ops/rois/batch_indices.h"
#include "ops/rois/upright_pool.h"

namespace polyop {
namespace {

template <class I>
Status QuantizedRoiAlignCpu(const QuantizedRoiAlign& op, const Context& context, Tensor<const I, 4> x,
                            Tensor<const float, 2> rois, Tensor<const int64_t, 1> batch_indices, Tensor<I, 4> y) {
  POLYOP_RETURN_IF_ERROR(CheckBatchIndices(batch_indices, x.dim(0)));
  const RoiLevel<Q8> level{AsQ8(x).data(), x.dim(2), x.dim(3), op.spatial_scale};
  const UprightRois<float> boxes{.rows = rois.data(), .images = batch_indices.data()};
  return PoolQuantizedRois(context, level, x.dim(1), rois.dim(0), boxes, op.Pooling(), op.Codes<I>(), AsQ8(y).data());
}

POLYOP_PLAIN_CPU_KERNELS(QuantizedRoiAlign, QuantizedRoiAlignCpu, int8_t, uint8_t);

}  // namespace
}  // namespace polyop
