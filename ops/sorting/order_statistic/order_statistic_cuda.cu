// SPDX-License-Identifier: Apache-2.0
#include "core/order_keys.h"
#include "kernels/cuda/block_reduce.h"
#include "kernels/cuda/cuda.h"
#include "ops/sorting/order_statistic/order_statistic.h"

namespace polyop {
namespace {

// Each block selects an element of one row. It finds the key bit by bit, from the highest on: a bit is set if at most
// as many keys as the rank are less than the key with this bit.

constexpr int kOrderThreads = 256;

template <class T>
struct Frequent {
  int64_t count;
  OrderKey<T> key;
};

// Returns the sum of count(i) for i in [0, length). `sums` has space for an element of each thread.
template <class Count>
POLYOP_DEVICE int64_t SumInBlock(Block& block, int64_t* sums, int64_t length, const Count& count) {
  block.ForThreads([&](int t) {
    int64_t sum = 0;
    for (int64_t i = t; i < length; i += kOrderThreads) sum += count(i);
    sums[t] = sum;
  });
  ReduceBlock(block, sums, kOrderThreads, [](int64_t a, int64_t b) { return a + b; });
  const int64_t total = sums[0];
  block.ForThreads([](int) {});  // all threads have read the total
  return total;
}

template <class T>
POLYOP_DEVICE OrderKey<T> KeyOfRank(Block& block, int64_t* sums, const T* row, int64_t length, int64_t rank) {
  OrderKey<T> key = 0;
  for (int bit = 8 * static_cast<int>(sizeof(T)) - 1; bit >= 0; --bit) {
    const OrderKey<T> candidate = key | OrderKey<T>{1} << bit;
    const auto less = [&](int64_t i) { return OrderKeyOf(row[i]) < candidate ? 1 : 0; };
    if (SumInBlock(block, sums, length, less) <= rank) key = candidate;
  }
  return key;
}

template <class T>
POLYOP_DEVICE OrderKey<T> KeyOfMode(Block& block, Frequent<T>* found, const T* row, int64_t length) {
  const auto better = [](const Frequent<T>& a, const Frequent<T>& b) {
    return b.count > a.count || (b.count == a.count && b.key < a.key) ? b : a;
  };
  block.ForThreads([&](int t) {
    Frequent<T> best{-1, kNanKey<T>};
    for (int64_t i = t; i < length; i += kOrderThreads) {
      const OrderKey<T> key = OrderKeyOf(row[i]);
      Frequent<T> here{0, key};
      for (int64_t j = 0; j < length && !IsNanKey<T>(key); ++j) here.count += OrderKeyOf(row[j]) == key ? 1 : 0;
      best = better(best, here);
    }
    found[t] = best;
  });
  ReduceBlock(block, found, kOrderThreads, better);
  return found[0].key;
}

template <class T>
Status OrderStatisticCuda(const OrderStatistic& op, const CudaContext& cuda, Tensor<const T, kAnyRank> x,
                          Tensor<T, kAnyRank> value, Tensor<int64_t, kAnyRank> index) {
  using Statistic = OrderStatistic::Statistic;
  const int64_t length = x.dim(x.rank() - 1), k = op.k;
  const Statistic statistic = op.statistic;
  const T* const from = x.data();
  T* const to = value.data();
  int64_t* const to_index = index.data();
  constexpr int64_t kBytes = kOrderThreads * (sizeof(int64_t) + sizeof(Frequent<T>)) + 32;
  return ForBlocks(cuda, index.size(), kOrderThreads, kBytes, [=] POLYOP_DEVICE(Block& block) {
    int64_t* const sums = block.Shared<int64_t>(kOrderThreads);
    const T* const row = from + block.index * length;
    OrderKey<T> key;
    if (statistic == Statistic::kMode) {
      key = KeyOfMode(block, block.Shared<Frequent<T>>(kOrderThreads), row, length);
    } else {
      const auto is_number = [&](int64_t i) { return IsNanKey<T>(OrderKeyOf(row[i])) ? 0 : 1; };
      const int64_t numbers = SumInBlock(block, sums, length, is_number);
      int64_t rank = k - 1;
      if (statistic == Statistic::kMedian) rank = numbers < length ? length - 1 : (length - 1) / 2;
      if (statistic == Statistic::kNanMedian) rank = numbers > 0 ? (numbers - 1) / 2 : 0;
      key = KeyOfRank(block, sums, row, length, rank);
    }
    // The last index of the mode, the first of others: the largest after a change of the sign.
    const int64_t sign = statistic == Statistic::kMode ? 1 : -1;
    block.ForThreads([&](int t) {
      int64_t best = -length;
      for (int64_t i = t; i < length; i += kOrderThreads) {
        if (OrderKeyOf(row[i]) == key && sign * i > best) best = sign * i;
      }
      sums[t] = best;
    });
    ReduceBlock(block, sums, kOrderThreads, [](int64_t a, int64_t b) { return a > b ? a : b; });
    block.ForThreads([&](int t) {
      if (t != 0) return;
      to_index[block.index] = sign * sums[0];
      to[block.index] = row[sign * sums[0]];
    });
  });
}

POLYOP_CUDA_KERNELS(OrderStatistic, OrderStatisticCuda, float, double, int32_t, int64_t);

}  // namespace
}  // namespace polyop
