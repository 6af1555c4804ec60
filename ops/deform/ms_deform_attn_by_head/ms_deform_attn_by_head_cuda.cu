// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/deform_attn_cuda.h"
#include "ops/deform/ms_deform_attn_by_head/ms_deform_attn_by_head.h"

namespace polyop {
namespace {

template <class T, class I>
Status MsDeformAttnByHeadCuda(const MsDeformAttnByHead&, const CudaContext& cuda, Tensor<const T, 4> value,
                              Tensor<const I, 2> shapes, Tensor<const I, 1> starts, Tensor<const T, 6> locations,
                              Tensor<const T, 5> weights, Tensor<T, 4> output) {
  return DeformAttnAtLocationsCuda(cuda, value, shapes, starts, locations, weights.data(), output.data());
}

POLYOP_CUDA_KERNELS(MsDeformAttnByHead, MsDeformAttnByHeadCuda, (float, int64_t), (float, int32_t), (Half, int64_t),
                    (Half, int32_t), (BFloat16, int64_t), (BFloat16, int32_t));

}  // namespace
}  // namespace polyop
