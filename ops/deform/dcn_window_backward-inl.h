// SPDX-License-Identifier: Apache-2.0
// The gradients of DCNv3 and DCNv4 on the CPU: those of deformable attention with one level. Compiled once per
// instruction set; include it from a kernel file.
#if defined(POLYOP_OPS_DEFORM_DCN_WINDOW_BACKWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_DEFORM_DCN_WINDOW_BACKWARD_INL_H_
#undef POLYOP_OPS_DEFORM_DCN_WINDOW_BACKWARD_INL_H_
#else
#define POLYOP_OPS_DEFORM_DCN_WINDOW_BACKWARD_INL_H_
#endif

#include "kernels/cpu/simd.h"
#include "ops/deform/dcn_window-inl.h"
#include "ops/deform/deform_attn_backward-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

/// Computes the gradients of SumDcnWindows. Those that are not needed are null; gradients of offsets and masks have the
/// layout of `data`.
template <class T>
Status SumDcnWindowsBackward(const DcnWindowRule& op, const Context& context, const Tensor<const T, 4>& grad_output,
                             const Tensor<const T, 4>& input, const DcnWindowData<T>& data, T* grad_input,
                             T* grad_offset, T* grad_mask) {
  POLYOP_RETURN_IF_ERROR(CheckDcnPixels(input.shape()));
  const Tensor<const T, 4> value(input.data(),
                                 {input.dim(0), input.dim(1) * input.dim(2), op.group, op.group_channels});
  const DcnSamples<T> samples(op, context, input.shape(), grad_output.shape(), data);
  POLYOP_RETURN_IF_ERROR(samples.Init());
  const int64_t groups = op.group, points = op.points();
  const auto finish = [&](int64_t pair, const AttnPositions&, const AttnPositions& grads) HWY_ATTR {
    const int64_t pixel = pair / groups, g = pair % groups;
    if (grad_mask != nullptr) {
      NarrowRow(grads.weight, points, grad_mask + pixel * data.mask_step + g * data.mask_group);
    }
    if (grad_offset == nullptr) return;
    for (int64_t p = 0; p < points; ++p) {
      grads.x[p] *= op.offset_scale;
      grads.y[p] *= op.offset_scale;
    }
    StorePositionGrads<false>(samples.levels(), grads, grad_offset + pixel * data.offset_step + g * data.offset_group);
  };
  const bool of_samples = grad_offset != nullptr || grad_mask != nullptr;
  return DeformAttnBackward<T>(context, grad_output.data(), value, samples.levels(),
                               grad_output.dim(1) * grad_output.dim(2), grad_input, of_samples, samples, finish);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
