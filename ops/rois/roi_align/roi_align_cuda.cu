// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/roi_align/roi_align.h"
#include "ops/rois/roi_pool_cuda.h"

namespace polyop {
namespace {

template <class T>
Status RoiAlignCuda(const RoiAlign& op, const CudaContext& cuda, Tensor<const T, 4> input, Tensor<const T, 2> rois,
                    Tensor<T, 4> output) {
  RoiPyramid<T> pyramid{{}, input.dim(0), input.dim(1)};
  pyramid.level[0] = {input.data(), input.dim(2), input.dim(3), op.spatial_scale};
  const RoiPooling how{op.output_height, op.output_width, op.sampling_ratio, op.aligned,
                       op.mode == RoiAlign::Mode::kAvg};
  return PoolRoisCuda<T>(cuda, pyramid, {rois.data()}, rois.dim(0), how, output.data());
}

POLYOP_CUDA_KERNELS(RoiAlign, RoiAlignCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
