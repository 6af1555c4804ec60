// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/feature_maps/active_rotated_filter/active_rotated_filter_backward_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/channel_blocks-inl.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/type_pairs.h"
#include "ops/feature_maps/active_rotated_filter/active_rotated_filter_backward.h"
#include "ops/feature_maps/active_rotated_filter/active_rotated_filter_values.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Filters [O, P] in groups of up to 16 along the longer axis. A group is interleaved, so that its entries are vectors.
struct FilterGroups {
  int64_t outer, length, per_row, count;
  int64_t outer_stride, stride;            // in filters of the input
  int64_t grad_outer_stride, grad_stride;  // in filters of the output, whose axes are [O, R, P]

  FilterGroups(int64_t outputs, int64_t planes, int64_t rotations) {
    const bool along_planes = planes >= outputs;
    outer = along_planes ? outputs : planes;
    length = along_planes ? planes : outputs;
    per_row = (length + kBlockChannels - 1) / kBlockChannels;
    count = outer * per_row;
    outer_stride = along_planes ? planes : 1;
    stride = along_planes ? 1 : planes;
    grad_outer_stride = along_planes ? planes * rotations : 1;
    grad_stride = along_planes ? 1 : planes * rotations;
  }
};

// Adds tile [entries][16] to the sums [entries][16] of the entries that they are copies of.
void AddToSources(const float* tile, const int64_t* source, int64_t entries, float* sums) {
  const hn::CappedTag<float, kBlockChannels> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t e = 0; e < entries; ++e, tile += kBlockChannels) {
    if (source[e] < 0) continue;
    float* const sum = sums + source[e] * kBlockChannels;
    for (int64_t v = 0; v < kBlockChannels; v += lanes) {
      hn::StoreU(hn::Add(hn::LoadU(d, sum + v), hn::LoadU(d, tile + v)), d, sum + v);
    }
  }
}

template <class Types>
Status ActiveRotatedFilterBackwardCpu(const ActiveRotatedFilterBackward&, const Context& context,
                                      Tensor<const typename Types::Real, 4> grad_output,
                                      Tensor<const typename Types::Real, 5> input,
                                      Tensor<const typename Types::Int, 4> indices,
                                      Tensor<typename Types::Real, 5> grad_input) {
  POLYOP_RETURN_IF_ERROR(CheckPositions(indices));
  const int64_t planes = input.dim(1), entries = input.dim(2) * input.dim(3) * input.dim(4), rotations = indices.dim(3);
  const FilterGroups groups(input.dim(0), planes, rotations);
  const int64_t grain = GrainFor(static_cast<double>(kBlockChannels * rotations * entries) * 0.5);
  const int64_t size = entries * kBlockChannels;
  const Scratch<int64_t> sources = context.Allocate<int64_t>(indices.size());
  const Scratch<float> scratch = context.Allocate<float>(Context::NumTasks(groups.count, grain) * 2 * size);
  if (!sources || !scratch) return Internal("out of memory: ", rotations, " rotations of ", entries, " entries");
  FindSources(indices, sources.data());
  context.ParallelFor(groups.count, grain, [&](int64_t task, int64_t begin, int64_t end) {
    float *const sums = scratch.data() + task * 2 * size, *const tile = sums + size;
    for (int64_t group = begin; group < end; ++group) {
      const int64_t outer = group / groups.per_row, first = group % groups.per_row * kBlockChannels;
      const int64_t held = std::min(kBlockChannels, groups.length - first);
      const typename Types::Real* const grad =
          grad_output.data() + (outer * groups.grad_outer_stride + first * groups.grad_stride) * entries;
      std::fill_n(sums, size, 0.0f);
      for (int64_t r = 0; r < rotations; ++r) {
        InterleaveChannels(grad + r * planes * entries, held, groups.grad_stride * entries, entries, tile);
        AddToSources(tile, sources.data() + r * entries, entries, sums);
      }
      WriteChannels(sums, entries, held, groups.stride * entries,
                    grad_input.data() + (outer * groups.outer_stride + first * groups.stride) * entries);
    }
  });
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(ActiveRotatedFilterBackward, ActiveRotatedFilterBackwardCpu, F32I32, F32I64, F16I32, F16I64, BF16I32,
                   BF16I64);
}  // namespace polyop
#endif
