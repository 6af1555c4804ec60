// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/scatter/scatter_reduce/scatter_reduce_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/check_indices.h"
#include "kernels/cpu/simd.h"
#include "ops/scatter/scatter_reduce/scatter_reduce.h"
#include "ops/scatter/scatter_reduce/scatter_reduce_values.h"

// What has no vectors is compiled once, not for each instruction set.
#ifndef POLYOP_OPS_SCATTER_REDUCE_ONCE_
#define POLYOP_OPS_SCATTER_REDUCE_ONCE_
namespace polyop {
namespace {

using Reduction = ScatterReduce::Reduction;

// Columns that a task owns. Its part of a slice of 1,000 rows of floats fits in the second cache.
constexpr int64_t kColumns = 256;

// Combines the updates of a line with its elements, which are `stride` apart in the output.
template <Reduction kReduction, class T, class I>
void ReduceLine(const I* indices, const T* updates, int64_t count, int64_t update_stride, int64_t length,
                int64_t stride, T* output) {
  for (int64_t k = 0; k < count; ++k) {
    T& to = output[FromBeginning(indices[k * update_stride], length) * stride];
    to = Combine(kReduction, to, updates[k * update_stride]);
  }
}

// Combines the updates of a line with its elements. Returns false if an index is out of range, and skips its update.
template <Reduction kReduction, class T, class I>
bool ReduceCheckedLine(const I* indices, const T* updates, int64_t count, int64_t length, T* output) {
  bool inside = true;
  for (int64_t k = 0; k < count; ++k) {
    const int64_t at = FromBeginning(indices[k], length);
    if (static_cast<uint64_t>(at) >= static_cast<uint64_t>(length)) {
      inside = false;
      continue;
    }
    output[at] = Combine(kReduction, output[at], updates[k]);
  }
  return inside;
}

// The arguments of a call.
template <class T, class I>
struct Scatter {
  const ScatterReduce& op;
  const ScatterLines& lines;
  const T* data;
  const I* indices;
  int64_t num_indices;
  const T* updates;
  T* output;

  bool replaces() const { return op.include_self == 0; }
  // Returns true if the lines are contiguous, also those of the updates, and each is read and written once.
  bool ByLines() const {
    return !lines.slices && lines.inner == 1 && lines.SameInner() && lines.SameOuter() && !replaces() &&
           op.reduction != Reduction::kMean;
  }
  Status CheckIndices(const Context& context) const {
    return CheckIndicesFromBothEnds(context, "indices", indices, num_indices, lines.length);
  }

  template <Reduction kReduction>
  void ReduceElements(int64_t outer, int64_t begin, int64_t end) const {
    const ScatterLines& l = lines;
    const int64_t update_base = outer * l.count * l.update_inner;
    T* const base = output + (l.SameOuter() ? outer : l.OuterOf(outer)) * l.length * l.inner;
    if (l.SameInner() && l.inner > 1) {  // row by row, in the order of memory
      for (int64_t k = 0; k < l.count; ++k) {
        const I* const index = indices + update_base + k * l.inner;
        const T* const update = updates + update_base + k * l.inner;
        for (int64_t j = begin; j < end; ++j) {
          T& to = base[FromBeginning(index[j], l.length) * l.inner + j];
          to = Combine(kReduction, to, update[j]);
        }
      }
      return;
    }
    for (int64_t j = begin; j < end; ++j) {
      ReduceLine<kReduction>(indices + update_base + j, updates + update_base + j, l.count, l.update_inner, l.length,
                             l.inner, base + (l.SameInner() ? j : l.InnerOf(j)));
    }
  }

