// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda.h"
#include "ops/scatter/embedding_bag/embedding_bag.h"

namespace polyop {
namespace {

// Each thread reduces one column of a bag: the threads of a warp read a row at once. A bag outside of the indices, and
// an index outside of the table, become NaN.
template <class T, class I>
Status EmbeddingBagCuda(const EmbeddingBag& op, const CudaContext& cuda, Tensor<const T, 2> weight,
                        Tensor<const I, 1> indices, Tensor<const I, 1> offsets,
                        std::optional<Tensor<const T, 1>> per_sample_weights, Tensor<T, 2> output) {
  const int64_t rows = weight.dim(0), channels = weight.dim(1), count = indices.dim(0), ends = offsets.dim(0);
  const T *const table = weight.data(), *const weights = per_sample_weights ? per_sample_weights->data() : nullptr;
  const I *const index = indices.data(), *const starts = offsets.data();
  T* const to = output.data();
  const int64_t padding = op.padding_idx;
  const bool is_max = op.mode == EmbeddingBag::Mode::kMax, is_mean = op.mode == EmbeddingBag::Mode::kMean;
  const Divider by_channels(channels);
  return ForEach(cuda, output.size(), [=] POLYOP_DEVICE(int64_t element) {
    int64_t c;
    const int64_t m = by_channels.Split(element, &c);
    const int64_t begin = starts[m], end = m + 1 < ends ? static_cast<int64_t>(starts[m + 1]) : count;
    float result = begin >= 0 && begin <= end && end <= count ? 0.0f : NAN;
    int64_t used = 0;
    for (int64_t i = begin; i < end && result == result; ++i) {
      const int64_t row = index[i];
      if (row == padding) continue;
      const bool inside = row >= 0 && row < rows;
      const float x = inside ? ToFloat(table[row * channels + c]) : NAN;
      if (is_max) {
        if (used == 0 || !inside || x > result) result = x;
      } else {
        result += weights == nullptr ? x : x * ToFloat(weights[i]);
      }
      ++used;
    }
    if (is_mean && used > 0) result /= static_cast<float>(used);
    to[element] = FromFloat<T>(result);
  });
}

POLYOP_CUDA_KERNELS(EmbeddingBag, EmbeddingBagCuda, (float, int32_t), (Half, int32_t), (BFloat16, int32_t),
                    (float, int64_t), (Half, int64_t), (BFloat16, int64_t));

}  // namespace
}  // namespace polyop
