// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/order_keys.h"
#include "ops/sorting/order_statistic/order_statistic.h"

namespace polyop {
namespace {

// Nothing here fills vectors, so this file is compiled once and not for every instruction set.

using Statistic = OrderStatistic::Statistic;

// Returns the key that occurs most often in sorted keys, the smallest of several. Each NaN occurs once.
template <class T>
OrderKey<T> MostFrequent(const OrderKey<T>* sorted, int64_t count) {
  OrderKey<T> best = sorted[0];
  int64_t most = 0;
  for (int64_t first = 0; first < count && !IsNanKey<T>(sorted[first]);) {
    int64_t end = first + 1;
    while (end < count && sorted[end] == sorted[first]) ++end;
    if (end - first > most) {
      most = end - first;
      best = sorted[first];
    }
    first = end;
  }
  return best;
}

// Returns the key that has this rank among the keys, which it overwrites. A pass counts the values of some bits, and
// keeps the keys that have those of the selected one: without branches that depend on keys.
template <class K>
K SelectKey(K* keys, int64_t count, int64_t rank) {
  constexpr int kBits = 8, kValues = 1 << kBits;
  constexpr int64_t kMinCount = 100;  // for fewer keys, clearing the counters takes longer than comparisons
  for (int shift = 8 * static_cast<int>(sizeof(K)) - kBits; shift >= 0 && count >= kMinCount; shift -= kBits) {
    const auto value_of = [=](K key) { return static_cast<int>(key >> shift) & (kValues - 1); };
    int64_t counters[2][kValues] = {};  // two, because an increment waits for one of the same counter
    for (int64_t i = 0; i < count; ++i) ++counters[i & 1][value_of(keys[i])];
    int selected = 0;
    for (; rank >= counters[0][selected] + counters[1][selected]; ++selected) {
      rank -= counters[0][selected] + counters[1][selected];
    }
    int64_t kept = 0;
    for (int64_t i = 0; i < count; ++i) {
      const K key = keys[i];
      keys[kept] = key;
      kept += value_of(key) == selected ? 1 : 0;
    }
    count = kept;
  }
  std::nth_element(keys, keys + rank, keys + count);
  return keys[rank];
}

// Returns the index of the selected element of a row. `keys` has space for `count` keys.
template <class T>
int64_t SelectElement(const OrderStatistic& op, const T* row, int64_t count, OrderKey<T>* keys) {
  int64_t numbers = count;
  for (int64_t i = 0; i < count; ++i) {
    keys[i] = OrderKeyOf(row[i]);
    numbers -= IsNanKey<T>(keys[i]) ? 1 : 0;
  }
  const bool is_mode = op.statistic == Statistic::kMode;
  OrderKey<T> selected;
  if (is_mode) {
    std::sort(keys, keys + count);
    selected = MostFrequent<T>(keys, count);
  } else {
    int64_t rank = op.k - 1;
    if (op.statistic == Statistic::kMedian) rank = numbers < count ? count - 1 : (count - 1) / 2;
    if (op.statistic == Statistic::kNanMedian) rank = std::max<int64_t>(numbers - 1, 0) / 2;
    selected = SelectKey(keys, count, rank);
  }
  const auto is_selected = [&](int64_t i) { return OrderKeyOf(row[i]) == selected; };
  int64_t index = is_mode ? count - 1 : 0;
  while (!is_selected(index)) index += is_mode ? -1 : 1;
  return index;
}

template <class T>
Status OrderStatisticCpu(const OrderStatistic& op, const Context& context, Tensor<const T, kAnyRank> x,
                         Tensor<T, kAnyRank> value, Tensor<int64_t, kAnyRank> index) {
  const int64_t length = x.dim(x.rank() - 1), grain = GrainFor(10 * static_cast<double>(length));
  const auto select = [&](OrderKey<T>* keys, int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const T* const row = x.data() + n * length;
      index[n] = SelectElement(op, row, length, keys);
      value[n] = row[index[n]];
    }
  };
  if (context.ParallelForWithScratch<OrderKey<T>>(index.size(), grain, length, select)) return Status::Ok();
  return Internal("out of memory: rows of ", length, " elements");
}

POLYOP_PLAIN_CPU_KERNELS(OrderStatistic, OrderStatisticCpu, float, double, int32_t, int64_t);

}  // namespace
}  // namespace polyop
