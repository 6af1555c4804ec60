// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda.h"
#include "ops/feature_maps/correlation/correlation_backward.h"

namespace polyop {
namespace {

// The windows along one axis.
struct WindowAxis {
  int64_t padding, dilation, windows;
  Divider stride;

  // Returns the window whose point `at` is the pixel, or -1.
  POLYOP_HD int64_t Of(int64_t pixel, int64_t at) const {
    const int64_t first = pixel + padding - at * dilation;
    if (first < 0) return -1;
    int64_t rest;
    const int64_t window = stride.Split(first, &rest);
    return rest == 0 && window < windows ? window : -1;
  }
};

// Each thread computes a few channels of one pixel of a map's gradient: the sum over all displacements and all windows
// with the pixel. The windows are those of the first map's pixels, so `second` subtracts the displacement. Neighbouring
// threads have neighbouring pixels.
//
// Every value of the other map is read once for each displacement, from the cache: 2x128x48x64 and 9x9 displacements
// are 64 million multiplications, 2 million loads of a warp for the values and 0.2 million for the gradients, and about
// 60 instructions for each displacement and thread: 15 million of a warp, 0.02 ms of an H200. The map and the gradients
// themselves are 7 MB, 0.002 ms.
template <class T>
Status CorrelationGradCuda(const Correlation& op, const CudaContext& cuda, const Tensor<const T, 5>& grad_output,
                           const Tensor<const T, 4>& other, bool second, const Tensor<T, 4>& to) {
  constexpr int kChannels = 8;
  const T *const grad = grad_output.data(), *const from = other.data();
  T* const sums = to.data();
  const int64_t channels = other.dim(1), height = other.dim(2), width = other.dim(3), pixels = height * width;
  const int64_t patch = grad_output.dim(1), rows = grad_output.dim(3), columns = grad_output.dim(4);
  const WindowAxis down_axis{op.padding[0], op.dilation[0], rows, Divider(op.stride[0])};
  const WindowAxis across_axis{op.padding[1], op.dilation[1], columns, Divider(op.stride[1])};
  const Divider by_parts(BlocksFor(channels, kChannels)), by_height(height), by_width(width);
  return ForEach(cuda, other.dim(0) * BlocksFor(channels, kChannels) * pixels, [=] POLYOP_DEVICE(int64_t index) {
    int64_t x, y, part;
    const int64_t n = by_parts.Split(by_height.Split(by_width.Split(index, &x), &y), &part);
    const int64_t first = part * kChannels, rest = channels - first;
    const T* const planes = from + (n * channels + first) * pixels;
    float sum[kChannels] = {};
    for (int64_t i = 0; i < patch; ++i) {
      const int64_t down = (i - op.max_displacement) * op.dilation_patch[0], other_y = second ? y - down : y + down;
      if (other_y < 0 || other_y >= height) continue;
      for (int64_t j = 0; j < patch; ++j) {
        const int64_t right = (j - op.max_displacement) * op.dilation_patch[1];
        const int64_t other_x = second ? x - right : x + right;
        if (other_x < 0 || other_x >= width) continue;
        const T* const of_windows = grad + ((n * patch + i) * patch + j) * rows * columns;
        float of_pixel = 0;
        bool any = false;  // a value without windows adds nothing, even if it is NaN
        for (int64_t k = 0; k < op.kernel_size[0]; ++k) {
          const int64_t row = down_axis.Of(second ? other_y : y, k);
          if (row < 0) continue;
          for (int64_t l = 0; l < op.kernel_size[1]; ++l) {
            const int64_t column = across_axis.Of(second ? other_x : x, l);
            if (column < 0) continue;
            of_pixel += ToFloat(of_windows[row * columns + column]);
            any = true;
          }
        }
        if (!any) continue;
        const T* const values = planes + other_y * width + other_x;
        for (int c = 0; c < kChannels; ++c) {
          if (c < rest) sum[c] = std::fma(of_pixel, ToFloat(values[c * pixels]), sum[c]);
        }
      }
    }
    for (int c = 0; c < kChannels; ++c) {
      if (c < rest) sums[(n * channels + first + c) * pixels + y * width + x] = FromFloat<T>(sum[c]);
    }
  });
}

template <class T>
Status CorrelationBackwardCuda(const CorrelationBackward& op, const CudaContext& cuda, Tensor<const T, 5> grad_output,
                               Tensor<const T, 4> input1, Tensor<const T, 4> input2,
                               std::optional<Tensor<T, 4>> grad_input1, std::optional<Tensor<T, 4>> grad_input2) {
  if (grad_input1) {
    POLYOP_RETURN_IF_ERROR(CorrelationGradCuda<T>(op, cuda, grad_output, input2, false, *grad_input1));
  }
  return grad_input2 ? CorrelationGradCuda<T>(op, cuda, grad_output, input1, true, *grad_input2) : Status::Ok();
}

POLYOP_CUDA_KERNELS(CorrelationBackward, CorrelationBackwardCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
