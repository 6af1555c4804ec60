// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/rois/batch_indices.h"
#include "ops/rois/onnx_roi_align/onnx_roi_align.h"
#include "ops/rois/upright_pool.h"

namespace polyop {
namespace {

template <class T>
Status OnnxRoiAlignCpu(const OnnxRoiAlign& op, const Context& context, Tensor<const T, 4> x, Tensor<const T, 2> rois,
                       Tensor<const int64_t, 1> batch_indices, Tensor<T, 4> y) {
  POLYOP_RETURN_IF_ERROR(CheckBatchIndices(batch_indices, x.dim(0)));
  const RoiLevel<T> level{x.data(), x.dim(2), x.dim(3), op.spatial_scale};
  const UprightRois<T> boxes{.rows = rois.data(), .images = batch_indices.data()};
  return PoolRois<T>(context, {&level, 1}, x.dim(1), rois.dim(0), boxes, op.Pooling(), y.data());
}

POLYOP_PLAIN_CPU_KERNELS(OnnxRoiAlign, OnnxRoiAlignCpu, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
