// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/deform_attn_backward_cuda.h"
#include "ops/deform/ms_deform_attn_by_head/ms_deform_attn_by_head_backward.h"

namespace polyop {
namespace {

template <class T, class I>
Status MsDeformAttnByHeadBackwardCuda(const MsDeformAttnByHeadBackward&, const CudaContext& cuda,
                                      Tensor<const T, 4> grad_output, Tensor<const T, 4> value,
                                      Tensor<const I, 2> shapes, Tensor<const I, 1> starts,
                                      Tensor<const T, 6> locations, Tensor<const T, 5> weights,
                                      std::optional<Tensor<T, 4>> grad_value,
                                      std::optional<Tensor<T, 6>> grad_locations,
                                      std::optional<Tensor<T, 5>> grad_weights) {
  return DeformAttnAtLocationsBackwardCuda(cuda, grad_output.data(), value, shapes, starts, locations, weights.data(),
                                           grad_value, grad_locations, grad_weights);
}

POLYOP_ATOMIC_CUDA_KERNELS(MsDeformAttnByHeadBackward, MsDeformAttnByHeadBackwardCuda, (float, int64_t),
                           (float, int32_t), (Half, int64_t), (Half, int32_t), (BFloat16, int64_t),
                           (BFloat16, int32_t));

}  // namespace
}  // namespace polyop
