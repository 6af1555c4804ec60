// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/deform_attn_cuda.h"
#include "ops/deform/ms_deform_attn/ms_deform_attn.h"

namespace polyop {
namespace {

template <class T, class I>
Status MsDeformAttnCuda(const MsDeformAttn&, const CudaContext& cuda, Tensor<const T, 4> value,
                        Tensor<const I, 2> shapes, Tensor<const I, 1> starts, Tensor<const T, 6> locations,
                        Tensor<const T, 5> weights, Tensor<T, 3> output) {
  return DeformAttnAtLocationsCuda(cuda, value, shapes, starts, locations, weights.data(), output.data());
}

POLYOP_CUDA_KERNELS(MsDeformAttn, MsDeformAttnCuda, (float, int64_t), (float, int32_t), (Half, int64_t),
                    (Half, int32_t), (BFloat16, int64_t), (BFloat16, int32_t));

}  // namespace
}  // namespace polyop
