// SPDX-License-Identifier: Apache-2.0
#include "core/words.h"
#include "ops/feature_maps/active_rotated_filter/active_rotated_filter.h"
#include "ops/feature_maps/active_rotated_filter/active_rotated_filter_values.h"

namespace polyop {
namespace {

// The kernel only copies, so this file is compiled once and not for every instruction set.
template <class Word, class I>
Status CopyRotated(const Context& context, const Word* input, int64_t planes, const Tensor<const I, 4>& indices,
                   Word* output, int64_t filters) {
  const int64_t rotations = indices.dim(3), entries = indices.size() / rotations;
  const Scratch<int64_t> sources = context.Allocate<int64_t>(rotations * entries);
  if (!sources) return Internal("out of memory: ", rotations, " rotations of ", entries, " entries");
  FindSources(indices, sources.data());
  context.ParallelFor(filters, GrainFor(static_cast<double>(entries)), [&](int64_t begin, int64_t end) {
    for (int64_t filter = begin; filter < end; ++filter) {  // [O, R, P]
      const int64_t plane = filter % planes, rotation = filter / planes % rotations, o = filter / planes / rotations;
      const Word* const from = input + (o * planes + plane) * entries;
      const int64_t* const source = sources.data() + rotation * entries;
      for (int64_t e = 0; e < entries; ++e) output[filter * entries + e] = source[e] < 0 ? Word{0} : from[source[e]];
    }
  });
  return Status::Ok();
}

template <class T, class I>
Status ActiveRotatedFilterCpu(const ActiveRotatedFilter&, const Context& context, Tensor<const T, 5> input,
                              Tensor<const I, 4> indices, Tensor<T, 4> output) {
  using Word = WordOf<T>;
  POLYOP_RETURN_IF_ERROR(CheckPositions(indices));
  const int64_t planes = input.dim(1);
  return CopyRotated(context, reinterpret_cast<const Word*>(input.data()), planes, indices,
                     reinterpret_cast<Word*>(output.data()), output.dim(0) * planes);
}

POLYOP_PLAIN_CPU_KERNELS(ActiveRotatedFilter, ActiveRotatedFilterCpu, (float, int32_t), (float, int64_t),
                         (Half, int32_t), (Half, int64_t), (BFloat16, int32_t), (BFloat16, int64_t));

}  // namespace
}  // namespace polyop