  // Calls body(position in the output) for each update of some lines.
  template <class Body>
  void ForTargets(int64_t outer, int64_t begin, int64_t end, const Body& body) const {
    const ScatterLines& l = lines;
    const int64_t base = (l.SameOuter() ? outer : l.OuterOf(outer)) * l.length * l.inner;
    for (int64_t j = begin; j < end; ++j) {
      const I* const index = indices + outer * l.count * l.update_inner + j;
      const int64_t column = base + (l.SameInner() ? j : l.InnerOf(j));
      for (int64_t k = 0; k < l.count; ++k) {
        body(column + FromBeginning(index[k * l.update_inner], l.length) * l.inner);
      }
    }
  }
};

// Checks the indices while it uses them.
template <Reduction kReduction, class T, class I>
Status RunLines(const Context& context, const Scatter<T, I>& s) {
  const ScatterLines& l = s.lines;
  std::atomic<bool> inside = true;
  const double nanoseconds = 1.2 * static_cast<double>(l.count) + 0.1 * static_cast<double>(l.length);
  context.ParallelFor(l.outer, GrainFor(nanoseconds), [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      T* const to = s.output + n * l.length;
      std::memcpy(to, s.data + n * l.length, static_cast<size_t>(l.length) * sizeof(T));
      if (!ReduceCheckedLine<kReduction>(s.indices + n * l.count, s.updates + n * l.count, l.count, l.length, to)) {
        inside = false;
      }
    }
  });
  return inside ? Status::Ok() : s.CheckIndices(context);
}

template <Reduction kReduction, class T, class I>
Status RunElements(const Context& context, const Scatter<T, I>& s) {
  const ScatterLines& l = s.lines;
  const int64_t size = l.outer * l.length * l.inner;
  constexpr bool kMean = kReduction == Reduction::kMean;
  const Scratch<int32_t> counts = context.Allocate<int32_t>(kMean ? size : 0);
  if (kMean && !counts) return Internal("out of memory: ", size, " counts");
  context.ParallelFor(size, GrainFor(0.3), [&](int64_t begin, int64_t end) {
    std::memcpy(s.output + begin, s.data + begin, static_cast<size_t>(end - begin) * sizeof(T));
    if (kMean) std::fill(counts.data() + begin, counts.data() + end, 0);
  });
  const int64_t parts = (l.update_inner + kColumns - 1) / kColumns;
  const double nanoseconds = 1.5 * static_cast<double>(std::min(l.update_inner, kColumns) * l.count);
  context.ParallelFor(l.update_outer * parts, GrainFor(nanoseconds), [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      const int64_t outer = task / parts, begin = task % parts * kColumns;
      const int64_t end = std::min(l.update_inner, begin + kColumns);
      if (s.replaces()) {
        s.ForTargets(outer, begin, end, [&](int64_t i) { s.output[i] = NeutralOf<T>(kReduction); });
      }
      s.template ReduceElements<kReduction>(outer, begin, end);
      if (kMean) s.ForTargets(outer, begin, end, [&](int64_t i) { ++counts[i]; });
    }
  });
  if (kMean) {
    context.ParallelFor(size, GrainFor(0.5), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if (counts[i] > 0) s.output[i] /= static_cast<T>(counts[i] + s.op.include_self);
      }
    });
  }
  return Status::Ok();
}

}  // namespace
}  // namespace polyop
#endif  // POLYOP_OPS_SCATTER_REDUCE_ONCE_

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Combines `count` elements of a slice.
template <Reduction kReduction, class T>
void CombineRow(const T* update, int64_t count, T* to) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t j = 0;
  for (; j + lanes <= count; j += lanes) {
    const auto a = hn::LoadU(d, to + j), b = hn::LoadU(d, update + j);
    if constexpr (kReduction == Reduction::kMul) {
      hn::StoreU(hn::Mul(a, b), d, to + j);
    } else if constexpr (kReduction == Reduction::kMax || kReduction == Reduction::kMin) {
      auto keep = kReduction == Reduction::kMax ? hn::Ge(a, b) : hn::Le(a, b);
      if constexpr (std::is_floating_point_v<T>) keep = hn::Or(keep, hn::IsNaN(a));
      hn::StoreU(hn::IfThenElse(keep, a, b), d, to + j);
    } else {
      hn::StoreU(hn::Add(a, b), d, to + j);
    }
  }
  for (; j < count; ++j) to[j] = Combine(kReduction, to[j], update[j]);
}

