// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda.h"
#include "ops/feature_maps/correlation_lookup/correlation_lookup_backward.h"
#include "ops/feature_maps/correlation_lookup/correlation_lookup_window.h"

namespace polyop {
namespace {

// Each thread computes one element of the volume's gradient, from at most four samples: a pixel's map is read by no
// other pixel.
template <class T>
Status CorrelationLookupBackwardCuda(const CorrelationLookupBackward& op, const CudaContext& cuda,
                                     Tensor<const T, 4> grad_output, Tensor<const T, 5> volume,
                                     Tensor<const float, 4> coords, Tensor<T, 5> grad_volume) {
  const T* const grads = grad_output.data();
  const float* const positions = coords.data();
  T* const to = grad_volume.data();
  const int64_t pixels = volume.dim(1) * volume.dim(2), rows = volume.dim(3), columns = volume.dim(4);
  const int64_t radius_y = op.radius[0], radius_x = op.radius[1];
  const int64_t samples_y = 2 * radius_y + 1, samples_x = 2 * radius_x + 1;
  const Divider by_pixels(pixels), by_rows(rows), by_columns(columns);
  return ForEach(cuda, grad_volume.size(), [=] POLYOP_DEVICE(int64_t element) {
    int64_t pixel, row, column;
    const int64_t n = by_pixels.Split(by_rows.Split(by_columns.Split(element, &column), &row), &pixel);
    const float *const x = positions + n * 2 * pixels + pixel, *const y = x + pixels;
    float sum = 0;
    LookupWindow across, down;
    if (FindLookupWindow(*x, radius_x, columns, &across) && FindLookupWindow(*y, radius_y, rows, &down)) {
      const T* const of_pixel = grads + n * samples_x * samples_y * pixels + pixel;
      for (int k = 0; k < 2; ++k) {
        const int64_t j = row - down.first - k;
        if (j < 0 || j >= samples_y) continue;
        const float of_row = k ? down.fraction : 1 - down.fraction;
        for (int l = 0; l < 2; ++l) {
          const int64_t i = column - across.first - l;
          if (i < 0 || i >= samples_x) continue;
          sum += ToFloat(of_pixel[(i * samples_y + j) * pixels]) * (l ? across.fraction : 1 - across.fraction) * of_row;
        }
      }
    }
    to[element] = FromFloat<T>(sum);
  });
}

POLYOP_CUDA_KERNELS(CorrelationLookupBackward, CorrelationLookupBackwardCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
