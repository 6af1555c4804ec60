// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/dcn_v3/dcn_v3.h"
#include "ops/deform/dcn_window_cuda.h"

namespace polyop {
namespace {

template <class T>
Status DcnV3Cuda(const DcnV3& op, const CudaContext& cuda, Tensor<const T, 4> input, Tensor<const T, 4> offset,
                 Tensor<const T, 4> mask, Tensor<T, 4> output) {
  return SumDcnWindowsCuda<T>(op, cuda, input, DcnWindowData<T>::Separate(op, offset.data(), mask.data()), output);
}

POLYOP_CUDA_KERNELS(DcnV3, DcnV3Cuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
