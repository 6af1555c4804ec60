// SPDX-License-Identifier: Apache-2.0
// The pairs of a sparse convolution, sorted by the rows that they contribute to. Compiled once per instruction set;
// include it from a kernel file.

// Outside of the guards because Highway redefines its macros for each target.
#include "kernels/cpu/simd.h"

#ifndef POLYOP_OPS_SPARSE_PAIR_BLOCKS_INL_H_
#define POLYOP_OPS_SPARSE_PAIR_BLOCKS_INL_H_

#include <algorithm>
#include <utility>

#include "core/context.h"

namespace polyop {

/// Row `from` contributes to row `to` of a block.
struct SparsePair {
  int32_t from, to;
};

}  // namespace polyop
#endif  // POLYOP_OPS_SPARSE_PAIR_BLOCKS_INL_H_

#if defined(POLYOP_OPS_SPARSE_PAIR_BLOCKS_TARGET_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_SPARSE_PAIR_BLOCKS_TARGET_H_
#undef POLYOP_OPS_SPARSE_PAIR_BLOCKS_TARGET_H_
#else
#define POLYOP_OPS_SPARSE_PAIR_BLOCKS_TARGET_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

/// The pairs of each offset of a filter, sorted into blocks of `block_rows` of the `rows` rows that they contribute to.
/// The order within a block is kept.
class PairBlocks {
 public:
  PairBlocks(const Context& context, int64_t offsets, int64_t rows, int64_t block_rows)
      : context_(context),
        offsets_(offsets),
        rows_(rows),
        block_rows_(block_rows),
        blocks_((rows + block_rows - 1) / block_rows),
        firsts_(context.Allocate<int64_t>(offsets + 1)),
        ends_(context.Allocate<int64_t>(offsets * (blocks_ + 1))) {}

  /// Returns false if memory was exhausted.
  explicit operator bool() const { return firsts_ && ends_; }
  int64_t rows() const { return rows_; }
  int64_t block_rows() const { return block_rows_; }
  int64_t blocks() const { return blocks_; }
  /// Returns the number of pairs that Sort() stores. Requires: Count() was called.
  int64_t size() const { return firsts_[offsets_]; }

  /// Counts the pairs. `visit(f, add)` calls add(from, to) for each pair of offset f.
  template <class Visit>
  void Count(const Visit& visit) {
    context_.ParallelFor(offsets_, 1, [&](int64_t begin, int64_t end) HWY_ATTR {
      for (int64_t f = begin; f < end; ++f) {
        int64_t* const counts = ends_.data() + f * (blocks_ + 1);
        std::fill_n(counts, blocks_ + 1, int64_t{0});
        visit(f, [&](int64_t, int64_t to) { ++counts[to / block_rows_]; });
      }
    });
    firsts_[0] = 0;
    for (int64_t f = 0; f < offsets_; ++f) {
      const int64_t* const counts = ends_.data() + f * (blocks_ + 1);
      firsts_[f + 1] = firsts_[f];
      for (int64_t b = 0; b < blocks_; ++b) firsts_[f + 1] += counts[b];
    }
  }
  /// Sorts the pairs that were counted into `pairs`, which has space for size() of them.
  template <class Visit>
  void Sort(const Visit& visit, SparsePair* pairs) {
    pairs_ = pairs;
    context_.ParallelFor(offsets_, 1, [&](int64_t begin, int64_t end) HWY_ATTR {
      for (int64_t f = begin; f < end; ++f) {
        int64_t* const block_ends = ends_.data() + f * (blocks_ + 1);
        int64_t before = firsts_[f];
        for (int64_t b = 0; b <= blocks_; ++b) before += std::exchange(block_ends[b], before);
        visit(f, [&](int64_t from, int64_t to) {
          pairs[block_ends[to / block_rows_]++] = {static_cast<int32_t>(from), static_cast<int32_t>(to % block_rows_)};
        });
        // Each block's begin has advanced to its end, which is the begin of the next block.
        std::copy_backward(block_ends, block_ends + blocks_, block_ends + blocks_ + 1);
        block_ends[0] = firsts_[f];
      }
    });
  }
  /// Calls add(from, to - first row of the block) for the pairs of an offset in a block.
  template <class Add>
  void ForPairs(int64_t f, int64_t block, const Add& add) const {
    const int64_t* const range = ends_.data() + f * (blocks_ + 1) + block;
    for (int64_t j = range[0]; j < range[1]; ++j) add(pairs_[j].from, pairs_[j].to);
  }

 private:
  const Context& context_;
  int64_t offsets_, rows_, block_rows_, blocks_;
  Scratch<int64_t> firsts_;
  Scratch<int64_t> ends_;  // block b of offset f has pairs [ends[f * (blocks + 1) + b], ends[f * (blocks + 1) + b + 1])
  const SparsePair* pairs_ = nullptr;
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
