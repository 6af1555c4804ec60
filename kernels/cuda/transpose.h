// SPDX-License-Identifier: Apache-2.0
// Transposition of matrices on the GPU.
#pragma once

#include <type_traits>

#include "kernels/cuda/cuda.h"

namespace polyop {

/// Writes the transposed matrices of from[matrices][rows][columns] to `to`, where they are `to_step` elements apart.
/// Elements are rounded if the types differ.
template <class From, class To>
Status Transpose(const CudaContext& cuda, int64_t matrices, int64_t rows, int64_t columns, const From* from, To* to,
                 int64_t to_step) {
  constexpr int kSide = 32, kStep = kThreadsPerBlock / kSide;
  constexpr int kRow = kSide + 1;  // so that the elements of a column are in different banks
  const int64_t down = BlocksFor(rows, kSide), across = BlocksFor(columns, kSide);
  const Divider by_down(down), by_across(across);
  return ForBlocks(cuda, matrices * down * across, kThreadsPerBlock, kSide * kRow * static_cast<int64_t>(sizeof(From)),
                   [=] POLYOP_DEVICE(Block& block) {
                     From* const square = block.Shared<From>(kSide * kRow);
                     int64_t row, column;
                     const int64_t matrix = by_down.Split(by_across.Split(block.index, &column), &row);
                     row *= kSide;
                     column *= kSide;
                     block.ForThreads([&](int t) {
                       const int64_t x = column + t % kSide;
                       for (int i = t / kSide; i < kSide; i += kStep) {
                         if (row + i >= rows || x >= columns) continue;
                         square[i * kRow + t % kSide] = from[(matrix * rows + row + i) * columns + x];
                       }
                     });
                     block.ForThreads([&](int t) {
                       const int64_t y = row + t % kSide;
                       for (int i = t / kSide; i < kSide; i += kStep) {
                         if (column + i >= columns || y >= rows) continue;
                         const From value = square[t % kSide * kRow + i];
                         To* const at = to + matrix * to_step + (column + i) * rows + y;
                         if constexpr (std::is_same_v<From, To>) {
                           *at = value;
                         } else {
                           *at = FromFloat<To>(ToFloat(value));
                         }
                       }
                     });
                   });
}

}  // namespace polyop
