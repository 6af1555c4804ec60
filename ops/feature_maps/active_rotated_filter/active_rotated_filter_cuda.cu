// SPDX-License-Identifier: Apache-2.0
#include "core/words.h"
#include "kernels/cuda/cuda.h"
#include "ops/feature_maps/active_rotated_filter/active_rotated_filter.h"
#include "ops/feature_maps/active_rotated_filter/rotated_sources_cuda.h"

namespace polyop {
namespace {

// Each thread writes a position of all rotations of a filter. Neighbouring threads write neighbouring positions, and
// read within the entries of a filter, so memory limits it: 256x256 filters of 72 entries and 8 rotations are 170 MB,
// 0.04 ms of an H200; the 25 instructions for each of 38 million copies take 0.03 ms.
template <class Word, class I>
Status CopyRotated(const CudaContext& cuda, const Word* input, int64_t filters, int64_t planes,
                   const Tensor<const I, 4>& indices, Word* output) {
  constexpr int kAhead = 8;  // copies that a thread loads before it writes the first
  const int64_t rotations = indices.dim(3), entries = indices.dim(0) * indices.dim(1) * indices.dim(2);
  RotatedSources sources;
  POLYOP_RETURN_IF_ERROR(RotatedSources::Find(cuda, indices, entries, &sources));
  const Divider by_entries(entries), by_planes(planes);
  return ForEach(cuda, filters * planes * entries, [=] POLYOP_DEVICE(int64_t i) {
    int64_t position, plane;
    const int64_t o = by_planes.Split(by_entries.Split(i, &position), &plane);
    const Word* const from = input + (i - position);
    Word* const to = output + (o * rotations * planes + plane) * entries + position;
    for (int64_t first = 0; first < rotations; first += kAhead) {
      Word copied[kAhead];
      for (int k = 0; k < kAhead; ++k) {
        const int64_t source = first + k < rotations ? sources.Of(first + k, position) : -1;
        copied[k] = source < 0 ? Word{0} : from[source];
      }
      for (int k = 0; k < kAhead; ++k) {
        if (first + k < rotations) to[(first + k) * planes * entries] = copied[k];
      }
    }
  });
}

template <class T, class I>
Status ActiveRotatedFilterCuda(const ActiveRotatedFilter&, const CudaContext& cuda, Tensor<const T, 5> input,
                               Tensor<const I, 4> indices, Tensor<T, 4> output) {
  using Word = WordOf<T>;
  return CopyRotated(cuda, reinterpret_cast<const Word*>(input.data()), input.dim(0), input.dim(1), indices,
                     reinterpret_cast<Word*>(output.data()));
}

POLYOP_CUDA_KERNELS(ActiveRotatedFilter, ActiveRotatedFilterCuda, (float, int32_t), (float, int64_t), (Half, int32_t),
                    (Half, int64_t), (BFloat16, int32_t), (BFloat16, int64_t));

}  // namespace
}  // namespace polyop
