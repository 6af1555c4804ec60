// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/deform_attn_backward_cuda.h"
#include "ops/deform/ms_deform_attn_of_offsets/ms_deform_attn_of_offsets_backward.h"

namespace polyop {
namespace {

// Writes the gradients of offsets, adds those of reference points, which samples share, and keeps those of the weights.
// Those that are not requested are null.
template <class T, class I>
struct SharedOffsetGrads {
  OffsetSamples<T, I> of;
  float* reference;
  T* offset;
  float* weight;

  POLYOP_DEVICE void Write(int64_t pair, int64_t s, const AttnTaps& taps, const BilinearSlopes& grad) const {
    const int64_t at = pair * of.samples + s;
    if (weight != nullptr) weight[at] = grad.factor;
    if (offset != nullptr) {
      offset[2 * at] = FromFloat<T>(grad.x);
      offset[2 * at + 1] = FromFloat<T>(grad.y);
    }
    if (reference == nullptr) return;
    float* const point = reference + 2 * of.Point(pair, s);
    AtomicAdd(point, grad.x * taps.width);
    AtomicAdd(point + 1, grad.y * taps.height);
  }
};

template <class T, class I>
Status MsDeformAttnOfOffsetsBackwardCuda(
    const MsDeformAttnOfOffsetsBackward&, const CudaContext& cuda, Tensor<const T, 4> grad_output,
    Tensor<const T, 4> value, Tensor<const I, 2> shapes, Tensor<const T, 4> references, Tensor<const T, 4> offsets,
    Tensor<const T, 4> logits, std::optional<Tensor<T, 4>> grad_value, std::optional<Tensor<T, 4>> grad_references,
    std::optional<Tensor<T, 4>> grad_offsets, std::optional<Tensor<T, 4>> grad_logits) {
  const auto found = OffsetSamplesOf(value, shapes, references, offsets.data(), logits);
  const int64_t samples = found.samples, queries = references.dim(1), pairs = value.dim(0) * queries * value.dim(2);
  SharedOffsetGrads<T, I> sink{found, nullptr, grad_offsets ? grad_offsets->data() : nullptr, nullptr};
  if (grad_logits) sink.weight = cuda.Allocate<float>(pairs * samples);
  const auto compute = [&] {
    return DeformAttnBackwardCuda(cuda, grad_output.data(), value, queries, found, grad_value,
                                  grad_references || grad_offsets || grad_logits, sink);
  };
  if (grad_references && references.size() > 0) {
    // One channel, so that the samples are computed once.
    POLYOP_RETURN_IF_ERROR(
        SumAtomically(cuda, 1, 1, references.size(), grad_references->data(), [&](const ChannelSums& sums) {
          sink.reference = sums.data;
          return compute();
        }));
  } else {
    POLYOP_RETURN_IF_ERROR(compute());
  }
  if (!grad_logits) return cuda.Check();
  return SoftmaxOfLogitsBackwardCuda(cuda, pairs, samples, sink.weight, logits.data(), grad_logits->data(), samples);
}

POLYOP_ATOMIC_CUDA_KERNELS(MsDeformAttnOfOffsetsBackward, MsDeformAttnOfOffsetsBackwardCuda, (float, int32_t),
                           (float, int64_t), (Half, int32_t), (Half, int64_t), (BFloat16, int32_t),
                           (BFloat16, int64_t));

}  // namespace
}  // namespace polyop
