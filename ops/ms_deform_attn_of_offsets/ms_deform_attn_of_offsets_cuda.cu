#include "families/deform_attn/deform_attn_cuda.h"
#include "ops/ms_deform_attn_of_offsets/ms_deform_attn_of_offsets.h"

namespace polyop {
namespace {

// Samples at offsets from reference points, weighted by the softmax of logits.
template <class T, class I>
struct OffsetSamples {
  using Common = SoftmaxOfLogits;
  AttnLevelsCuda<I> levels;
  const T *reference, *offset, *logit;
  int64_t heads, groups, points, samples;

  POLYOP_HD Common CommonOf(int64_t pair) const { return Common::Of(logit + pair * samples, samples); }
  POLYOP_HD ZeroPaddedSample At(int64_t pair, int64_t s, const Common& common) const {
    const int64_t at = pair * samples + s;
    const AttnLevel level = levels.At(s / points);
    const T* const point = reference + (pair / heads * groups + s % points % groups) * 2;
    const float x = ToFloat(point[0]) * static_cast<float>(level.width) + ToFloat(offset[2 * at]) - 0.5f;
    const float y = ToFloat(point[1]) * static_cast<float>(level.height) + ToFloat(offset[2 * at + 1]) - 0.5f;
    return levels.Sample(level, y, x, common.Weight(logit[at]));
  }
};

template <class T, class I>
Status MsDeformAttnOfOffsetsCuda(const MsDeformAttnOfOffsets&, const CudaContext& cuda, Tensor<const T, 4> value,
                                 Tensor<const I, 2> shapes, Tensor<const T, 4> references, Tensor<const T, 4> offsets,
                                 Tensor<const T, 4> logits, Tensor<T, 4> output) {
  const int64_t samples = logits.dim(3), points = samples / std::max<int64_t>(shapes.dim(0), 1);
  const OffsetSamples<T, I> found{{shapes.data(), nullptr, value.dim(1)},
                                  references.data(),
                                  offsets.data(),
                                  logits.data(),
                                  value.dim(2),
                                  references.dim(3) / 2,
                                  points,
                                  samples};
  return DeformAttnCuda(cuda, value, references.dim(1), found, output.data());
}

POLYOP_CUDA_KERNELS(MsDeformAttnOfOffsets, MsDeformAttnOfOffsetsCuda, (float, int32_t), (float, int64_t),
                    (Half, int32_t), (Half, int64_t), (BFloat16, int32_t), (BFloat16, int64_t));

}  // namespace
}  // namespace polyop
