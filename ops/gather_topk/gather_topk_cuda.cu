#include "core/words.h"
#include "kernels/cuda/cuda.h"
#include "ops/gather_topk/gather_topk.h"

namespace polyop {
namespace {

// Rows of `row` elements, `picks` of them of each batch entry of `rows`. A wrong index reads nothing; its row is 0.
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

#define POLYOP_GATHER_TOPK(T, NAME)                                                   \
  POLYOP_CUDA_KERNEL(GatherTopk, Gather##NAME##I32R1, GatherTopkCuda<T, int32_t, 1>); \
  POLYOP_CUDA_KERNEL(GatherTopk, Gather##NAME##I64R1, GatherTopkCuda<T, int64_t, 1>); \
  POLYOP_CUDA_KERNEL(GatherTopk, Gather##NAME##I32R2, GatherTopkCuda<T, int32_t, 2>); \
  POLYOP_CUDA_KERNEL(GatherTopk, Gather##NAME##I64R2, GatherTopkCuda<T, int64_t, 2>); \
  POLYOP_CUDA_KERNEL(GatherTopk, Gather##NAME##I32R3, GatherTopkCuda<T, int32_t, 3>); \
  POLYOP_CUDA_KERNEL(GatherTopk, Gather##NAME##I64R3, GatherTopkCuda<T, int64_t, 3>)
POLYOP_GATHER_TOPK(float, F32);
POLYOP_GATHER_TOPK(Half, F16);
POLYOP_GATHER_TOPK(BFloat16, BF16);
POLYOP_GATHER_TOPK(int32_t, I32);
POLYOP_GATHER_TOPK(int64_t, I64);
POLYOP_GATHER_TOPK(uint8_t, U8);
POLYOP_GATHER_TOPK(bool, Bool);
#undef POLYOP_GATHER_TOPK

}  // namespace
}  // namespace polyop
