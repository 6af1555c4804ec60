// SPDX-License-Identifier: Apache-2.0
// Running reductions along the lines of a tensor on the GPU.
#pragma once

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/warp_lanes.h"

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

namespace line_scan_internal {

// One warp per line of contiguous elements: its lanes load neighbours, kRows elements each, and exchange sums (Hillis
// and Steele, Data Parallel Algorithms, 1986), without shared memory and barriers. An item of 16 bytes takes 20
// exchanges for 32 elements: 16 million elements 0.06 ms of an H200, and twice the time of memory for their indices and
// values.
template <class Item, class Load, class Add, class Store>
Status ScanByWarps(const CudaContext& cuda, const Lines& lines, const Load& load, const Add& add, const Store& store) {
  constexpr int kWarps = kThreadsPerBlock / kWarpLanes, kRows = 4;
  return ForBlocks(cuda, BlocksFor(lines.outer, kWarps), kThreadsPerBlock, 0, [=] POLYOP_DEVICE(Block& block) {
    block.ForWarps([&](int warp) {
      const int64_t line = block.index * kWarps + warp;
      if (line >= lines.outer) return;
      Item carry{};
      for (int64_t first = 0; first < lines.length; first += kRows * kWarpLanes) {
        Lanes<Item> items[kRows];
        const auto at = [&](int row, int lane) { return first + row * kWarpLanes + lane; };
        ForLanes([&](int lane) {
          for (int row = 0; row < kRows; ++row) {
            const int64_t k = at(row, lane);
            items[row][lane] = k < lines.length ? load(lines.IndexOf(line, 0, k), k) : Item{};
          }
        });
        for (int step = 1; step < kWarpLanes; step *= 2) {
          for (Lanes<Item>& row : items) {
            Lanes<Item> before = row.Gather([&](int lane) { return lane >= step ? lane - step : lane; });
            ForLanes([&](int lane) {
              if (lane >= step) row[lane] = add(before[lane], row[lane]);
            });
          }
        }
        for (int row = 0; row < kRows; ++row) {
          ForLanes([&](int lane) {
            const int64_t k = at(row, lane);
            if (k >= lines.length) return;
            if (at(row, 0) > 0) items[row][lane] = add(carry, items[row][lane]);
            store(lines.IndexOf(line, 0, k), items[row][lane]);
          });
          carry = items[row].At(kWarpLanes - 1);  // of an element that exists, unless this was the last row
        }
      }
    });
  });
}

}  // namespace line_scan_internal

/// Calls store(index, sum of load(index, k) of elements 0 … k of the line) for every element. Requires: `add(earlier,
/// later)` is associative; Item is trivially copyable.
template <class Item, class Load, class Add, class Store>
Status ScanLines(const CudaContext& cuda, const Lines& lines, const Load& load, const Add& add, const Store& store) {
  if (lines.length <= 0) return cuda.Check();
  if (lines.inner > 1) {  // neighbouring threads scan neighbouring lines
    constexpr int kAhead = 8;
    const Divider inner(lines.inner);
    return ForEach(cuda, lines.outer * lines.inner, [=] POLYOP_DEVICE(int64_t line) {
      int64_t i;
      const int64_t o = inner.Split(line, &i);
      Item sum{};
      for (int64_t first = 0; first < lines.length; first += kAhead) {
        // Elements are loaded before the stores of those before them, which could be to the same memory for all that
        // the compiler knows.
        Item items[kAhead];
        for (int j = 0; j < kAhead; ++j) {
          if (first + j < lines.length) items[j] = load(lines.IndexOf(o, i, first + j), first + j);
        }
        for (int j = 0; j < kAhead; ++j) {
          if (first + j >= lines.length) continue;
          sum = first + j == 0 ? items[j] : add(sum, items[j]);
          store(lines.IndexOf(o, i, first + j), sum);
        }
      }
    });
  }
  if constexpr (sizeof(Item) % 4 == 0) {
    constexpr int64_t kShort = 1024, kMany = 1024;  // many lines fill the GPU with a warp each
    const bool fits = lines.length >= kWarpLanes && (lines.length <= kShort || lines.outer >= kMany);
    if (fits) return line_scan_internal::ScanByWarps<Item>(cuda, lines, load, add, store);
  }
  // Each block scans kTile elements at a time, of several short lines or of one. A thread sums kPerThread neighbours,
  // then the threads of a line sum their totals (Hillis and Steele, Data Parallel Algorithms, 1986).
  constexpr int kThreads = 128, kPerThread = 4, kTile = kThreads * kPerThread;
  int bits = 2;  // 2^bits elements of a line in a tile
  static_assert(kPerThread == 1 << 2);
  while (1 << bits < kTile && 1 << bits < lines.length) ++bits;
  const int of_line = 1 << bits, held = kTile / of_line, in_line = of_line / kPerThread;  // lines, threads of a line
  constexpr int64_t kShared = (kTile + 2 * kThreads + 1) * static_cast<int64_t>(sizeof(Item)) + 64;
  return ForBlocks(cuda, BlocksFor(lines.outer, held), kThreads, kShared, [=] POLYOP_DEVICE(Block& block) {
    Item* const items = block.Shared<Item>(kTile);
    Item* from = block.Shared<Item>(kThreads);
    Item* to = block.Shared<Item>(kThreads);
    Item* const carry = block.Shared<Item>(1);
    const int64_t first_line = block.index * held;
    for (int64_t first = 0; first < lines.length; first += of_line) {
      const auto line = [&](int e) { return first_line + (e >> bits); };
      const auto at = [&](int e) { return first + (e & (of_line - 1)); };
      const auto exists = [&](int e) { return line(e) < lines.outer && at(e) < lines.length; };
      block.ForThreads([&](int t) {
        for (int e = t; e < kTile; e += kThreads) {
          if (exists(e)) items[e] = load(lines.IndexOf(line(e), 0, at(e)), at(e));
        }
      });
      block.ForThreads([&](int t) {
        const int e = t * kPerThread;
        if (!exists(e)) return;
        if (first > 0 && t == 0) items[0] = add(*carry, items[0]);
        Item sum = items[e];
        for (int j = 1; j < kPerThread; ++j) {
          if (exists(e + j)) items[e + j] = sum = add(sum, items[e + j]);
        }
        from[t] = sum;
      });
      for (int step = 1; step < in_line; step *= 2) {
        block.ForThreads([&](int t) {
          if (exists(t * kPerThread)) to[t] = (t & (in_line - 1)) >= step ? add(from[t - step], from[t]) : from[t];
        });
        Item* const swap = from;
        from = to;
        to = swap;
      }
      block.ForThreads([&](int t) {
        for (int e = t; e < kTile; e += kThreads) {
          if (!exists(e)) continue;
          const int owner = e / kPerThread;
          const Item sum = (owner & (in_line - 1)) > 0 ? add(from[owner - 1], items[e]) : items[e];
          store(lines.IndexOf(line(e), 0, at(e)), sum);
          if (e == kTile - 1) *carry = sum;
        }
      });
    }
  });
}

}  // namespace polyop
