// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda.h"
#include "ops/feature_maps/correlation_lookup/correlation_lookup.h"
#include "ops/feature_maps/correlation_lookup/correlation_lookup_window.h"

namespace polyop {
namespace {

// Each thread computes one element: four pixels of the map of its pixel.
template <class T>
Status CorrelationLookupCuda(const CorrelationLookup& op, const CudaContext& cuda, Tensor<const T, 5> volume,
                             Tensor<const float, 4> coords, Tensor<T, 4> output) {
  const T* const maps = volume.data();
  const float* const positions = coords.data();
  T* const to = output.data();
  const int64_t pixels = volume.dim(1) * volume.dim(2), rows = volume.dim(3), columns = volume.dim(4);
  const int64_t radius_y = op.radius[0], radius_x = op.radius[1];
  const Divider by_pixels(pixels), by_channels(output.dim(1)), by_rows(2 * radius_y + 1);
  return ForEach(cuda, output.size(), [=] POLYOP_DEVICE(int64_t element) {
    int64_t pixel, channel, j;
    const int64_t n = by_channels.Split(by_pixels.Split(element, &pixel), &channel);
    const int64_t i = by_rows.Split(channel, &j);
    const float *const x = positions + n * 2 * pixels + pixel, *const y = x + pixels;
    float sum = 0;
    LookupWindow across, down;
    if (FindLookupWindow(*x, radius_x, columns, &across) && FindLookupWindow(*y, radius_y, rows, &down)) {
      const T* const map = maps + (n * pixels + pixel) * rows * columns;
      const int64_t row = down.first + j, column = across.first + i;
      for (int k = 0; k < 2; ++k) {
        if (row + k < 0 || row + k >= rows) continue;
        const float of_row = k ? down.fraction : 1 - down.fraction;
        for (int l = 0; l < 2; ++l) {
          if (column + l < 0 || column + l >= columns) continue;
          sum += ToFloat(map[(row + k) * columns + column + l]) * (l ? across.fraction : 1 - across.fraction) * of_row;
        }
      }
    }
    to[element] = FromFloat<T>(sum);
  });
}

POLYOP_CUDA_KERNELS(CorrelationLookup, CorrelationLookupCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
