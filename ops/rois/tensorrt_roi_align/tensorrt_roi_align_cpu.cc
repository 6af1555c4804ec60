// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/rois/batch_indices.h"
#include "ops/rois/tensorrt_roi_align/tensorrt_roi_align.h"
#include "ops/rois/upright_pool.h"

namespace polyop {
namespace {

template <class T>
Status TensorrtRoiAlignI64(const TensorrtRoiAlign& op, const Context& context, Tensor<const T, 4> x,
                           Tensor<const T, 2> rois, Tensor<const int64_t, 1> batch_indices, Tensor<T, 4> y) {
  POLYOP_RETURN_IF_ERROR(CheckBatchIndices(batch_indices, x.dim(0)));
  const RoiLevel<T> level{x.data(), x.dim(2), x.dim(3), op.spatial_scale};
  const bool average = op.mode == TensorrtRoiAlign::Mode::kAvg;
  const RoiPooling how{op.output_height, op.output_width, op.sampling_ratio, op.aligned(), average, !average};
  const UprightRois<T> boxes{.rows = rois.data(), .images = batch_indices.data()};
  return PoolRois<T>(context, {&level, 1}, x.dim(1), rois.dim(0), boxes, how, y.data());
}

template <class T>
Status TensorrtRoiAlignI32(const TensorrtRoiAlign& op, const Context& context, Tensor<const T, 4> x,
                           Tensor<const T, 2> rois, Tensor<const int32_t, 1> batch_indices, Tensor<T, 4> y) {
  const Scratch<int64_t> wide = context.Allocate<int64_t>(batch_indices.size());
  if (!wide) return Internal("out of memory: ", batch_indices.size(), " indices");
  std::copy_n(batch_indices.data(), batch_indices.size(), wide.data());
  return TensorrtRoiAlignI64<T>(op, context, x, rois, Tensor<const int64_t, 1>(wide.data(), batch_indices.shape()), y);
}

POLYOP_PLAIN_CPU_KERNELS(TensorrtRoiAlign, TensorrtRoiAlignI32, float, Half, BFloat16);
POLYOP_PLAIN_CPU_KERNELS(TensorrtRoiAlign, TensorrtRoiAlignI64, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
