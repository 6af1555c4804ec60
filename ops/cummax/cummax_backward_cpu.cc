#include <algorithm>
#include <type_traits>

#include "kernels/cpu/check_indices.h"
#include "ops/cummax/cummax_backward.h"

namespace polyop {
namespace {

constexpr int64_t kStrip = 16;  // adjacent columns that are scanned together

// Adds the gradients of a strip of up to kStrip columns to the elements that `indices` name, in
// sums[length][pitch].
template <class T>
void AddStrip(const T* grad, const int64_t* indices, int64_t length, int64_t inner, int64_t columns, float* sums,
              int64_t pitch) {
  for (int64_t i = 0; i < length; ++i) std::fill_n(sums + i * pitch, columns, 0.0f);
  for (int64_t i = 0; i < length; ++i) {
    for (int64_t c = 0; c < columns; ++c) {
      sums[indices[i * inner + c] * pitch + c] += ToFloat(grad[i * inner + c]);
    }
  }
}

template <class T>
Status CumMaxBackwardCpu(const CumMaxBackward& op, const Context& context, Tensor<const T, kAnyRank> grad_values,
                         Tensor<const T, kAnyRank> input, Tensor<const int64_t, kAnyRank> indices,
                         Tensor<T, kAnyRank> grad_input) {
  constexpr int64_t kScratchBytes = 64 << 20;
  constexpr bool kF32 = std::is_same_v<T, float>;
  const ScanExtents e = ScanExtents::Of(op, input.shape());
  if (input.size() == 0) return Status::Ok();
  POLYOP_RETURN_IF_ERROR(
      CheckIndices(context, "indices", indices.data(), indices.size(), e.length, "an element of the dimension"));
  const int64_t strips = (e.inner + kStrip - 1) / kStrip, size = kF32 ? 0 : e.length * std::min(e.inner, kStrip);
  const int64_t bytes = std::max<int64_t>(size * static_cast<int64_t>(sizeof(float)), 1);
  const int64_t items = e.outer * strips, tasks = std::clamp<int64_t>(kScratchBytes / bytes, 1, Context::kMaxTasks);
  const double nanoseconds = 2.0 * static_cast<double>(e.length * std::min(e.inner, kStrip));
  const int64_t grain = std::max(GrainFor(nanoseconds), (items + tasks - 1) / tasks);
  const Scratch<float> scratch = context.Allocate<float>(Context::NumTasks(items, grain) * size);
  if (!scratch) return Internal("out of memory: sums of ", size, " elements for each task");
  context.ParallelFor(items, grain, [&](int64_t task, int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t column = item % strips * kStrip, columns = std::min(kStrip, e.inner - column);
      const int64_t at = item / strips * e.length * e.inner + column;
      if constexpr (kF32) {
        AddStrip(grad_values.data() + at, indices.data() + at, e.length, e.inner, columns, grad_input.data() + at,
                 e.inner);
      } else {
        float* const sums = scratch.data() + task * size;
        AddStrip(grad_values.data() + at, indices.data() + at, e.length, e.inner, columns, sums, columns);
        for (int64_t i = 0; i < e.length; ++i) {
          for (int64_t c = 0; c < columns; ++c) grad_input[at + i * e.inner + c] = FromFloat<T>(sums[i * columns + c]);
        }
      }
    }
  });
  return Status::Ok();
}

POLYOP_PLAIN_CPU_KERNELS(CumMaxBackward, CumMaxBackwardCpu, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
