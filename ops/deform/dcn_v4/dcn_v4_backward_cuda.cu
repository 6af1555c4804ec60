// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/dcn_v4/dcn_v4_backward.h"
#include "ops/deform/dcn_window_backward_cuda.h"

namespace polyop {
namespace {

// Sets the padding of rows to 0.
template <class T>
Status ClearPadding(const CudaContext& cuda, int64_t rows, int64_t width, int64_t used, T* to) {
  const Divider padding(width - used);
  return ForEach(cuda, rows * (width - used), [=] POLYOP_DEVICE(int64_t i) {
    int64_t column;
    const int64_t row = padding.Split(i, &column);
    to[row * width + used + column] = FromFloat<T>(0);
  });
}

template <class T>
Status DcnV4BackwardCuda(const DcnV4Backward& op, const CudaContext& cuda, Tensor<const T, 4> grad_output,
                         Tensor<const T, 4> input, Tensor<const T, 4> offset_mask,
                         std::optional<Tensor<T, 4>> grad_input, std::optional<Tensor<T, 4>> grad_offset_mask) {
  const int64_t width = offset_mask.dim(3), rows = offset_mask.size() / std::max<int64_t>(width, 1);
  const auto data = DcnWindowData<T>::Packed(op, offset_mask.data(), width);
  DcnWindowGrads<T> of_samples = DcnWindowGrads<T>::Of(op, data, nullptr, nullptr);
  if (grad_offset_mask) {
    T* const to = grad_offset_mask->data();
    of_samples.offset = to;
    of_samples.mask = to + 2 * op.points();
    POLYOP_RETURN_IF_ERROR(ClearPadding(cuda, rows, width, 3 * op.group * op.points(), to));
  }
  return SumDcnWindowsBackwardCuda<T>(op, cuda, grad_output, input, data, grad_input, grad_offset_mask.has_value(),
                                      of_samples);
}

POLYOP_ATOMIC_CUDA_KERNELS(DcnV4Backward, DcnV4BackwardCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
