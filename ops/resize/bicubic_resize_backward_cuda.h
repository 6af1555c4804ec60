// SPDX-License-Identifier: Apache-2.0
// The gradient of separable bicubic resizing on the GPU: sums rows of the gradient into scratch memory, then their
// columns. Each thread computes one sum, so there are no atomic additions.
#pragma once

#include <algorithm>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/set_zero.h"
#include "ops/resize/cubic.h"

namespace polyop {
namespace resize_internal {

// The weights of input pixels `first`, …, `first + 3` in an output pixel. Those of a repeated border pixel are summed.
struct MergedTaps {
  int64_t first;
  float weight[4];

  POLYOP_HD static MergedTaps Of(const ResizeAxis& axis, int64_t output) {
    int64_t index[4];
    double weight[4], sum[4] = {};
    axis.Taps(output, index, weight);
    for (int k = 0; k < 4; ++k) sum[index[k] - index[0]] += weight[k];
    MergedTaps taps{index[0], {}};
    for (int k = 0; k < 4; ++k) taps.weight[k] = static_cast<float>(sum[k]);
    return taps;
  }
};

// The contributions of input pixels to output pixels along an axis. Output pixels [begin[i], end[i]) have
// taps near input pixel i.
struct Contributions {
  const MergedTaps* taps;
  const int64_t* begin;
  const int64_t* end;

  static Status Find(const CudaContext& cuda, const ResizeAxis& axis, Contributions* found) {
    MergedTaps* const taps = cuda.Allocate<MergedTaps>(axis.outputs);
    int64_t* const begin = cuda.Allocate<int64_t>(axis.inputs);
    int64_t* const end = cuda.Allocate<int64_t>(axis.inputs);
    *found = {taps, begin, end};
    POLYOP_RETURN_IF_ERROR(
        ForEach(cuda, axis.outputs, [=] POLYOP_DEVICE(int64_t o) { taps[o] = MergedTaps::Of(axis, o); }));
    return ForEach(cuda, axis.inputs, [=] POLYOP_DEVICE(int64_t i) {
      begin[i] = FirstOutputFrom(taps, axis.outputs, i - 3);
      end[i] = FirstOutputFrom(taps, axis.outputs, i + 1);
    });
  }

  /// Returns the sum of gradient(o) * weight over the output pixels to which input pixel `i` contributes. A weight of 0
  /// is not a contribution, so it does not propagate NaN.
  template <class Gradient>
  POLYOP_DEVICE float Sum(int64_t i, const Gradient& gradient) const {
    float sum = 0;
    for (int64_t o = begin[i]; o < end[i]; ++o) {
      const float weight = taps[o].weight[i - taps[o].first];
      if (weight != 0) sum = std::fma(gradient(o), weight, sum);
    }
    return sum;
  }

 private:
  // Returns the first output pixel whose first tap is `input` or a later pixel. The taps move forwards.
  POLYOP_HD static int64_t FirstOutputFrom(const MergedTaps* taps, int64_t outputs, int64_t input) {
    int64_t low = 0, high = outputs;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (taps[middle].first < input) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
};

}  // namespace resize_internal

/// Computes grad_input [N, C, H, W] from grad_output [N, C, OH, OW] as BicubicResizeBackward does.
template <class T>
Status BicubicResizeBackwardCuda(const CudaContext& cuda, const Tensor<const T, 4>& grad_output, const ResizeAxis& rows,
                                 const ResizeAxis& columns, const Tensor<T, 4>& grad_input) {
  using resize_internal::Contributions;
  T* const to = grad_input.data();
  if (grad_output.size() == 0) return SetZero(cuda, grad_input.size(), to);
  Contributions down, across;
  POLYOP_RETURN_IF_ERROR(Contributions::Find(cuda, rows, &down));
  POLYOP_RETURN_IF_ERROR(Contributions::Find(cuda, columns, &across));
  constexpr int64_t kMaxSums = int64_t{1} << 24;  // in scratch memory, 64 MiB; more for a single row
  const int64_t all_rows = grad_input.size() / columns.inputs;
  const int64_t chunk = std::min(all_rows, std::max<int64_t>(kMaxSums / columns.outputs, 1));
  float* const sums = cuda.Allocate<float>(chunk * columns.outputs);
  const T* const grads = grad_output.data();
  const Divider heights(rows.inputs), widths(columns.inputs), output_widths(columns.outputs);
  const int64_t output_rows = rows.outputs, output_columns = columns.outputs, input_columns = columns.inputs;
  for (int64_t first = 0; first < all_rows; first += chunk) {
    const int64_t count = std::min(chunk, all_rows - first);
    POLYOP_RETURN_IF_ERROR(ForEach(cuda, count * output_columns, [=] POLYOP_DEVICE(int64_t i) {
      int64_t x, y;
      const int64_t plane = heights.Split(first + output_widths.Split(i, &x), &y);
      const T* const from = grads + plane * output_rows * output_columns + x;
      sums[i] = down.Sum(y, [=](int64_t o) { return ToFloat(from[o * output_columns]); });
    }));
    POLYOP_RETURN_IF_ERROR(ForEach(cuda, count * input_columns, [=] POLYOP_DEVICE(int64_t i) {
      int64_t x;
      const float* const row = sums + widths.Split(i, &x) * output_columns;
      to[first * input_columns + i] = FromFloat<T>(across.Sum(x, [=](int64_t o) { return row[o]; }));
    }));
  }
  return Status::Ok();
}

}  // namespace polyop
