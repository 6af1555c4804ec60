// Running reductions along the lines of a tensor on the GPU.
#pragma once

#include "kernels/cuda/cuda.h"

namespace polyop {

/// A tensor viewed as lines of `length` elements with stride `inner`: element k of line (o, i) is at index
/// (o * length + k) * inner + i.
struct Lines {
  int64_t outer, length, inner;
  bool backwards = false;  // scans from the end

  POLYOP_HD int64_t IndexOf(int64_t o, int64_t i, int64_t k) const {
    return (o * length + (backwards ? length - 1 - k : k)) * inner + i;
  }
};

/// Calls store(index, sum of load(index, k) of elements 0 … k of the line) for every element. Requires: `add(earlier,
/// later)` is associative; Item is trivially copyable.
template <class Item, class Load, class Add, class Store>
Status ScanLines(const CudaContext& cuda, const Lines& lines, const Load& load, const Add& add, const Store& store) {
  if (lines.inner > 1) {  // neighbouring threads scan neighbouring lines
    const Divider inner(lines.inner);
    return ForEach(cuda, lines.outer * lines.inner, [=] POLYOP_DEVICE(int64_t line) {
      int64_t i;
      const int64_t o = inner.Split(line, &i);
      Item sum = load(lines.IndexOf(o, i, 0), 0);
      store(lines.IndexOf(o, i, 0), sum);
      for (int64_t k = 1; k < lines.length; ++k) {
        const int64_t index = lines.IndexOf(o, i, k);
        sum = add(sum, load(index, k));
        store(index, sum);
      }
    });
  }
  // Each block scans one line, one element per thread at a time (Hillis and Steele, Data Parallel Algorithms, 1986).
  constexpr int kThreads = 128;
  return ForBlocks(cuda, lines.outer, kThreads, 3 * (kThreads + 1) * static_cast<int64_t>(sizeof(Item)) + 48,
                   [=] POLYOP_DEVICE(Block& block) {
                     Item* from = block.Shared<Item>(kThreads);
                     Item* to = block.Shared<Item>(kThreads);
                     Item* const carry = block.Shared<Item>(1);
                     for (int64_t first = 0; first < lines.length; first += kThreads) {
                       const int count =
                           static_cast<int>(lines.length - first < kThreads ? lines.length - first : kThreads);
                       block.ForThreads([&](int t) {
                         if (t >= count) return;
                         const Item item = load(lines.IndexOf(block.index, 0, first + t), first + t);
                         from[t] = first > 0 && t == 0 ? add(*carry, item) : item;
                       });
                       for (int step = 1; step < count; step *= 2) {
                         block.ForThreads([&](int t) {
                           if (t < count) to[t] = t >= step ? add(from[t - step], from[t]) : from[t];
                         });
                         Item* const swap = from;
                         from = to;
                         to = swap;
                       }
                       block.ForThreads([&](int t) {
                         if (t >= count) return;
                         store(lines.IndexOf(block.index, 0, first + t), from[t]);
                         if (t == count - 1) *carry = from[t];
                       });
                     }
                   });
}

}  // namespace polyop
