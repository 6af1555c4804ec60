#include "core/block_reduce_cuda.h"
#include "ops/scaled_dot_product_attention/scaled_dot_product_attention.h"

namespace polyop {
namespace {

// A block for each query. Its scores stay in float, in scratch, until they are weights.
template <class T>
Status AttentionCuda(const ScaledDotProductAttention&, const CudaContext& cuda, Tensor<const T, 3> q,
                     Tensor<const T, 3> k, Tensor<const T, 3> v, std::optional<Tensor<const T, kAnyRank>> mask,
                     Tensor<T, 3> out, Tensor<T, 3> weights) {
  MaskStrides strides;
  if (mask) POLYOP_RETURN_IF_ERROR(MaskStrides::Of(mask->shape(), weights.shape(), &strides));
  const int64_t queries = q.dim(1), size = q.dim(2), keys = k.dim(1), values = v.dim(2), rows = q.dim(0) * queries;
  if (rows == 0) return Status::Ok();
  float* const scratch = cuda.Allocate<float>(weights.size());
  const T *from_q = q.data(), *from_k = k.data(), *from_v = v.data(), *mask_data = mask ? mask->data() : nullptr;
  T *const to_weights = weights.data(), *const to = out.data();
  const float scale = 1.0f / std::sqrt(static_cast<float>(size > 0 ? size : 1));
  constexpr int kThreads = 128;
  return ForBlocks(cuda, rows, kThreads, kThreads * 4 + 32, [=] POLYOP_DEVICE(Block& block) {
    float* const partial = block.Shared<float>(kThreads);
    float* const most = block.Shared<float>(1);
    const int64_t row = block.index, batch = row / queries;
    const T* const query = from_q + row * size;
    float* const scores = scratch + row * keys;
    block.ForThreads([&](int t) {
      float best = -INFINITY;
      for (int64_t s = t; s < keys; s += kThreads) {
        const T* const key = from_k + (batch * keys + s) * size;
        float sum = 0;
        for (int64_t e = 0; e < size; ++e) sum = std::fma(ToFloat(query[e]), ToFloat(key[e]), sum);
        sum *= scale;
        if (mask_data != nullptr) {
          sum += ToFloat(mask_data[batch * strides.batch + row % queries * strides.row + s * strides.column]);
        }
        scores[s] = sum;
        best = sum != sum || sum > best ? sum : best;
      }
      partial[t] = best;
    });
    ReduceBlock(block, partial, kThreads, [](float a, float b) { return a != a || a > b ? a : b; });
    block.ForThreads([&](int t) {
      if (t == 0) *most = partial[0];
    });
    block.ForThreads([&](int t) {
      float sum = 0;
      for (int64_t s = t; s < keys; s += kThreads) sum += scores[s] = std::exp(scores[s] - *most);
      partial[t] = sum;
    });
    ReduceBlock(block, partial, kThreads, [](float a, float b) { return a + b; });
    block.ForThreads([&](int t) {
      for (int64_t s = t; s < keys; s += kThreads) {
        scores[s] /= partial[0];
        to_weights[row * keys + s] = FromFloat<T>(scores[s]);
      }
    });
    block.ForThreads([&](int t) {
      for (int64_t c = t; c < values; c += kThreads) {
        float sum = 0;
        for (int64_t s = 0; s < keys; ++s) {
          sum = std::fma(scores[s], ToFloat(from_v[(batch * keys + s) * values + c]), sum);
        }
        to[row * values + c] = FromFloat<T>(sum);
      }
    });
  });
}

POLYOP_CUDA_KERNEL(ScaledDotProductAttention, AttentionF32, AttentionCuda<float>);
POLYOP_CUDA_KERNEL(ScaledDotProductAttention, AttentionF16, AttentionCuda<Half>);
POLYOP_CUDA_KERNEL(ScaledDotProductAttention, AttentionBF16, AttentionCuda<BFloat16>);

}  // namespace
}  // namespace polyop
