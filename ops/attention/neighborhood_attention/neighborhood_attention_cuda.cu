// SPDX-License-Identifier: Apache-2.0
#include <type_traits>

#include "kernels/cuda/cuda.h"
#include "ops/attention/neighborhood_attention/neighborhood_attention.h"
#include "ops/attention/neighborhood_attention/neighborhood_warps_cuda.h"

namespace polyop {
namespace {

using neighborhood::Row;
using neighborhood::RowSums;
using neighborhood::WarpRows;

// Each warp computes a row, 32 keys at a time. Sums are relative to the largest product so far. Rows with more columns
// than RowSums holds are computed in parts.
template <class T, int kWidth>
Status AttendToNeighbors(const CudaContext& cuda, const Neighborhood& neighborhood, const WarpRows& rows, float scale,
                         const Row<T, kWidth>& queries, const Row<T, kWidth>& keys, const Row<T, kWidth>& values,
                         T* to) {
  return neighborhood::ForRows(cuda, rows, [=] POLYOP_DEVICE(const WarpRows::Item& item) {
    const NeighborWindow window = neighborhood.WindowAt(item.position);
    const int64_t window_size = window.count();
    for (int64_t part = 0; part < values.size; part += neighborhood::kPartOfRow<kWidth>) {
      float largest = -INFINITY, total = 0;
      Lanes<RowSums<kWidth>> sums;
      ForLanes([&](int lane) { sums[lane].Clear(); });
      for (int64_t first = 0; first < window_size; first += kWarpLanes) {
        const int count = static_cast<int>(window_size - first < kWarpLanes ? window_size - first : kWarpLanes);
        Lanes<int64_t> neighbors;
        ForLanes([&](int lane) {
          neighbors[lane] = lane < count ? item.RowAt(window.LocationOf(static_cast<uint32_t>(first + lane))) : 0;
        });
        Lanes<float> products;
        neighborhood::MultiplyRows(item.row, queries, neighbors, count, keys, products);
        ForLanes([&](int lane) { products[lane] = lane < count ? products[lane] * scale : -INFINITY; });
        const float before = largest;
        largest = neighborhood::LargerOrNan(
            before, products.Reduce([](float a, float b) { return neighborhood::LargerOrNan(a, b); }));
        const float shift = largest == -INFINITY ? 0 : largest, factor = std::exp(before - shift);
        Lanes<float> weights;
        ForLanes([&](int lane) {
          weights[lane] = lane < count ? std::exp(products[lane] - shift) : 0;
          if (first > 0) sums[lane].Scale(factor);
        });
        total = total * factor + weights.Reduce([](float a, float b) { return a + b; });
        neighborhood::AddRows(neighbors, weights, count, values, part, sums);
      }
      neighborhood::StoreSums(sums, 1 / total, to, item.row, values.size, part);
    }
  });
}

template <class T>
Status NeighborhoodAttentionCuda(const NeighborhoodAttention& op, const CudaContext& cuda,
                                 Tensor<const T, kAnyRank> query, Tensor<const T, kAnyRank> key,
                                 Tensor<const T, kAnyRank> value, Tensor<T, kAnyRank> output) {
  Neighborhood neighborhood;
  POLYOP_RETURN_IF_ERROR(Neighborhood::Of(op, query.shape(), &neighborhood));
  const int64_t rank = query.rank(), depth = query.dim(rank - 1), columns = value.dim(rank - 1);
  const float scale = static_cast<float>(ScaleOf(op, depth));
  const WarpRows rows(query.dim(0), neighborhood.positions(), query.dim(rank - 2));
  const auto attend = [&]<int kWidth>(std::integral_constant<int, kWidth>) {
    using Rows = Row<T, kWidth>;
    return AttendToNeighbors<T, kWidth>(cuda, neighborhood, rows, scale, Rows{query.data(), depth},
                                        Rows{key.data(), depth}, Rows{value.data(), columns}, output.data());
  };
  if (neighborhood::AreAligned<4, T>({query.data(), key.data(), value.data(), output.data()}, {depth, columns})) {
    return attend(std::integral_constant<int, 4>());
  }
  return attend(std::integral_constant<int, 1>());
}

POLYOP_CUDA_KERNELS(NeighborhoodAttention, NeighborhoodAttentionCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
