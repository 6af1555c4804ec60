// Bicubic resizing on the GPU: each thread computes one pixel from 4 x 4 pixels and their weights.
#pragma once

#include "families/resize/cubic.h"
#include "kernels/cuda/cuda.h"

namespace polyop {

/// Resizes every plane of input [N, C, H, W] to output [N, C, rows, columns].
template <class T>
Status BicubicResizeCuda(const CudaContext& cuda, const Tensor<const T, 4>& input, const ResizeAxis& vertical,
                         const ResizeAxis& horizontal, const Tensor<T, 4>& output) {
  const T* const from = input.data();
  T* const to = output.data();
  const Divider rows(vertical.outputs), columns(horizontal.outputs);
  return ForEach(cuda, output.size(), [=] POLYOP_DEVICE(int64_t i) {
    int64_t x, y;
    const int64_t plane = rows.Split(columns.Split(i, &x), &y);
    int64_t down[4], across[4];
    float down_weight[4], across_weight[4];
    vertical.Taps(y, down, down_weight);
    horizontal.Taps(x, across, across_weight);
    const T* const pixels = from + plane * vertical.inputs * horizontal.inputs;
    float sum = 0;
    for (int r = 0; r < 4; ++r) {
      const T* const row = pixels + down[r] * horizontal.inputs;
      float across_sum = 0;
      for (int c = 0; c < 4; ++c) across_sum = std::fma(ToFloat(row[across[c]]), across_weight[c], across_sum);
      sum = std::fma(across_sum, down_weight[r], sum);
    }
    to[i] = FromFloat<T>(sum);
  });
}

}  // namespace polyop
