#include "core/words.h"
#include "kernels/cuda/cuda.h"
#include "ops/scatter_nd/scatter_nd.h"

namespace polyop {
namespace {

// Where the slices of tuples lie in the output.
template <class I>
struct SlicePlaces {
  const I* indices;
  int depth;
  int64_t extent[kMaxRank];

  // The slice that a tuple names, or -1 for a tuple out of range.
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

// last[slice] = the highest number of a tuple that names it, or -1.
template <class I>
Status FindLast(const CudaContext& cuda, const SlicePlaces<I>& places, int64_t tuples, int64_t slices, int64_t* last) {
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, slices, [=] POLYOP_DEVICE(int64_t i) { last[i] = -1; }));
  return ForEach(cuda, tuples, [=] POLYOP_DEVICE(int64_t tuple) {
    const int64_t slice = places.Of(tuple);
    if (slice >= 0) AtomicMax(last + slice, tuple);
  });
}

template <class Word, class I>
Status WriteSlices(const CudaContext& cuda, const SlicePlaces<I>& places, const int64_t* last, const Word* updates,
                   int64_t size, const Divider& slice_size, Word* output) {
  return ForEach(cuda, size, [=] POLYOP_DEVICE(int64_t i) {
    int64_t element;
    const int64_t tuple = slice_size.Split(i, &element), slice = places.Of(tuple);
    if (slice >= 0 && last[slice] == tuple) output[slice * slice_size.divisor() + element] = updates[i];
  });
}

// Of several tuples that name the same slice the last one counts: the highest number is found first, so the result
// does not depend on the order of threads. A tuple out of range changes nothing.
template <class T, class I>
Status ScatterNDCuda(const ScatterND&, const CudaContext& cuda, Tensor<const T, kAnyRank> data,
                     Tensor<const I, kAnyRank> indices, Tensor<const T, kAnyRank> updates, Tensor<T, kAnyRank> output) {
  SlicePlaces<I> places{indices.data(), static_cast<int>(indices.dim(indices.rank() - 1)), {}};
  int64_t slices = 1, slice_size = 1, tuples = 1;
  for (int d = 0; d < data.rank(); ++d) {
    (d < places.depth ? slices : slice_size) *= data.dim(d);
    if (d < places.depth) places.extent[d] = data.dim(d);
  }
  for (int d = 0; d + 1 < indices.rank(); ++d) tuples *= indices.dim(d);
  POLYOP_RETURN_IF_ERROR(CopyOnDevice(cuda, output.data(), data.data(), static_cast<size_t>(data.size()) * sizeof(T)));
  if (updates.size() == 0 || slices == 0) return cuda.Check();
  int64_t* const last = cuda.Allocate<int64_t>(slices);
  POLYOP_RETURN_IF_ERROR(FindLast(cuda, places, tuples, slices, last));
  return WriteSlices(cuda, places, last, reinterpret_cast<const WordOf<T>*>(updates.data()), updates.size(),
                     Divider(slice_size), reinterpret_cast<WordOf<T>*>(output.data()));
}

#define POLYOP_SCATTER_ND(T, NAME)                                             \
  POLYOP_CUDA_KERNEL(ScatterND, ScatterND32##NAME, ScatterNDCuda<T, int32_t>); \
  POLYOP_CUDA_KERNEL(ScatterND, ScatterND64##NAME, ScatterNDCuda<T, int64_t>)
POLYOP_SCATTER_ND(float, F32);
POLYOP_SCATTER_ND(Half, F16);
POLYOP_SCATTER_ND(BFloat16, BF16);
POLYOP_SCATTER_ND(double, F64);
POLYOP_SCATTER_ND(int8_t, I8);
POLYOP_SCATTER_ND(uint8_t, U8);
POLYOP_SCATTER_ND(int16_t, I16);
POLYOP_SCATTER_ND(int32_t, I32);
POLYOP_SCATTER_ND(int64_t, I64);
POLYOP_SCATTER_ND(bool, Bool);
#undef POLYOP_SCATTER_ND

}  // namespace
}  // namespace polyop
