// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/scatter/scatter_nd/scatter_nd_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "kernels/cpu/stream-inl.h"
#include "ops/scatter/scatter_nd/scatter_nd.h"
#include "ops/scatter/scatter_nd/scatter_nd_values.h"

#ifndef POLYOP_OPS_SCATTER_ND_ONCE_
#define POLYOP_OPS_SCATTER_ND_ONCE_
namespace polyop {
namespace {

constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
constexpr int64_t kLongSlice =
    512;                       // bytes; writing such a slice takes longer than skipping its tuple in the other parts
constexpr int64_t kParts = 8;  // parts of the output, for slices that may occur more than once

// The arguments of a call, with the element type erased.
template <class I>
struct Scatter {
  const char* data;
  const I* indices;
  const char* updates;
  char* output;
  int64_t data_bytes, slice_bytes, num_slices, num_tuples;
  int depth;
  std::array<int64_t, kMaxRank> extent{};  // extents of the dimensions that tuples index

  // Returns the slice of a tuple, or -1 if the tuple is out of range.
  int64_t SliceOf(int64_t tuple) const {
    const I* at = indices + tuple * depth;
    int64_t slice = 0;
    for (int d = 0; d < depth; ++d) {
      const int64_t index = at[d] < 0 ? at[d] + extent[d] : at[d];
      if (index < 0 || index >= extent[d]) return -1;
      slice = slice * extent[d] + index;
    }
    return slice;
  }

  template <int64_t kBytes>
  void UpdateEach(int64_t begin, int64_t end) const {
    for (int64_t t = begin; t < end; ++t) {
      std::memcpy(output + SliceOf(t) * kBytes, updates + t * kBytes, kBytes);
    }
  }

  // Writes the slices of tuples [begin, end), in order.
  void Update(int64_t begin, int64_t end) const {
    switch (slice_bytes) {
      case 0: return;
      case 1: return UpdateEach<1>(begin, end);
      case 2: return UpdateEach<2>(begin, end);
      case 4: return UpdateEach<4>(begin, end);
      case 8: return UpdateEach<8>(begin, end);
      default: UpdateSlices(begin, end, 0, num_slices);
    }
  }

  // Like Update, but writes only slices in [first, last).
  void UpdateSlices(int64_t begin, int64_t end, int64_t first, int64_t last) const {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t slice = SliceOf(t);
      if (slice < first || slice >= last) continue;
      std::memcpy(output + slice * slice_bytes, updates + t * slice_bytes, static_cast<size_t>(slice_bytes));
    }
  }
};

// The result of checking the tuples of one task.
struct Survey {
  int64_t invalid = kNone;  // the first tuple that is out of range
  int64_t first = 0, last = 0;
  bool ascending = true;  // slices are strictly ascending
};

template <class I>
Survey SurveyOf(const Scatter<I>& scatter, int64_t begin, int64_t end) {
  Survey survey;
  int64_t before = -1;
  for (int64_t t = begin; t < end; ++t) {
    const int64_t slice = scatter.SliceOf(t);
    if (slice < 0) {
      survey.invalid = t;
      return survey;
    }
    survey.ascending &= slice > before;
    if (t == begin) survey.first = slice;
    before = slice;
  }
  survey.last = before;
  return survey;
}

}  // namespace
}  // namespace polyop
#endif  // POLYOP_OPS_SCATTER_ND_ONCE_

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

void CopyData(const Context& context, const char* from, char* to, int64_t bytes) {
  constexpr int64_t kBlock = 16384;
  const bool stream = bytes >= kStreamBytes;
  context.ParallelFor((bytes + kBlock - 1) / kBlock, 16, [&](int64_t begin, int64_t end) HWY_ATTR {
    const int64_t at = begin * kBlock, size = std::min(bytes, end * kBlock) - at;
    if (stream) {
      StreamRun(from + at, size, to + at);
      hwy::FlushStream();
    } else {
      hwy::CopyBytes(from + at, to + at, static_cast<size_t>(size));
    }
  });
}

