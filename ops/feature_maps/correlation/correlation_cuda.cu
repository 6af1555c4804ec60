// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda.h"
#include "ops/feature_maps/correlation/correlation.h"

namespace polyop {
namespace {

// Each thread computes one element; the threads of a row read consecutive pixels.
template <class T>
Status CorrelationCuda(const Correlation& op, const CudaContext& cuda, Tensor<const T, 4> input1,
                       Tensor<const T, 4> input2, Tensor<T, 5> output) {
  const T *const a = input1.data(), *const b = input2.data();
  T* const to = output.data();
  const int64_t channels = input1.dim(1), height = input1.dim(2), width = input1.dim(3), plane = height * width;
  const Divider by_patch(output.dim(1)), by_rows(output.dim(3)), by_columns(output.dim(4));
  return ForEach(cuda, output.size(), [=] POLYOP_DEVICE(int64_t element) {
    int64_t x, y, j, i;
    const int64_t n = by_patch.Split(by_patch.Split(by_rows.Split(by_columns.Split(element, &x), &y), &j), &i);
    const int64_t down = (i - op.max_displacement) * op.dilation_patch[0];
    const int64_t right = (j - op.max_displacement) * op.dilation_patch[1];
    float sum = 0;
    for (int64_t k = 0; k < op.kernel_size[0]; ++k) {
      const int64_t row = y * op.stride[0] - op.padding[0] + k * op.dilation[0];
      if (row < 0 || row >= height || row + down < 0 || row + down >= height) continue;
      for (int64_t l = 0; l < op.kernel_size[1]; ++l) {
        const int64_t column = x * op.stride[1] - op.padding[1] + l * op.dilation[1];
        if (column < 0 || column >= width || column + right < 0 || column + right >= width) continue;
        const int64_t pixel = n * channels * plane + row * width + column, other = pixel + down * width + right;
        for (int64_t c = 0; c < channels; ++c) sum += ToFloat(a[pixel + c * plane]) * ToFloat(b[other + c * plane]);
      }
    }
    to[element] = FromFloat<T>(sum);
  });
}

POLYOP_CUDA_KERNELS(Correlation, CorrelationCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
