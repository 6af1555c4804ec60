// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/deform_attn_backward_cuda.h"
#include "ops/deform/flash_deform_attn/flash_deform_attn_backward.h"

namespace polyop {
namespace {

// Writes the gradients of locations to the rows, and keeps those of the weights.
template <class T>
struct RowGrads {
  T* row;
  float* weight;
  int64_t samples;

  POLYOP_DEVICE void Write(int64_t pair, int64_t s, const AttnTaps& taps, const BilinearSlopes& grad) const {
    T* const location = row + pair * 3 * samples + 2 * s;
    location[0] = FromFloat<T>(grad.x * taps.width);
    location[1] = FromFloat<T>(grad.y * taps.height);
    weight[pair * samples + s] = grad.factor;
  }
};

template <class T, class I>
Status FlashDeformAttnBackwardCuda(const FlashDeformAttnBackward& op, const CudaContext& cuda,
                                   Tensor<const T, 3> grad_output, Tensor<const T, 4> value, Tensor<const I, 2> shapes,
                                   Tensor<const I, 1> starts, Tensor<const T, 4> loc_attn,
                                   std::optional<Tensor<T, 4>> grad_value, std::optional<Tensor<T, 4>> grad_loc_attn) {
  const int64_t samples = starts.dim(0) * op.points, queries = loc_attn.dim(1);
  const int64_t pairs = value.dim(0) * queries * value.dim(2);
  const RowSamples<T, I> found{{shapes.data(), starts.data(), value.dim(1)}, loc_attn.data(), op.points, samples};
  RowGrads<T> sink{nullptr, nullptr, samples};
  if (grad_loc_attn) sink = {grad_loc_attn->data(), cuda.Allocate<float>(pairs * samples), samples};
  POLYOP_RETURN_IF_ERROR(DeformAttnBackwardCuda(cuda, grad_output.data(), value, queries, found, grad_value,
                                                grad_loc_attn.has_value(), sink));
  if (!grad_loc_attn) return cuda.Check();
  return SoftmaxOfLogitsBackwardCuda(cuda, pairs, samples, sink.weight, loc_attn.data() + 2 * samples,
                                     sink.row + 2 * samples, 3 * samples);
}

POLYOP_ATOMIC_CUDA_KERNELS(FlashDeformAttnBackward, FlashDeformAttnBackwardCuda, (float, int32_t), (float, int64_t),
                           (Half, int32_t), (Half, int64_t), (BFloat16, int32_t), (BFloat16, int64_t));

}  // namespace
}  // namespace polyop
