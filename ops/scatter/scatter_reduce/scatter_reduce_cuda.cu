// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/items_by_target.h"
#include "ops/scatter/scatter_reduce/scatter_reduce.h"
#include "ops/scatter/scatter_reduce/scatter_reduce_values.h"

namespace polyop {
namespace {

// A thread combines the updates of one element in their order. Updates whose index is out of range are ignored.
template <class T, class I>
Status ScatterReduceCuda(const ScatterReduce& op, const CudaContext& cuda, Tensor<const T, kAnyRank> data,
                         Tensor<const I, kAnyRank> indices, Tensor<const T, kAnyRank> updates,
                         Tensor<T, kAnyRank> output) {
  const ScatterLines lines(op, data.shape(), indices.shape(), updates.shape());
  const I* const index = indices.data();
  ItemsByTargetCuda groups;
  if (lines.slices) {
    POLYOP_RETURN_IF_ERROR(ItemsByTargetCuda::Group(
        cuda, lines.count, lines.length, [=] POLYOP_DEVICE(int64_t k) { return FromBeginning(index[k], lines.length); },
        &groups));
  } else {
    const auto target = [=] POLYOP_DEVICE(int64_t i) {
      const int64_t row = FromBeginning(index[i], lines.length);
      if (row < 0 || row >= lines.length) return int64_t{-1};
      const int64_t outer = lines.OuterOf(i / (lines.count * lines.update_inner));
      return (outer * lines.length + row) * lines.inner + lines.InnerOf(i % lines.update_inner);
    };
    POLYOP_RETURN_IF_ERROR(ItemsByTargetCuda::Group(cuda, updates.size(), data.size(), target, &groups));
  }
  const ScatterReduce what = op;
  const T *const from = data.data(), *const update = updates.data();
  T* const to = output.data();
  return ForEach(cuda, output.size(), [=] POLYOP_DEVICE(int64_t i) {
    const int64_t column = i % lines.inner, row = i / lines.inner % lines.length;
    const int64_t outer = i / lines.inner / lines.length, target = lines.slices ? row : i;
    const int64_t begin = groups.begins[target], end = groups.begins[target + 1];
    T result = from[i];
    if (begin < end && what.include_self == 0) result = NeutralOf<T>(what.reduction);
    for (int64_t n = begin; n < end; ++n) {
      const int64_t item = groups.items[n];
      const T next = update[lines.slices ? (outer * lines.count + item) * lines.inner + column : item];
      result = Combine(what.reduction, result, next);
    }
    const bool mean = what.reduction == ScatterReduce::Reduction::kMean && begin < end;
    to[i] = mean ? static_cast<T>(result / static_cast<T>(end - begin + what.include_self)) : result;
  });
}

POLYOP_CUDA_KERNELS(ScatterReduce, ScatterReduceCuda, (float, int32_t), (float, int64_t), (double, int32_t),
                    (double, int64_t), (int32_t, int32_t), (int32_t, int64_t), (int64_t, int32_t), (int64_t, int64_t));

}  // namespace
}  // namespace polyop
