// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "core/order_keys.h"
#include "kernels/cpu/radix_sort.h"
#include "ops/sorting/argsort/argsort.h"

namespace polyop {
namespace {

// A counting sort has nothing to vectorise, so this file is compiled once and not for every instruction set.

template <class K>
struct KeyAndIndex {
  K key;
  int32_t index;
};

// Sorts rows on one thread.
template <class K>
class RowSort {
 public:
  // `pairs` has space for Size(length).
  RowSort(KeyAndIndex<K>* pairs, int64_t length) : pairs_(pairs), others_(pairs + length), length_(length) {}

  static int64_t Size(int64_t length) { return 2 * length; }

  template <class T>
  void Sort(const T* row, K flipped_bits, int64_t* order) {
    for (int64_t i = 0; i < length_; ++i) pairs_[i] = {OrderKeyOf(row[i]) ^ flipped_bits, static_cast<int32_t>(i)};
    if (length_ < kMinLengthOfDigits) {
      std::sort(pairs_, pairs_ + length_, [](const KeyAndIndex<K>& a, const KeyAndIndex<K>& b) {
        return a.key != b.key ? a.key < b.key : a.index < b.index;
      });
    } else if (length_ < kMinLengthOfLongDigits) {
      SortDigits<8>();
    } else {
      SortDigits<11>();
    }
    for (int64_t i = 0; i < length_; ++i) order[i] = pairs_[i].index;
  }

 private:
  // Of shorter rows, clearing and adding up the counters takes longer than what they save.
  static constexpr int64_t kMinLengthOfDigits = 128, kMinLengthOfLongDigits = 700;

  template <int kBits>
  void SortDigits() {
    constexpr int kDigits = (8 * static_cast<int>(sizeof(K)) + kBits - 1) / kBits;
    const auto digit_of = [](K key, int digit) {
      return static_cast<size_t>(key >> (kBits * digit) & ((1 << kBits) - 1));
    };
    std::array<std::array<int32_t, 1 << kBits>, kDigits> positions{};
    for (int64_t i = 0; i < length_; ++i) {
      for (int digit = 0; digit < kDigits; ++digit) ++positions[digit][digit_of(pairs_[i].key, digit)];
    }
    for (int digit = 0; digit < kDigits; ++digit) {
      auto& next = positions[digit];
      if (next[digit_of(pairs_[0].key, digit)] == length_) continue;  // it is equal in all keys
      std::exclusive_scan(next.begin(), next.end(), next.begin(), 0);
      for (int64_t i = 0; i < length_; ++i) {
        others_[next[digit_of(pairs_[i].key, digit)]++] = pairs_[i];
      }
      std::swap(pairs_, others_);
    }
  }

  KeyAndIndex<K>* pairs_;
  KeyAndIndex<K>* others_;
  int64_t length_;
};

// Sorts one row on all threads.
template <class T>
Status SortLongRow(const Context& context, const T* row, int64_t length, OrderKey<T> flipped_bits, int64_t* order) {
  constexpr int64_t kGrain = 1 << 15;
  RadixSort sort(context, length);
  if (!sort) return Internal("out of memory: rows of ", length, " elements");
  POLYOP_RETURN_IF_ERROR(sort.SortIndices(length, [&](int64_t i) { return OrderKeyOf(row[i]) ^ flipped_bits; }));
  context.ParallelFor(length, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) order[i] = sort.values()[i];
  });
  return Status::Ok();
}

template <class T>
Status ArgsortCpu(const Argsort& op, const Context& context, Tensor<const T, kAnyRank> x,
                  Tensor<int64_t, kAnyRank> order) {
  using Key = OrderKey<T>;
  constexpr int64_t kLongRow = 1 << 15;
  const int64_t length = x.dim(x.rank() - 1), rows = length == 0 ? 0 : x.size() / length;
  const Key flipped_bits = op.descending != 0 ? ~Key{0} : 0;
  if (length >= kLongRow) {
    for (int64_t first = 0; first < x.size(); first += length) {
      POLYOP_RETURN_IF_ERROR(SortLongRow(context, x.data() + first, length, flipped_bits, order.data() + first));
    }
    return Status::Ok();
  }
  const int64_t grain = GrainFor(10 * static_cast<double>(length)), size = RowSort<Key>::Size(length);
  const auto sort_rows = [&](KeyAndIndex<Key>* pairs, int64_t begin, int64_t end) {
    RowSort<Key> sort(pairs, length);
    for (int64_t n = begin; n < end; ++n) sort.Sort(x.data() + n * length, flipped_bits, order.data() + n * length);
  };
  if (context.ParallelForWithScratch<KeyAndIndex<Key>>(rows, grain, size, sort_rows)) return Status::Ok();
  return Internal("out of memory: rows of ", length, " elements");
}
POLYOP_PLAIN_CPU_KERNELS(Argsort, ArgsortCpu, float, double, Half, BFloat16, int32_t, int64_t);

}  // namespace
}  // namespace polyop
