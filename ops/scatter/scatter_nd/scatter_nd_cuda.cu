// SPDX-License-Identifier: Apache-2.0
#include "core/words.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/last_items.h"
#include "ops/scatter/scatter_nd/scatter_nd.h"

namespace polyop {
namespace {

// Maps index tuples to slices of the output.
template <class I>
struct SliceIndex {
  const I* indices;
  int depth;
  int64_t extent[kMaxRank];

  // Returns the slice of a tuple, or -1 for a tuple out of range.
  POLYOP_HD int64_t Of(int64_t tuple) const {
    int64_t slice = 0;
    for (int d = 0; d < depth; ++d) {
      int64_t index = indices[tuple * depth + d];
      if (index < 0) index += extent[d];
      if (index < 0 || index >= extent[d]) return -1;
      slice = slice * extent[d] + index;
    }
    return slice;
  }
};

template <class Word, class I>
Status WriteSlices(const CudaContext& cuda, const SliceIndex<I>& slice_index, const int64_t* last, const Word* updates,
                   int64_t size, const Divider& slice_size, Word* output) {
  return ForEach(cuda, size, [=] POLYOP_DEVICE(int64_t i) {
    int64_t element;
    const int64_t tuple = slice_size.Split(i, &element), slice = slice_index.Of(tuple);
    if (slice >= 0 && last[slice] == tuple) output[slice * slice_size.divisor() + element] = updates[i];
  });
}

// If several tuples select the same slice, the last one wins. The highest number is found first, so the result does not
// depend on the order of threads. Tuples out of range are ignored.
template <class T, class I>
Status ScatterNDCuda(const ScatterND&, const CudaContext& cuda, Tensor<const T, kAnyRank> data,
                     Tensor<const I, kAnyRank> indices, Tensor<const T, kAnyRank> updates, Tensor<T, kAnyRank> output) {
  SliceIndex<I> slice_index{indices.data(), static_cast<int>(indices.dim(indices.rank() - 1)), {}};
  int64_t slices = 1, slice_size = 1, tuples = 1;
  for (int d = 0; d < data.rank(); ++d) {
    (d < slice_index.depth ? slices : slice_size) *= data.dim(d);
    if (d < slice_index.depth) slice_index.extent[d] = data.dim(d);
  }
  for (int d = 0; d + 1 < indices.rank(); ++d) tuples *= indices.dim(d);
  POLYOP_RETURN_IF_ERROR(CopyOnDevice(cuda, output.data(), data.data(), static_cast<size_t>(data.size()) * sizeof(T)));
  if (updates.size() == 0 || slices == 0) return cuda.Check();
  const int64_t* last = nullptr;
  POLYOP_RETURN_IF_ERROR(
      FindLastItems(cuda, tuples, slices, [=] POLYOP_DEVICE(int64_t tuple) { return slice_index.Of(tuple); }, &last));
  return WriteSlices(cuda, slice_index, last, reinterpret_cast<const WordOf<T>*>(updates.data()), updates.size(),
                     Divider(slice_size), reinterpret_cast<WordOf<T>*>(output.data()));
}

POLYOP_CUDA_KERNELS(ScatterND, ScatterNDCuda, (float, int32_t), (float, int64_t), (Half, int32_t), (Half, int64_t),
                    (BFloat16, int32_t), (BFloat16, int64_t), (double, int32_t), (double, int64_t), (int8_t, int32_t),
                    (int8_t, int64_t), (uint8_t, int32_t), (uint8_t, int64_t), (int16_t, int32_t), (int16_t, int64_t),
                    (int32_t, int32_t), (int32_t, int64_t), (int64_t, int32_t), (int64_t, int64_t), (bool, int32_t),
                    (bool, int64_t));

}  // namespace
}  // namespace polyop
