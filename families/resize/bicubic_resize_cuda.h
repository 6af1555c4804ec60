// Bicubic resizing on the GPU: a thread makes one pixel, from 4 x 4 pixels whose weights it finds by itself.
#pragma once

#include "families/resize/cubic.h"
#include "kernels/cuda/cuda.h"

namespace polyop {

/// The four pixels of one axis that make an output pixel; the border repeats.
struct CubicTaps {
  int64_t index[4];
  float weight[4];

  POLYOP_HD static CubicTaps Of(const ResizeAxis& axis, int64_t output) {
    const double at = axis.Source(output), base = std::floor(at);
    CubicTaps taps;
    CubicWeights(static_cast<float>(at - base), taps.weight);
    for (int k = 0; k < 4; ++k) {
      const double pixel = base + (k - 1), last = static_cast<double>(axis.inputs - 1);
      taps.index[k] = static_cast<int64_t>(pixel > 0 ? (pixel < last ? pixel : last) : 0);
    }
    return taps;
  }
};

/// input [N, C, H, W] -> output [N, C, rows, columns].
template <class T>
Status BicubicResizeCuda(const CudaContext& cuda, const Tensor<const T, 4>& input, const ResizeAxis& vertical,
                         const ResizeAxis& horizontal, const Tensor<T, 4>& output) {
  const T* const from = input.data();
  T* const to = output.data();
  const Divider rows(vertical.outputs), columns(horizontal.outputs);
  return ForEach(cuda, output.size(), [=] POLYOP_DEVICE(int64_t i) {
    int64_t x, y;
    const int64_t plane = rows.Split(columns.Split(i, &x), &y);
    const CubicTaps down = CubicTaps::Of(vertical, y), across = CubicTaps::Of(horizontal, x);
    const T* const pixels = from + plane * vertical.inputs * horizontal.inputs;
    float sum = 0;
    for (int r = 0; r < 4; ++r) {
      const T* const row = pixels + down.index[r] * horizontal.inputs;
      float across_sum = 0;
      for (int c = 0; c < 4; ++c) across_sum = std::fma(ToFloat(row[across.index[c]]), across.weight[c], across_sum);
      sum = std::fma(across_sum, down.weight[r], sum);
    }
    to[i] = FromFloat<T>(sum);
  });
}

}  // namespace polyop
