// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention/neighborhood_attention/neighborhood_attention_backward_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "kernels/cpu/softmax-inl.h"
#include "kernels/cpu/widen-inl.h"
#include "ops/attention/neighborhood_attention/neighborhood_attention_backward.h"
#include "ops/attention/neighborhood_attention/neighborhood_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// The items are heads of images, each with its sums for the keys and the values.
template <class T>
Status NeighborhoodAttentionBackwardCpu(const NeighborhoodAttentionBackward& op, const Context& context,
                                        Tensor<const T, kAnyRank> grad_output, Tensor<const T, kAnyRank> query,
                                        Tensor<const T, kAnyRank> key, Tensor<const T, kAnyRank> value,
                                        std::optional<Tensor<T, kAnyRank>> grad_query,
                                        std::optional<Tensor<T, kAnyRank>> grad_key,
                                        std::optional<Tensor<T, kAnyRank>> grad_value) {
  Neighborhood neighborhood;
  POLYOP_RETURN_IF_ERROR(Neighborhood::Of(op, query.shape(), &neighborhood));
  const int64_t rank = query.rank(), heads = query.dim(rank - 2), depth = query.dim(rank - 1);
  const int64_t columns = value.dim(rank - 1), positions = neighborhood.positions(), items = query.dim(0) * heads;
  const int64_t most = neighborhood.max_neighbors(), pitch = Padded(depth), column_pitch = Padded(columns);
  const int64_t floats = 2 * Padded(most + 4) + 2 * pitch + column_pitch + 16 + positions * (pitch + column_pitch);
  const float scale = static_cast<float>(ScaleOf(op, depth));
  const int64_t index_bytes = Padded(most) * static_cast<int64_t>(sizeof(int64_t));
  const auto compute = [&](char* memory, int64_t begin, int64_t end) HWY_ATTR {
    auto* const index = reinterpret_cast<int64_t*>(memory);
    auto* const weights = reinterpret_cast<float*>(memory + index_bytes);
    float* const of_weights = weights + Padded(most + 4);
    float* const row = of_weights + Padded(most + 4);
    float* const of_row = row + pitch;
    float* const of_output = of_row + pitch + 16;
    float* const of_keys = of_output + column_pitch;
    float* const of_values = of_keys + positions * pitch;
    std::fill_n(row, pitch, 0.0f);
    std::fill_n(of_output, column_pitch, 0.0f);
    for (int64_t item = begin; item < end; ++item) {
      const int64_t n = item / heads, h = item % heads, first = n * positions * heads + h;
      const T *const keys = key.data() + first * depth, *const values = value.data() + first * columns;
      std::fill_n(of_keys, positions * pitch, 0.0f);
      std::fill_n(of_values, positions * column_pitch, 0.0f);
      for (int64_t q = 0; q < positions; ++q) {
        const int64_t count = neighborhood.ForNeighbors(q, [&](int64_t j, int64_t at) { index[j] = at; });
        WidenRow(query.data() + (first + q * heads) * depth, depth, row);
        WidenRow(grad_output.data() + (first + q * heads) * columns, columns, of_output);
        Products(row, keys, index, heads * depth, count, depth, scale, weights);
        Softmax(weights, count);
        Products(of_output, values, index, heads * columns, count, columns, 1, of_weights);
        AddProducts(weights, of_output, index, count, column_pitch, of_values);
        SoftmaxBackward(weights, count, of_weights);
        for (int64_t j = 0; j < count; ++j) of_weights[j] *= scale;
        AddProducts(of_weights, row, index, count, pitch, of_keys);
        if (grad_query) {
          WeightedSum(of_weights, keys, index, heads * depth, count, depth, of_row);
          NarrowRow(of_row, depth, grad_query->data() + (first + q * heads) * depth);
        }
      }
      for (int64_t q = 0; q < positions; ++q) {
        if (grad_key) NarrowRow(of_keys + q * pitch, depth, grad_key->data() + (first + q * heads) * depth);
        if (grad_value) {
          NarrowRow(of_values + q * column_pitch, columns, grad_value->data() + (first + q * heads) * columns);
        }
      }
    }
  };
  const int64_t bytes = index_bytes + floats * static_cast<int64_t>(sizeof(float));
  if (context.ParallelForWithScratch<char>(items, 1, bytes, compute)) return Status::Ok();
  return Internal("out of memory: gradients of ", positions, " positions");
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(NeighborhoodAttentionBackward, NeighborhoodAttentionBackwardCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
