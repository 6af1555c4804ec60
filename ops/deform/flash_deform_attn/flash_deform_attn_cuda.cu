// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/deform_attn_cuda.h"
#include "ops/deform/flash_deform_attn/flash_deform_attn.h"

namespace polyop {
namespace {

template <class T, class I>
Status FlashDeformAttnCuda(const FlashDeformAttn& op, const CudaContext& cuda, Tensor<const T, 4> value,
                           Tensor<const I, 2> shapes, Tensor<const I, 1> starts, Tensor<const T, 4> loc_attn,
                           Tensor<T, 3> output) {
  const RowSamples<T, I> found{
      {shapes.data(), starts.data(), value.dim(1)}, loc_attn.data(), op.points, starts.dim(0) * op.points};
  return DeformAttnCuda(cuda, value, loc_attn.dim(1), found, output.data());
}

POLYOP_CUDA_KERNELS(FlashDeformAttn, FlashDeformAttnCuda, (float, int32_t), (float, int64_t), (Half, int32_t),
                    (Half, int64_t), (BFloat16, int32_t), (BFloat16, int64_t));

}  // namespace
}  // namespace polyop
