#include "families/deform_conv/window_cuda.h"
#include "ops/dcn_v3/dcn_v3.h"

namespace polyop {
namespace {

template <class T>
Status DcnV3Cuda(const DcnV3& op, const CudaContext& cuda, Tensor<const T, 4> input, Tensor<const T, 4> offset,
                 Tensor<const T, 4> mask, Tensor<T, 4> output) {
  return SumDeformWindowsCuda<T>(op, cuda, input, WindowData<T>::Apart(op, offset.data(), mask.data()), output);
}

POLYOP_CUDA_KERNEL(DcnV3, DcnV3F32, DcnV3Cuda<float>);
POLYOP_CUDA_KERNEL(DcnV3, DcnV3F16, DcnV3Cuda<Half>);
POLYOP_CUDA_KERNEL(DcnV3, DcnV3BF16, DcnV3Cuda<BFloat16>);

}  // namespace
}  // namespace polyop
