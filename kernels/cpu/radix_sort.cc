// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/radix_sort.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace polyop {
namespace {

constexpr int kDigitBits = 11, kFewDigitBits = 8;
constexpr int64_t kFew = 1 << 13;

}  // namespace

RadixSort::RadixSort(const Context& context, int64_t capacity)
    : context_(context),
      keys_(context.Allocate<uint64_t>(capacity)),
      other_keys_(context.Allocate<uint64_t>(capacity)),
      values_(context.Allocate<int32_t>(capacity)),
      other_values_(context.Allocate<int32_t>(capacity)),
      from_keys_(keys_.data()),
      to_keys_(other_keys_.data()),
      from_values_(values_.data()),
      to_values_(other_values_.data()) {}

Status RadixSort::Sort(int64_t count) {
  if (count < 2) return Status::Ok();
  const int64_t tasks = Context::NumTasks(count, kGrain);
  const Scratch<uint64_t> differ = context_.Allocate<uint64_t>(tasks);
  const Scratch<int32_t> positions = context_.Allocate<int32_t>(tasks << kDigitBits);
  if (!differ || !positions) return Internal("out of memory: ", count, " pairs to sort");
  context_.ParallelFor(count, kGrain, [&](int64_t task, int64_t begin, int64_t end) {
    uint64_t bits = 0;
    for (int64_t i = begin; i < end; ++i) bits |= from_keys_[i] ^ from_keys_[0];
    differ[task] = bits;
  });
  uint64_t bits = 0;
  for (int64_t task = 0; task < tasks; ++task) bits |= differ[task];
  const int max_bits = count < kFew ? kFewDigitBits : kDigitBits;
  while (bits != 0) {
    // The remaining passes share the remaining bits evenly.
    const int low = std::countr_zero(bits), left = 64 - std::countl_zero(bits) - low;
    const int passes = (left + max_bits - 1) / max_bits, width = (left + passes - 1) / passes;
    const uint64_t mask = (uint64_t{1} << width) - 1;
    Pass(count, low, mask, positions.data());
    bits &= ~(mask << low);
  }
  return Status::Ok();
}

// Sorts by one digit: counts each task's digits, computes where each task's pairs go, and moves them.
void RadixSort::Pass(int64_t count, int shift, uint64_t mask, int32_t* positions) {
  const auto buckets = static_cast<int64_t>(mask) + 1;
  context_.ParallelFor(count, kGrain, [&](int64_t task, int64_t begin, int64_t end) {
    int32_t* const mine = positions + task * buckets;
    std::fill_n(mine, buckets, 0);
    for (int64_t i = begin; i < end; ++i) ++mine[from_keys_[i] >> shift & mask];
  });
  int32_t sum = 0;
  for (int64_t b = 0; b < buckets; ++b) {
    for (int64_t task = 0; task < Context::NumTasks(count, kGrain); ++task) {
      sum += std::exchange(positions[task * buckets + b], sum);
    }
  }
  context_.ParallelFor(count, kGrain, [&](int64_t task, int64_t begin, int64_t end) {
    int32_t* const mine = positions + task * buckets;
    for (int64_t i = begin; i < end; ++i) {
      const int32_t position = mine[from_keys_[i] >> shift & mask]++;
      to_keys_[position] = from_keys_[i];
      to_values_[position] = from_values_[i];
    }
  });
  std::swap(from_keys_, to_keys_);
  std::swap(from_values_, to_values_);
}

}  // namespace polyop
