// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "ops/sorting/order_statistic/order_statistic.h"

namespace polyop {
namespace {

template <class T>
bool IsNanElement(T x) {
  return std::isnan(static_cast<double>(x));
}

// Returns the index of the most frequent element, of several the smallest one, and its last occurrence.
template <class T>
int64_t IndexOfMode(const T* x, const std::vector<int64_t>& order) {
  int64_t best = IsNanElement(x[order.front()]) ? order.back() : order.front();
  size_t most = 0;
  for (size_t first = 0; first < order.size();) {
    size_t end = first;
    while (end < order.size() && x[order[end]] == x[order[first]]) ++end;
    if (end - first > most) {
      most = end - first;
      best = order[end - 1];
    }
    first = std::max(end, first + 1);
  }
  return best;
}

template <class T>
Status OrderStatisticReference(const OrderStatistic& op, const Context&, Tensor<const T, kAnyRank> x,
                               Tensor<T, kAnyRank> value, Tensor<int64_t, kAnyRank> index) {
  using Statistic = OrderStatistic::Statistic;
  const int64_t length = x.dim(x.rank() - 1);
  std::vector<int64_t> order(static_cast<size_t>(length));
  for (int64_t n = 0; n < index.size(); ++n) {
    const T* const row = x.data() + n * length;
    std::iota(order.begin(), order.end(), int64_t{0});
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return row[a] < row[b] || (IsNanElement(row[b]) && !IsNanElement(row[a]));
    });
    int64_t numbers = 0;
    for (int64_t i = 0; i < length; ++i) numbers += IsNanElement(row[i]) ? 0 : 1;
    int64_t rank = op.k - 1;
    if (op.statistic == Statistic::kMedian) rank = numbers < length ? numbers : (length - 1) / 2;
    if (op.statistic == Statistic::kNanMedian) rank = numbers == 0 ? 0 : (numbers - 1) / 2;
    if (op.statistic == Statistic::kMode) {
      index[n] = IndexOfMode(row, order);
    } else {
      // The order is stable: the first element that is equal is the first in the row.
      while (rank > 0 && !(row[order[static_cast<size_t>(rank - 1)]] < row[order[static_cast<size_t>(rank)]]) &&
             (rank < numbers || rank > numbers)) {
        --rank;
      }
      index[n] = order[static_cast<size_t>(rank)];
    }
    value[n] = row[index[n]];
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(OrderStatistic, OrderStatisticReference, double, int32_t, int64_t);

}  // namespace
}  // namespace polyop
