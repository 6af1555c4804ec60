// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention/neighborhood_attention/neighborhood_attention_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "kernels/cpu/softmax-inl.h"
#include "kernels/cpu/widen-inl.h"
#include "ops/attention/neighborhood_attention/neighborhood_attention.h"
#include "ops/attention/neighborhood_attention/neighborhood_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// The tasks are positions, whose heads share the window.
template <class T>
Status NeighborhoodAttentionCpu(const NeighborhoodAttention& op, const Context& context,
                                Tensor<const T, kAnyRank> query, Tensor<const T, kAnyRank> key,
                                Tensor<const T, kAnyRank> value, Tensor<T, kAnyRank> output) {
  Neighborhood neighborhood;
  POLYOP_RETURN_IF_ERROR(Neighborhood::Of(op, query.shape(), &neighborhood));
  const int64_t rank = query.rank(), heads = query.dim(rank - 2), depth = query.dim(rank - 1);
  const int64_t columns = value.dim(rank - 1), positions = neighborhood.positions(), queries = query.dim(0) * positions;
  const int64_t most = neighborhood.max_neighbors(), floats = Padded(most + 4) + Padded(depth) + Padded(columns) + 16;
  const float scale = static_cast<float>(ScaleOf(op, depth));
  const int64_t grain = GrainFor(static_cast<double>(heads * (most * (depth + columns + 16) / 8 + 50)) * 0.5);
  const int64_t tasks = Context::NumTasks(queries, grain);
  const Scratch<float> memory = context.Allocate<float>(tasks * floats);
  const Scratch<int64_t> indices = context.Allocate<int64_t>(tasks * most);
  if (!memory || !indices) return Internal("out of memory: windows of ", most, " positions");
  context.ParallelFor(queries, grain, [&](int64_t task, int64_t begin, int64_t end) HWY_ATTR {
    float* const weights = memory.data() + task * floats;
    float* const row = weights + Padded(most + 4);
    float* const sum = row + Padded(depth);
    int64_t* const index = indices.data() + task * most;
    std::fill_n(row, Padded(depth), 0.0f);
    for (int64_t q = begin; q < end; ++q) {
      const int64_t first = q / positions * positions;
      const int64_t count =
          neighborhood.ForNeighbors(q % positions, [&](int64_t j, int64_t at) { index[j] = first + at; });
      for (int64_t h = 0; h < heads; ++h) {
        WidenRow(query.data() + (q * heads + h) * depth, depth, row);
        Products(row, key.data() + h * depth, index, heads * depth, count, depth, scale, weights);
        Softmax(weights, count);
        WeightedSum(weights, value.data() + h * columns, index, heads * columns, count, columns, sum);
        NarrowRow(sum, columns, output.data() + (q * heads + h) * columns);
      }
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
POLYOP_CPU_KERNELS(NeighborhoodAttention, NeighborhoodAttentionCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
