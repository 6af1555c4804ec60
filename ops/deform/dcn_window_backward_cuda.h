// SPDX-License-Identifier: Apache-2.0
// The gradients of DCNv3 and DCNv4 on the GPU: those of deformable attention with one level.
#pragma once

#include "ops/deform/dcn_window_cuda.h"
#include "ops/deform/deform_attn_backward_cuda.h"

namespace polyop {

/// Writes gradients of offsets and masks, which have the layout of `data`. Those that are not requested are null.
template <class T>
struct DcnWindowGrads {
  T *offset, *mask;
  DcnWindowData<T> data;
  Divider groups;
  float scale;

  static DcnWindowGrads Of(const DcnWindowRule& op, const DcnWindowData<T>& data, T* offset, T* mask) {
    return {offset, mask, data, Divider(op.group), op.offset_scale};
  }

  POLYOP_DEVICE void Write(int64_t pair, int64_t p, const AttnTaps&, const BilinearSlopes& grad) const {
    int64_t g;
    const int64_t pixel = groups.Split(pair, &g);
    if (mask != nullptr) mask[pixel * data.mask_step + g * data.mask_group + p] = FromFloat<T>(grad.factor);
    if (offset == nullptr) return;
    T* const to = offset + pixel * data.offset_step + g * data.offset_group + 2 * p;
    to[0] = FromFloat<T>(grad.x * scale);
    to[1] = FromFloat<T>(grad.y * scale);
  }
};

/// Computes the gradients of SumDcnWindowsCuda: that of the input if it exists, those of offsets and masks by
/// `of_samples` if `sampled`.
template <class T>
Status SumDcnWindowsBackwardCuda(const DcnWindowRule& op, const CudaContext& cuda,
                                 const Tensor<const T, 4>& grad_output, const Tensor<const T, 4>& input,
                                 const DcnWindowData<T>& data, const std::optional<Tensor<T, 4>>& grad_input,
                                 bool sampled, const DcnWindowGrads<T>& of_samples) {
  POLYOP_RETURN_IF_ERROR(CheckDcnPixels(input.shape()));
  const DcnWindow window(op, input.shape(), grad_output.shape());
  const Tensor<const T, 4> value = DcnValueOf(op, input);
  const DcnWindowSamples<T> samples = DcnSamplesOf(op, value, window, data);
  return DeformAttnBackwardCuda(cuda, grad_output.data(), value, window.out_pixels, samples, grad_input, sampled,
                                of_samples);
}

}  // namespace polyop
