#include "core/words.h"
#include "kernels/cuda/cuda.h"
#include "ops/active_rotated_filter/active_rotated_filter.h"
#include "ops/active_rotated_filter/rotated_sources_cuda.h"

namespace polyop {
namespace {

template <class Word, class I>
Status CopyRotated(const CudaContext& cuda, const Word* input, int64_t planes, const Tensor<const I, 4>& indices,
                   Word* output, int64_t filters) {
  const int64_t rotations = indices.dim(3), entries = indices.size() / rotations;
  RotatedSources sources;
  POLYOP_RETURN_IF_ERROR(RotatedSources::Find(cuda, indices, entries, &sources));
  const Divider by_entries(entries), by_planes(planes), by_rotations(rotations);
  return ForEach(cuda, filters * entries, [=] POLYOP_DEVICE(int64_t i) {
    int64_t position, plane, rotation;
    const int64_t o = by_rotations.Split(by_planes.Split(by_entries.Split(i, &position), &plane), &rotation);
    const int64_t source = sources.Of(rotation, position);
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

POLYOP_CUDA_KERNELS(ActiveRotatedFilter, ActiveRotatedFilterCuda, (float, int32_t), (float, int64_t), (Half, int32_t),
                    (Half, int64_t), (BFloat16, int32_t), (BFloat16, int64_t));

}  // namespace
}  // namespace polyop