// Copies columns [begin, end) of the data, and combines those of the slices with them.
template <Reduction kReduction, class T, class I>
void ReduceSlices(const Scatter<T, I>& s, int64_t outer, int64_t begin, int64_t end, const int64_t* counts) {
  const ScatterLines& l = s.lines;
  const int64_t columns = end - begin;
  const T* const data = s.data + outer * l.length * l.inner + begin;
  const T* const updates = s.updates + outer * l.count * l.inner + begin;
  T* const output = s.output + outer * l.length * l.inner + begin;
  const auto bytes = static_cast<size_t>(columns) * sizeof(T);
  for (int64_t r = 0; r < l.length; ++r) {
    T* const to = output + r * l.inner;
    if (s.replaces() && counts[r] > 0) {
      std::fill_n(to, columns, NeutralOf<T>(kReduction));
    } else {
      std::memcpy(to, data + r * l.inner, bytes);
    }
  }
  for (int64_t k = 0; k < l.count; ++k) {
    CombineRow<kReduction>(updates + k * l.inner, columns, output + FromBeginning(s.indices[k], l.length) * l.inner);
  }
  if (s.op.reduction != Reduction::kMean) return;
  for (int64_t r = 0; r < l.length; ++r) {
    if (counts[r] == 0) continue;
    const T divisor = static_cast<T>(counts[r] + s.op.include_self);
    for (int64_t j = 0; j < columns; ++j) output[r * l.inner + j] /= divisor;
  }
}

template <Reduction kReduction, class T, class I>
Status RunSlices(const Context& context, const Scatter<T, I>& s) {
  const ScatterLines& l = s.lines;
  const Scratch<int64_t> counts = context.Allocate<int64_t>(l.length);
  if (!counts) return Internal("out of memory: ", l.length, " counts");
  std::fill_n(counts.data(), l.length, 0);
  for (int64_t k = 0; k < l.count; ++k) ++counts[FromBeginning(s.indices[k], l.length)];
  const int64_t parts = (l.inner + kColumns - 1) / kColumns;
  const double nanoseconds = 0.2 * static_cast<double>(std::min(l.inner, kColumns) * (l.length + l.count));
  context.ParallelFor(l.outer * parts, GrainFor(nanoseconds), [&](int64_t first, int64_t last) HWY_ATTR {
    for (int64_t task = first; task < last; ++task) {
      const int64_t begin = task % parts * kColumns, end = std::min(l.inner, begin + kColumns);
      ReduceSlices<kReduction>(s, task / parts, begin, end, counts.data());
    }
  });
  return Status::Ok();
}

template <Reduction kReduction, class T, class I>
Status Run(const Context& context, const Scatter<T, I>& s) {
  if (s.ByLines()) return RunLines<kReduction>(context, s);
  POLYOP_RETURN_IF_ERROR(s.CheckIndices(context));
  return s.lines.slices ? RunSlices<kReduction>(context, s) : RunElements<kReduction>(context, s);
}

template <class T, class I>
Status ScatterReduceOf(const ScatterReduce& op, const Context& context, const Tensor<const T, kAnyRank>& data,
                       const Tensor<const I, kAnyRank>& indices, const Tensor<const T, kAnyRank>& updates,
                       const Tensor<T, kAnyRank>& output) {
  const ScatterLines lines(op, data.shape(), indices.shape(), updates.shape());
  const Scatter<T, I> s{op, lines, data.data(), indices.data(), indices.size(), updates.data(), output.data()};
  switch (op.reduction) {
    case Reduction::kAdd: return Run<Reduction::kAdd>(context, s);
    case Reduction::kMul: return Run<Reduction::kMul>(context, s);
    case Reduction::kMax: return Run<Reduction::kMax>(context, s);
    case Reduction::kMin: return Run<Reduction::kMin>(context, s);
    default: break;
  }
  if constexpr (std::is_floating_point_v<T>) {
    return Run<Reduction::kMean>(context, s);
  } else {
    return Internal("a mean of integers");  // which CheckInputs rejects
  }
}

template <class T>
Status ScatterReduce32(const ScatterReduce& op, const Context& context, Tensor<const T, kAnyRank> data,
                       Tensor<const int32_t, kAnyRank> indices, Tensor<const T, kAnyRank> updates,
                       Tensor<T, kAnyRank> output) {
  return ScatterReduceOf(op, context, data, indices, updates, output);
}

template <class T>
Status ScatterReduce64(const ScatterReduce& op, const Context& context, Tensor<const T, kAnyRank> data,
                       Tensor<const int64_t, kAnyRank> indices, Tensor<const T, kAnyRank> updates,
                       Tensor<T, kAnyRank> output) {
  return ScatterReduceOf(op, context, data, indices, updates, output);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(ScatterReduce, ScatterReduce32, float, double, int32_t, int64_t);
POLYOP_CPU_KERNELS(ScatterReduce, ScatterReduce64, float, double, int32_t, int64_t);
}  // namespace polyop
#endif
