// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/bezier_align/bezier_align_backward.h"
#include "ops/rois/bezier_align/bezier_align_bins.h"
#include "ops/rois/free_bins_cuda.h"

namespace polyop {
namespace {

template <class T>
struct BezierBinGrads : BinGrads<T> {
  BezierAlign op;
  int64_t height, width;

  POLYOP_HD FreeBins<BezierBins> Roi(int64_t r) const { return {BezierBins::Make(op, this->Row(r)), height, width}; }
};

template <class T>
Status BezierAlignBackwardCuda(const BezierAlignBackward& op, const CudaContext& cuda, Tensor<const T, 4> grad_output,
                               Tensor<const T, 4> input, Tensor<const T, 2> rois, Tensor<T, 4> grad_input) {
  const BezierBinGrads<T> grads{BinGrads<T>::Of(rois, grad_output), op, input.dim(2), input.dim(3)};
  return ScatterBinsCuda<T>(cuda, rois.dim(0), grads.bins, grads, grad_input);
}

POLYOP_ATOMIC_CUDA_KERNELS(BezierAlignBackward, BezierAlignBackwardCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
