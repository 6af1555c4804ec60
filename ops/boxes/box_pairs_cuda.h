// SPDX-License-Identifier: Apache-2.0
// Measures all pairs of two sets of boxes on the GPU.
#pragma once

#include "core/dtype.h"
#include "kernels/cuda/cuda.h"

namespace polyop {

/// Sets overlap[b, i, k] to measure(box i of batch b of the first set, box k of the second). box_of_a(i) and
/// box_of_b(k) return the boxes, numbered across batches; each is called once per box.
template <class Box, class T, class BoxOfA, class BoxOfB, class Measure>
Status MeasurePairsCuda(const CudaContext& cuda, int64_t batches, int64_t rows, int64_t columns, const BoxOfA& box_of_a,
                        const BoxOfB& box_of_b, const Measure& measure, T* overlap) {
  const int64_t all_rows = batches * rows;
  Box* const boxes = cuda.Allocate<Box>(all_rows + batches * columns);
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, all_rows + batches * columns, [=] POLYOP_DEVICE(int64_t i) {
    boxes[i] = i < all_rows ? box_of_a(i) : box_of_b(i - all_rows);
  }));
  const Divider by_columns(columns), by_rows(rows);
  return ForEach(cuda, all_rows * columns, [=] POLYOP_DEVICE(int64_t i) {
    int64_t k;
    const int64_t row = by_columns.Split(i, &k), batch = by_rows.Quotient(row);
    const Box &a = boxes[row], &b = boxes[all_rows + batch * columns + k];
    overlap[i] = FromFloat<T>(static_cast<float>(measure(a, b)));
  });
}

}  // namespace polyop
