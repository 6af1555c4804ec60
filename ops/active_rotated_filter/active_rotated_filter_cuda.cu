#include "core/words.h"
#include "kernels/cuda/cuda.h"
#include "ops/active_rotated_filter/active_rotated_filter.h"

namespace polyop {
namespace {

// An index that is no place leaves its entry out.
template <class Word, class I>
Status CopyRotated(const CudaContext& cuda, const Word* input, int64_t planes, const Tensor<const I, 4>& indices,
                   Word* output, int64_t filters) {
  const int64_t rotations = indices.dim(3), entries = indices.size() / rotations;
  const I* const places = indices.data();
  int64_t* const sources = cuda.Allocate<int64_t>(rotations * entries);  // of each place, or -1
  const Divider by_entries(entries), by_planes(planes), by_rotations(rotations);
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, rotations * entries, [=] POLYOP_DEVICE(int64_t i) { sources[i] = -1; }));
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, rotations * entries, [=] POLYOP_DEVICE(int64_t i) {
    int64_t rotation;
    const int64_t entry = by_rotations.Split(i, &rotation), place = places[i];
    if (place >= 1 && place <= entries) AtomicMax(sources + rotation * entries + place - 1, entry);
  }));
  return ForEach(cuda, filters * entries, [=] POLYOP_DEVICE(int64_t i) {
    int64_t place, plane, rotation;
    const int64_t o = by_rotations.Split(by_planes.Split(by_entries.Split(i, &place), &plane), &rotation);
    const int64_t source = sources[rotation * entries + place];
    output[i] = source < 0 ? Word{0} : input[(o * planes + plane) * entries + source];
  });
}

template <class T, class I>
Status ActiveRotatedFilterCuda(const ActiveRotatedFilter&, const CudaContext& cuda, Tensor<const T, 5> input,
                               Tensor<const I, 4> indices, Tensor<T, 4> output) {
  using Word = WordOf<T>;
  const int64_t planes = input.dim(1);
  return CopyRotated(cuda, reinterpret_cast<const Word*>(input.data()), planes, indices,
                     reinterpret_cast<Word*>(output.data()), output.dim(0) * planes);
}

POLYOP_CUDA_KERNEL(ActiveRotatedFilter, ActiveRotatedFilterF32I32, ActiveRotatedFilterCuda<float, int32_t>);
POLYOP_CUDA_KERNEL(ActiveRotatedFilter, ActiveRotatedFilterF32I64, ActiveRotatedFilterCuda<float, int64_t>);
POLYOP_CUDA_KERNEL(ActiveRotatedFilter, ActiveRotatedFilterF16I32, ActiveRotatedFilterCuda<Half, int32_t>);
POLYOP_CUDA_KERNEL(ActiveRotatedFilter, ActiveRotatedFilterF16I64, ActiveRotatedFilterCuda<Half, int64_t>);
POLYOP_CUDA_KERNEL(ActiveRotatedFilter, ActiveRotatedFilterBF16I32, ActiveRotatedFilterCuda<BFloat16, int32_t>);
POLYOP_CUDA_KERNEL(ActiveRotatedFilter, ActiveRotatedFilterBF16I64, ActiveRotatedFilterCuda<BFloat16, int64_t>);

}  // namespace
}  // namespace polyop
