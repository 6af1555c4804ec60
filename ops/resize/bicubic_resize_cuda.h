// SPDX-License-Identifier: Apache-2.0
// Bicubic resizing on the GPU: each thread finds 4 x 4 pixels and their weights once for several planes.
#pragma once

#include "kernels/cuda/cuda.h"
#include "ops/resize/cubic.h"

namespace polyop {

/// Resizes every plane of input [N, C, H, W] to output [N, C, rows, columns].
template <class T>
Status BicubicResizeCuda(const CudaContext& cuda, const Tensor<const T, 4>& input, const ResizeAxis& vertical,
                         const ResizeAxis& horizontal, const Tensor<T, 4>& output) {
  constexpr int kPlanes = 8;
  const T* const from = input.data();
  T* const to = output.data();
  const int64_t planes = input.dim(0) * input.dim(1), pixels = vertical.outputs * horizontal.outputs;
  const Divider rows(vertical.outputs), columns(horizontal.outputs);
  return ForEach(cuda, BlocksFor(planes, kPlanes) * pixels, [=] POLYOP_DEVICE(int64_t i) {
    int64_t x, y;
    const int64_t first = rows.Split(columns.Split(i, &x), &y) * kPlanes;
    int64_t down[4], across[4];
    float down_weight[4], across_weight[4];
    vertical.Taps(y, down, down_weight);
    horizontal.Taps(x, across, across_weight);
    const T* plane = from + first * vertical.inputs * horizontal.inputs;
    T* at = to + first * pixels + y * columns.divisor() + x;
    const int64_t count = planes - first < kPlanes ? planes - first : kPlanes;
    for (int64_t p = 0; p < count; ++p) {
      T value[4][4];
      for (int r = 0; r < 4; ++r) {
        const T* const row = plane + down[r] * horizontal.inputs;
        for (int c = 0; c < 4; ++c) value[r][c] = row[across[c]];
      }
      float sum = 0;
      for (int r = 0; r < 4; ++r) {
        float across_sum = 0;
        for (int c = 0; c < 4; ++c) across_sum = std::fma(ToFloat(value[r][c]), across_weight[c], across_sum);
        sum = std::fma(across_sum, down_weight[r], sum);
      }
      *at = FromFloat<T>(sum);
      plane += vertical.inputs * horizontal.inputs;
      at += pixels;
    }
  });
}

}  // namespace polyop
