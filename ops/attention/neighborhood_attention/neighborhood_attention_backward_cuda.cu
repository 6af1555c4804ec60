// SPDX-License-Identifier: Apache-2.0
#include <type_traits>

#include "kernels/cuda/cuda.h"
#include "ops/attention/neighborhood_attention/neighborhood_attention_backward.h"
#include "ops/attention/neighborhood_attention/neighborhood_warps_cuda.h"

namespace polyop {
namespace {

using neighborhood::Row;
using neighborhood::RowSums;
using neighborhood::WarpRows;

template <class T, int kWidth>
struct AttentionTensors {
  Row<T, kWidth> grads, queries, keys, values;
};

// The largest product of a query, and the gradient of its weight.
struct LargestProduct {
  float product, of_weight;
  int32_t lane;
};

// Returns the larger product, or NaN; ties go to the lower lane.
POLYOP_HD inline LargestProduct LargerOf(const LargestProduct& a, const LargestProduct& b) {
  const bool a_nan = a.product != a.product, b_nan = b.product != b.product;
  if (a_nan || b_nan) return a_nan && (!b_nan || a.lane < b.lane) ? a : b;
  return b.product > a.product || (b.product == a.product && b.lane < a.lane) ? b : a;
}

// Each warp computes a query of a head: the weights of its keys and the gradients of its products, both [rows, most],
// and the query's gradient, unless that is null. A lane reads only those elements of both that it has written.
template <class T, int kWidth>
Status QueryGradients(const CudaContext& cuda, const Neighborhood& neighborhood, const WarpRows& rows, float scale,
                      const AttentionTensors<T, kWidth>& in, int64_t most, float* all_weights, float* all_products,
                      T* grad_query) {
  return neighborhood::ForRows(cuda, rows, [=] POLYOP_DEVICE(const WarpRows::Item& item) {
    const NeighborWindow window = neighborhood.WindowAt(item.position);
    const int64_t window_size = window.count();
    float *const weights = all_weights + item.row * most, *const products = all_products + item.row * most;
    const auto find_neighbors = [&](int64_t first, int count, Lanes<int64_t>& neighbors) {
      ForLanes([&](int lane) {
        neighbors[lane] = lane < count ? item.RowAt(window.LocationOf(static_cast<uint32_t>(first + lane))) : 0;
      });
    };
    const auto count_from = [&](int64_t first) {
      return static_cast<int>(window_size - first < kWarpLanes ? window_size - first : kWarpLanes);
    };
    const auto add = [](float a, float b) { return a + b; };
    Lanes<LargestProduct> largest;
    ForLanes([&](int lane) { largest[lane] = {-INFINITY, 0, lane}; });
    for (int64_t first = 0; first < window_size; first += kWarpLanes) {
      const int count = count_from(first);
      Lanes<int64_t> neighbors;
      find_neighbors(first, count, neighbors);
      Lanes<float> product, of_weight;
      neighborhood::MultiplyRows(item.row, in.queries, neighbors, count, in.keys, product);
      neighborhood::MultiplyRows(item.row, in.grads, neighbors, count, in.values, of_weight);
      ForLanes([&](int lane) {
        if (lane >= count) return;
        const float value = product[lane] * scale;
        weights[first + lane] = value;
        products[first + lane] = of_weight[lane];
        if (value > largest[lane].product || value != value) largest[lane] = {value, of_weight[lane], lane};
      });
    }
    const LargestProduct max = largest.Reduce([](const auto& a, const auto& b) { return LargerOf(a, b); });
    Lanes<float> sums;
    ForLanes([&](int lane) {
      sums[lane] = 0;
      for (int64_t j = lane; j < window_size; j += kWarpLanes) {
        sums[lane] += weights[j] = std::exp(weights[j] - max.product);
      }
    });
    const float total = sums.Reduce(add);
    ForLanes([&](int lane) {
      sums[lane] = 0;
      for (int64_t j = lane; j < window_size; j += kWarpLanes) {
        weights[j] /= total;
        // Relative to the largest weight's, the gradients do not cancel where that weight is nearly 1.
        products[j] -= max.of_weight;
        sums[lane] += weights[j] * products[j];
      }
    });
    const float mean = sums.Reduce(add);
    ForLanes([&](int lane) {
      for (int64_t j = lane; j < window_size; j += kWarpLanes) products[j] = weights[j] * (products[j] - mean) * scale;
    });
    if (grad_query == nullptr) return;
    for (int64_t part = 0; part < in.keys.size; part += neighborhood::kPartOfRow<kWidth>) {
      Lanes<RowSums<kWidth>> gradient;
      ForLanes([&](int lane) { gradient[lane].Clear(); });
      for (int64_t first = 0; first < window_size; first += kWarpLanes) {
        const int count = count_from(first);
        Lanes<int64_t> neighbors;
        find_neighbors(first, count, neighbors);
        Lanes<float> factors;
        ForLanes([&](int lane) { factors[lane] = lane < count ? products[first + lane] : 0; });
        neighborhood::AddRows(neighbors, factors, count, in.keys, part, gradient);
      }
      neighborhood::StoreSums(gradient, 1.0f, grad_query, item.row, in.keys.size, part);
    }
  });
}

// Each warp computes a row of the gradient of keys, or values: the sum over the queries whose windows contain the
// position of factors[query][neighbour] * from[query].
template <class T, int kWidth>
Status SumOverQueries(const CudaContext& cuda, const Neighborhood& neighborhood, const WarpRows& rows,
                      const float* factors, int64_t most, const Row<T, kWidth>& from, T* to) {
  return neighborhood::ForRows(cuda, rows, [=] POLYOP_DEVICE(const WarpRows::Item& item) {
    const NeighborWindow around = neighborhood.WindowAround(item.position);
    const int64_t around_size = around.count();
    int64_t position[3];
    neighborhood.Split(item.position, position);
    for (int64_t part = 0; part < from.size; part += neighborhood::kPartOfRow<kWidth>) {
      Lanes<RowSums<kWidth>> sums;
      ForLanes([&](int lane) { sums[lane].Clear(); });
      for (int64_t first = 0; first < around_size; first += kWarpLanes) {
        const int count = static_cast<int>(around_size - first < kWarpLanes ? around_size - first : kWarpLanes);
        Lanes<int64_t> queries;
        Lanes<float> factor;
        ForLanes([&](int lane) {
          queries[lane] = 0;
          factor[lane] = 0;
          if (lane >= count) return;
          int64_t query[3];
          around.AxesOf(static_cast<uint32_t>(first + lane), query);
          queries[lane] = item.RowAt(around.LocationOf(query));
          factor[lane] = factors[queries[lane] * most + neighborhood.NumberOf(query, position)];
        });
        neighborhood::AddRows(queries, factor, count, from, part, sums);
      }
      neighborhood::StoreSums(sums, 1.0f, to, item.row, from.size, part);
    }
  });
}

template <class T>
Status NeighborhoodAttentionBackwardCuda(const NeighborhoodAttentionBackward& op, const CudaContext& cuda,
                                         Tensor<const T, kAnyRank> grad_output, Tensor<const T, kAnyRank> query,
                                         Tensor<const T, kAnyRank> key, Tensor<const T, kAnyRank> value,
                                         std::optional<Tensor<T, kAnyRank>> grad_query,
                                         std::optional<Tensor<T, kAnyRank>> grad_key,
                                         std::optional<Tensor<T, kAnyRank>> grad_value) {
  Neighborhood neighborhood;
  POLYOP_RETURN_IF_ERROR(Neighborhood::Of(op, query.shape(), &neighborhood));
  const int64_t rank = query.rank(), depth = query.dim(rank - 1), columns = value.dim(rank - 1);
  const int64_t most = neighborhood.max_neighbors();
  const float scale = static_cast<float>(ScaleOf(op, depth));
  const WarpRows rows(query.dim(0), neighborhood.positions(), query.dim(rank - 2));
  const int64_t row_count = rows.count * rows.heads;
  float *const weights = cuda.Allocate<float>(row_count * most), *const products =
                                                                     cuda.Allocate<float>(row_count * most);
  T *const to_query = grad_query ? grad_query->data() : nullptr, *const to_key = grad_key ? grad_key->data() : nullptr,
           *const to_value = grad_value ? grad_value->data() : nullptr;
  const auto compute = [&]<int kWidth>(std::integral_constant<int, kWidth>) {
    const AttentionTensors<T, kWidth> in{
        {grad_output.data(), columns}, {query.data(), depth}, {key.data(), depth}, {value.data(), columns}};
    POLYOP_RETURN_IF_ERROR(QueryGradients(cuda, neighborhood, rows, scale, in, most, weights, products, to_query));
    if (to_key != nullptr) {
      POLYOP_RETURN_IF_ERROR(SumOverQueries(cuda, neighborhood, rows, products, most, in.queries, to_key));
    }
    if (to_value == nullptr) return Status::Ok();
    return SumOverQueries(cuda, neighborhood, rows, weights, most, in.grads, to_value);
  };
  if (neighborhood::AreAligned<4, T>(
          {grad_output.data(), query.data(), key.data(), value.data(), to_query, to_key, to_value}, {depth, columns})) {
    return compute(std::integral_constant<int, 4>());
  }
  return compute(std::integral_constant<int, 1>());
}

POLYOP_CUDA_KERNELS(NeighborhoodAttentionBackward, NeighborhoodAttentionBackwardCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
