// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/riroi_align_rotated/orientation_shift.h"
#include "ops/rois/riroi_align_rotated/riroi_align_rotated_backward.h"
#include "ops/rois/scatter_bins_cuda.h"

namespace polyop {
namespace {

// The gradient of a channel is that of the two channels to which its orientation contributes.
template <class T>
struct ShiftedBinGrads : RotatedBinGrads<T> {
  int64_t orientations;

  POLYOP_HD float Grad(int64_t r, int64_t channel, int64_t bin) const {
    const auto shift = OrientationShift::Of(ToFloat(this->Row(r)[5]), orientations);
    if (!shift.finite) return 0;
    const int64_t o = channel % orientations, first = channel - o;
    // A gradient whose weight is 0 adds nothing, even if it is NaN.
    const float of_first = (1 - shift.part) * BinGrads<T>::Grad(r, first + shift.OfFirst(o), bin);
    if (!(shift.part > 0)) return of_first;
    return of_first + shift.part * BinGrads<T>::Grad(r, first + shift.OfSecond(o), bin);
  }
};

template <class T>
Status RiRoiAlignRotatedBackwardCuda(const RiRoiAlignRotatedBackward& op, const CudaContext& cuda,
                                     Tensor<const T, 4> grad_output, Tensor<const T, 4> input, Tensor<const T, 2> rois,
                                     Tensor<T, 4> grad_input) {
  const RoiPooling how{op.pooled_height, op.pooled_width, op.num_samples, false, true};
  const ShiftedBinGrads<T> grads{{BinGrads<T>::Of(rois, grad_output),
                                  {rois.data(), op.clockwise},
                                  input.dim(2),
                                  input.dim(3),
                                  op.spatial_scale,
                                  how},
                                 op.num_orientations};
  return ScatterBinsCuda<T>(cuda, rois.dim(0), grads.bins, grads, grad_input);
}

POLYOP_ATOMIC_CUDA_KERNELS(RiRoiAlignRotatedBackward, RiRoiAlignRotatedBackwardCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
