// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/bezier_align/bezier_align.h"
#include "ops/rois/bezier_align/bezier_align_bins.h"
#include "ops/rois/pool_bins_cuda.h"

namespace polyop {
namespace {

template <class T>
Status BezierAlignCuda(const BezierAlign& op, const CudaContext& cuda, Tensor<const T, 4> input,
                       Tensor<const T, 2> rois, Tensor<T, 4> output) {
  const T* const row = rois.data();
  const int64_t height = input.dim(2), width = input.dim(3);
  return PoolBinsCuda(cuda, input, rois, output, [=] POLYOP_DEVICE(int64_t r, int64_t bin, const T* plane) {
    const BezierBins bins = BezierBins::Make(op, row + 17 * r);
    return AverageOfFreeBin(bins.y, bins.x, bins.Start(bin), plane, height, width);
  });
}

POLYOP_CUDA_KERNELS(BezierAlign, BezierAlignCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
