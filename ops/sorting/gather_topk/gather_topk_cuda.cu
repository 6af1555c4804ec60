// SPDX-License-Identifier: Apache-2.0
#include "core/words.h"
#include "kernels/cuda/cuda.h"
#include "ops/sorting/gather_topk/gather_topk.h"

namespace polyop {
namespace {

// Gathers `picks` rows of `row` elements from the `rows` rows of each batch element. An index that is out of range
// gives a row of 0.
template <class Word, class I>
Status Gather(const CudaContext& cuda, const Word* data, const I* indices, int64_t rows, const Divider& picks,
              const Divider& row, Word* gathered, int64_t size) {
  return ForEach(cuda, size, [=] POLYOP_DEVICE(int64_t i) {
    int64_t column;
    const int64_t pick = row.Split(i, &column), index = indices[pick];
    const bool inside = index >= 0 && index < rows;
    gathered[i] = inside ? data[(picks.Quotient(pick) * rows + index) * row.divisor() + column] : Word{0};
  });
}

template <class T, class I, int kRank>
Status GatherTopkCuda(const GatherTopk&, const CudaContext& cuda, Tensor<const T, kAnyRank> data,
                      Tensor<const I, kRank> indices, Tensor<T, kAnyRank> gathered) {
  using Word = WordOf<T>;
  int64_t row = 1;
  for (int d = kRank; d < data.rank(); ++d) row *= data.dim(d);
  return Gather(cuda, reinterpret_cast<const Word*>(data.data()), indices.data(), data.dim(kRank - 1),
                Divider(indices.dim(kRank - 1)), Divider(row), reinterpret_cast<Word*>(gathered.data()),
                gathered.size());
}

// All index types and ranks of one data type.
#define POLYOP_INDEXED(T) \
  (T, int32_t, 1), (T, int64_t, 1), (T, int32_t, 2), (T, int64_t, 2), (T, int32_t, 3), (T, int64_t, 3)
POLYOP_CUDA_KERNELS(GatherTopk, GatherTopkCuda, POLYOP_INDEXED(float), POLYOP_INDEXED(Half), POLYOP_INDEXED(BFloat16),
                    POLYOP_INDEXED(int32_t), POLYOP_INDEXED(int64_t), POLYOP_INDEXED(uint8_t), POLYOP_INDEXED(bool));
#undef POLYOP_INDEXED

}  // namespace
}  // namespace polyop
