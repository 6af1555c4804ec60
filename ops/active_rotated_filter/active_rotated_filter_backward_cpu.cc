#include <algorithm>

#include "core/dtype.h"
#include "ops/active_rotated_filter/active_rotated_filter_backward.h"
#include "ops/active_rotated_filter/active_rotated_filter_values.h"

namespace polyop {
namespace {

// The kernel adds at scattered positions of small filters, so this file is compiled once and not for every instruction
// set.
template <class T, class I>
Status ActiveRotatedFilterBackwardCpu(const ActiveRotatedFilterBackward&, const Context& context,
                                      Tensor<const T, 4> grad_output, Tensor<const T, 5> input,
                                      Tensor<const I, 4> indices, Tensor<T, 5> grad_input) {
  POLYOP_RETURN_IF_ERROR(CheckPositions(indices));
  const int64_t planes = input.dim(1), entries = input.dim(2) * input.dim(3) * input.dim(4), rotations = indices.dim(3);
  const int64_t filters = input.dim(0) * planes, grain = GrainFor(static_cast<double>(rotations * entries));
  const Scratch<int64_t> sources = context.Allocate<int64_t>(indices.size());
  const Scratch<float> sums = context.Allocate<float>(Context::NumTasks(filters, grain) * entries);
  if (!sources || !sums) return Internal("out of memory: ", rotations, " rotations of ", entries, " entries");
  FindSources(indices, sources.data());
  context.ParallelFor(filters, grain, [&](int64_t task, int64_t begin, int64_t end) {
    float* const sum = sums.data() + task * entries;
    for (int64_t filter = begin; filter < end; ++filter) {  // [O, P]
      std::fill_n(sum, entries, 0.0f);
      for (int64_t r = 0; r < rotations; ++r) {
        const T* const grad =
            grad_output.data() + ((filter / planes * rotations + r) * planes + filter % planes) * entries;
        const int64_t* const source = sources.data() + r * entries;
        for (int64_t e = 0; e < entries; ++e) {
          if (source[e] >= 0) sum[source[e]] += ToFloat(grad[e]);
        }
      }
      for (int64_t e = 0; e < entries; ++e) grad_input[filter * entries + e] = FromFloat<T>(sum[e]);
    }
  });
  return Status::Ok();
}

POLYOP_PLAIN_CPU_KERNELS(ActiveRotatedFilterBackward, ActiveRotatedFilterBackwardCpu, (float, int32_t),
                         (float, int64_t), (Half, int32_t), (Half, int64_t), (BFloat16, int32_t), (BFloat16, int64_t));

}  // namespace
}  // namespace polyop
