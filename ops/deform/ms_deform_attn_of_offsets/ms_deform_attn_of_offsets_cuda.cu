// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/deform_attn_cuda.h"
#include "ops/deform/ms_deform_attn_of_offsets/ms_deform_attn_of_offsets.h"

namespace polyop {
namespace {

template <class T, class I>
Status MsDeformAttnOfOffsetsCuda(const MsDeformAttnOfOffsets&, const CudaContext& cuda, Tensor<const T, 4> value,
                                 Tensor<const I, 2> shapes, Tensor<const T, 4> references, Tensor<const T, 4> offsets,
                                 Tensor<const T, 4> logits, Tensor<T, 4> output) {
  const auto found = OffsetSamplesOf(value, shapes, references, offsets.data(), logits);
  return DeformAttnCuda(cuda, value, references.dim(1), found, output.data());
}

POLYOP_CUDA_KERNELS(MsDeformAttnOfOffsets, MsDeformAttnOfOffsetsCuda, (float, int32_t), (float, int64_t),
                    (Half, int32_t), (Half, int64_t), (BFloat16, int32_t), (BFloat16, int64_t));

}  // namespace
}  // namespace polyop
