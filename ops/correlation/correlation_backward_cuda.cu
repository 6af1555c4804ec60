#include "kernels/cuda/cuda.h"
#include "ops/correlation/correlation_backward.h"

namespace polyop {
namespace {

// The window, along one axis, whose point `at` is the pixel, or -1.
POLYOP_HD inline int64_t WindowOfPixel(int64_t pixel, int64_t at, int64_t stride, int64_t padding, int64_t dilation,
                                       int64_t windows) {
  const int64_t first = pixel + padding - at * dilation;
  if (first < 0 || first % stride != 0 || first / stride >= windows) return -1;
  return first / stride;
}

// Each thread computes one element of a map's gradient: the sum over all displacements and all windows with its pixel.
// The windows are those of the first map's pixels, so `second` subtracts the displacement.
template <class T>
Status CorrelationGradCuda(const Correlation& op, const CudaContext& cuda, const Tensor<const T, 5>& grad_output,
                           const Tensor<const T, 4>& other, bool second, const Tensor<T, 4>& to) {
  const T *const grad = grad_output.data(), *const from = other.data();
  T* const sums = to.data();
  const int64_t height = other.dim(2), width = other.dim(3), patch = grad_output.dim(1);
  const int64_t rows = grad_output.dim(3), columns = grad_output.dim(4);
  const Divider by_channels(other.dim(1)), by_height(height), by_width(width);
  return ForEach(cuda, to.size(), [=] POLYOP_DEVICE(int64_t element) {
    int64_t x, y, c;
    const int64_t plane = by_height.Split(by_width.Split(element, &x), &y), n = by_channels.Split(plane, &c);
    float sum = 0;
    for (int64_t i = 0; i < patch; ++i) {
      const int64_t down = (i - op.max_displacement) * op.dilation_patch[0], other_y = second ? y - down : y + down;
      if (other_y < 0 || other_y >= height) continue;
      for (int64_t j = 0; j < patch; ++j) {
        const int64_t right = (j - op.max_displacement) * op.dilation_patch[1];
        const int64_t other_x = second ? x - right : x + right;
        if (other_x < 0 || other_x >= width) continue;
        const T* const of_windows = grad + ((n * patch + i) * patch + j) * rows * columns;
        const float value = ToFloat(from[(plane * height + other_y) * width + other_x]);
        for (int64_t k = 0; k < op.kernel_size[0]; ++k) {
          const int64_t row = WindowOfPixel(second ? other_y : y, k, op.stride[0], op.padding[0], op.dilation[0], rows);
          if (row < 0) continue;
          for (int64_t l = 0; l < op.kernel_size[1]; ++l) {
            const int64_t column =
                WindowOfPixel(second ? other_x : x, l, op.stride[1], op.padding[1], op.dilation[1], columns);
            if (column >= 0) sum += ToFloat(of_windows[row * columns + column]) * value;
          }
        }
      }
    }
    sums[element] = FromFloat<T>(sum);
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