template <class I>
Status Run(const Context& context, const Scatter<I>& scatter) {
  const int64_t grain = GrainFor(1.0 + static_cast<double>(scatter.depth));
  const Scratch<Survey> surveys = context.Allocate<Survey>(Context::NumTasks(scatter.num_tuples, grain));
  if (!surveys) return Internal("out of memory: ", surveys.size(), " tasks");
  context.ParallelFor(scatter.num_tuples, grain,
                      [&](int64_t task, int64_t begin, int64_t end) { surveys[task] = SurveyOf(scatter, begin, end); });
  bool ascending = true;
  for (int64_t i = 0; i < surveys.size(); ++i) {
    const int64_t invalid = surveys[i].invalid;
    if (invalid != kNone) {
      return CheckTuple(scatter.indices + invalid * scatter.depth, invalid,
                        {scatter.extent.data(), static_cast<size_t>(scatter.depth)});
    }
    ascending = ascending && surveys[i].ascending && (i == 0 || surveys[i].first > surveys[i - 1].last);
  }

  CopyData(context, scatter.data, scatter.output, scatter.data_bytes);
  if (ascending) {  // no slice occurs more than once
    const double nanoseconds = 2.0 + static_cast<double>(scatter.slice_bytes) * 0.1;
    context.ParallelFor(scatter.num_tuples, GrainFor(nanoseconds),
                        [&](int64_t begin, int64_t end) { scatter.Update(begin, end); });
  } else if (scatter.slice_bytes >= kLongSlice) {
    // Tasks divide the output, not the tuples: each writes the slices of its part in the order of the tuples.
    context.ParallelFor(kParts, 1, [&](int64_t begin, int64_t end) {
      const int64_t per_part = (scatter.num_slices + kParts - 1) / kParts;
      scatter.UpdateSlices(0, scatter.num_tuples, begin * per_part, end * per_part);
    });
  } else {
    scatter.Update(0, scatter.num_tuples);
  }
  return Status::Ok();
}

template <class T, class I>
Status ScatterNDOf(const Context& context, const Tensor<const T, kAnyRank>& data,
                   const Tensor<const I, kAnyRank>& indices, const Tensor<const T, kAnyRank>& updates,
                   const Tensor<T, kAnyRank>& output) {
  Scatter<I> scatter;
  scatter.data = reinterpret_cast<const char*>(data.data());
  scatter.indices = indices.data();
  scatter.updates = reinterpret_cast<const char*>(updates.data());
  scatter.output = reinterpret_cast<char*>(output.data());
  scatter.depth = static_cast<int>(indices.dim(indices.rank() - 1));
  scatter.num_tuples = scatter.num_slices = 1;
  scatter.slice_bytes = sizeof(T);
  for (int d = 0; d + 1 < indices.rank(); ++d) scatter.num_tuples *= indices.dim(d);
  for (int d = 0; d < data.rank(); ++d) {
    (d < scatter.depth ? scatter.num_slices : scatter.slice_bytes) *= data.dim(d);
    if (d < scatter.depth) scatter.extent[d] = data.dim(d);
  }
  scatter.data_bytes = data.size() * static_cast<int64_t>(sizeof(T));
  return Run(context, scatter);
}

template <class T>
Status ScatterND32(const ScatterND&, const Context& context, Tensor<const T, kAnyRank> data,
                   Tensor<const int32_t, kAnyRank> indices, Tensor<const T, kAnyRank> updates,
                   Tensor<T, kAnyRank> output) {
  return ScatterNDOf(context, data, indices, updates, output);
}

template <class T>
Status ScatterND64(const ScatterND&, const Context& context, Tensor<const T, kAnyRank> data,
                   Tensor<const int64_t, kAnyRank> indices, Tensor<const T, kAnyRank> updates,
                   Tensor<T, kAnyRank> output) {
  return ScatterNDOf(context, data, indices, updates, output);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(ScatterND, ScatterND32, float, Half, BFloat16, double, int8_t, uint8_t, int16_t, int32_t, int64_t,
                   bool);
POLYOP_CPU_KERNELS(ScatterND, ScatterND64, float, Half, BFloat16, double, int8_t, uint8_t, int16_t, int32_t, int64_t,
                   bool);
}  // namespace polyop
#endif
