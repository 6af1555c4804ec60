#include "families/deform_conv/window_cuda.h"
#include "ops/dcn_v4/dcn_v4.h"

namespace polyop {
namespace {

template <class T>
Status DcnV4Cuda(const DcnV4& op, const CudaContext& cuda, Tensor<const T, 4> input, Tensor<const T, 4> offset_mask,
                 Tensor<T, 4> output) {
  const auto data = WindowData<T>::Together(op, offset_mask.data(), offset_mask.dim(3));
  return SumDeformWindowsCuda<T>(op, cuda, input, data, output);
}

POLYOP_CUDA_KERNEL(DcnV4, DcnV4F32, DcnV4Cuda<float>);
POLYOP_CUDA_KERNEL(DcnV4, DcnV4F16, DcnV4Cuda<Half>);
POLYOP_CUDA_KERNEL(DcnV4, DcnV4BF16, DcnV4Cuda<BFloat16>);

}  // namespace
}  // namespace polyop
