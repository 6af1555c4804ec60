// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/dcn_v4/dcn_v4.h"
#include "ops/deform/dcn_window_cuda.h"

namespace polyop {
namespace {

template <class T>
Status DcnV4Cuda(const DcnV4& op, const CudaContext& cuda, Tensor<const T, 4> input, Tensor<const T, 4> offset_mask,
                 Tensor<T, 4> output) {
  const auto data = DcnWindowData<T>::Packed(op, offset_mask.data(), offset_mask.dim(3));
  return SumDcnWindowsCuda<T>(op, cuda, input, data, output);
}

POLYOP_CUDA_KERNELS(DcnV4, DcnV4Cuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
