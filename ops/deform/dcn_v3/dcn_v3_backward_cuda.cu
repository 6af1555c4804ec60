// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/dcn_v3/dcn_v3_backward.h"
#include "ops/deform/dcn_window_backward_cuda.h"

namespace polyop {
namespace {

template <class T>
Status DcnV3BackwardCuda(const DcnV3Backward& op, const CudaContext& cuda, Tensor<const T, 4> grad_output,
                         Tensor<const T, 4> input, Tensor<const T, 4> offset, Tensor<const T, 4> mask,
                         std::optional<Tensor<T, 4>> grad_input, std::optional<Tensor<T, 4>> grad_offset,
                         std::optional<Tensor<T, 4>> grad_mask) {
  const auto data = DcnWindowData<T>::Separate(op, offset.data(), mask.data());
  const auto of_samples = DcnWindowGrads<T>::Of(op, data, grad_offset ? grad_offset->data() : nullptr,
                                                grad_mask ? grad_mask->data() : nullptr);
  return SumDcnWindowsBackwardCuda<T>(op, cuda, grad_output, input, data, grad_input, grad_offset || grad_mask,
                                      of_samples);
}

POLYOP_ATOMIC_CUDA_KERNELS(DcnV3Backward, DcnV3BackwardCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
