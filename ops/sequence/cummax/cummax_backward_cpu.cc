// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <type_traits>

#include "kernels/cpu/check_indices.h"
#include "ops/sequence/cummax/cummax_backward.h"

namespace polyop {
namespace {

// Adjacent columns that are scanned together. Other types than float need scratch memory for each of them.
template <class T>
constexpr int64_t kStrip = std::is_same_v<T, float> ? 256 : 64;
constexpr int64_t kRun = 16;  // elements of a row, or columns, whose indices are compared together

bool InRange(int64_t index, int64_t length) { return static_cast<uint64_t>(index) < static_cast<uint64_t>(length); }

// Adds the gradients of a row to the elements that `indices` name. An extremum usually lasts for many elements, so the
// gradients of a run of equal indices are summed before they are added: an addition in memory for each of them would
// wait for the one before. Returns false if an index is out of range.
template <class T>
bool AddRow(const T* grad, const int64_t* indices, int64_t length, float* sums) {
  std::fill_n(sums, length, 0.0f);
  for (int64_t i = 0; i < length;) {
    const int64_t target = indices[i], near = std::min(length, i + kRun);
    if (!InRange(target, length)) return false;
    const auto add_single = [&](int64_t end) {
      float sum = 0;
      for (; i < end && indices[i] == target; ++i) sum += ToFloat(grad[i]);
      return sum;
    };
    float sum = add_single(near);
    if (i == near && i < length) {  // a long run
      float run[kRun] = {};
      for (; i + kRun <= length; i += kRun) {
        int64_t differ = 0;
        for (int64_t k = 0; k < kRun; ++k) differ |= indices[i + k] ^ target;
        if (differ != 0) break;
        for (int64_t k = 0; k < kRun; ++k) run[k] += ToFloat(grad[i + k]);
      }
      sum += add_single(length);
      for (const float part : run) sum += part;
    }
    sums[target] += sum;
  }
  return true;
}

// The runs of equal indices of kRun columns that are not yet added to the sums.
struct ColumnRuns {
  int64_t target[kRun];
  float sum[kRun];

  // Adds row `grad` of kRun columns, or of `some` if not kAll, to the runs, and adds the runs that end to `sums`.
  // Returns false if an index is out of range.
  template <bool kAll, class T>
  bool Add(const T* grad, const int64_t* indices, int64_t some, int64_t length, float* sums, int64_t pitch) {
    const int64_t columns = kAll ? kRun : some;
    int64_t differ = 0;
    for (int64_t c = 0; c < columns; ++c) differ |= indices[c] ^ target[c];
    for (int64_t c = 0; differ != 0 && c < columns; ++c) {
      if (indices[c] == target[c]) continue;
      if (!InRange(indices[c], length)) return false;
      sums[target[c] * pitch + c] += sum[c];
      target[c] = indices[c];
      sum[c] = 0;
    }
    float added[kRun];  // separate, because `grad` and `sum` could be the same memory as far as a compiler knows
    for (int64_t c = 0; c < columns; ++c) added[c] = ToFloat(grad[c]);
    for (int64_t c = 0; c < columns; ++c) sum[c] += added[c];
    return true;
  }
};

// Like AddRow, for a strip of up to kStrip<T> columns and sums[length][pitch].
template <class T>
bool AddStrip(const T* grad, const int64_t* indices, int64_t length, int64_t inner, int64_t columns, float* sums,
              int64_t pitch) {
  ColumnRuns runs[kStrip<T> / kRun] = {};
  for (int64_t c = 0; c < columns; ++c) {
    if (!InRange(indices[c], length)) return false;
    runs[c / kRun].target[c % kRun] = indices[c];
  }
  for (int64_t i = 0; i < length; ++i) std::fill_n(sums + i * pitch, columns, 0.0f);
  for (int64_t i = 0; i < length; ++i) {
    for (int64_t c = 0; c < columns; c += kRun) {
      const int64_t at = i * inner + c;
      ColumnRuns& of = runs[c / kRun];
      const bool valid = columns - c >= kRun
                             ? of.Add<true>(grad + at, indices + at, kRun, length, sums + c, pitch)
                             : of.Add<false>(grad + at, indices + at, columns - c, length, sums + c, pitch);
      if (!valid) return false;
    }
  }
  for (int64_t c = 0; c < columns; ++c) {
    sums[runs[c / kRun].target[c % kRun] * pitch + c] += runs[c / kRun].sum[c % kRun];
  }
  return true;
}

template <class T>
Status CumMaxBackwardCpu(const CumMaxBackward& op, const Context& context, Tensor<const T, kAnyRank> grad_values,
                         Tensor<const T, kAnyRank> input, Tensor<const int64_t, kAnyRank> indices,
                         Tensor<T, kAnyRank> grad_input) {
  constexpr bool kF32 = std::is_same_v<T, float>;
  constexpr int64_t kColumns = kStrip<T>;
  const ScanExtents e = ScanExtents::Of(op.dim, input.shape());
  if (input.size() == 0) return Status::Ok();
  const int64_t strips = (e.inner + kColumns - 1) / kColumns, size = kF32 ? 0 : e.length * std::min(e.inner, kColumns);
  const int64_t grain = GrainFor(static_cast<double>(e.length * std::min(e.inner, kColumns)));
  std::atomic<bool> valid = true;
  const auto add_strips = [&](float* scratch, int64_t begin, int64_t end) {
    const auto add = [&](int64_t at, int64_t columns, float* sums, int64_t pitch) {
      const T* const grad = grad_values.data() + at;
      const int64_t* const index = indices.data() + at;
      return e.inner == 1 ? AddRow(grad, index, e.length, sums)
                          : AddStrip(grad, index, e.length, e.inner, columns, sums, pitch);
    };
    for (int64_t item = begin; item < end && valid; ++item) {
      const int64_t column = item % strips * kColumns, columns = std::min(kColumns, e.inner - column);
      const int64_t at = item / strips * e.length * e.inner + column;
      if constexpr (kF32) {
        if (!add(at, columns, grad_input.data() + at, e.inner)) valid = false;
      } else {
        if (!add(at, columns, scratch, columns)) valid = false;
        for (int64_t i = 0; i < e.length; ++i) {
          for (int64_t c = 0; c < columns; ++c) {
            grad_input[at + i * e.inner + c] = FromFloat<T>(scratch[i * columns + c]);
          }
        }
      }
    }
  };
  if (!context.ParallelForWithScratch<float>(e.outer * strips, grain, size, add_strips)) {
    return Internal("out of memory: sums of ", size, " elements");
  }
  if (valid) return Status::Ok();
  return CheckIndices(context, "indices", indices.data(), indices.size(), e.length, "an element of the dimension");
}

POLYOP_PLAIN_CPU_KERNELS(CumMaxBackward, CumMaxBackwardCpu, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
