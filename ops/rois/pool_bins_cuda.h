// SPDX-License-Identifier: Apache-2.0
// Pooling of RoIs on the GPU, bin by bin, for operators whose bins share few computations.
#pragma once

#include "ops/rois/free_bins_pool.h"
#include "ops/rois/roi_pool_cuda.h"

namespace polyop {

/// Computes output[R, C, rows, columns] from input[N, C, H, W]. Each thread pools a bin of one channel with
/// pool(r, bin, plane), which returns float. The RoIs' rows begin with a batch index; the result is NaN if it is
/// invalid.
template <class T, class Pool>
Status PoolBinsCuda(const CudaContext& cuda, const Tensor<const T, 4>& input, const Tensor<const T, 2>& rois,
                    const Tensor<T, 4>& output, const Pool& pool) {
  RoiPyramid<T> pyramid{{}, input.dim(0), input.dim(1)};
  pyramid.level[0] = {input.data(), input.dim(2), input.dim(3), 1.0};
  POLYOP_RETURN_IF_ERROR(CheckLevels<T>({pyramid.level, 1}));
  const T* const rows = rois.data();
  const int64_t row_size = rois.dim(1);
  T* const to = output.data();
  const Divider by_bins(output.dim(2) * output.dim(3)), by_channels(input.dim(1));
  return ForEach(cuda, output.size(), [=] POLYOP_DEVICE(int64_t i) {
    int64_t bin, c;
    const int64_t r = by_channels.Split(by_bins.Split(i, &bin), &c);
    const int64_t image = ImageOf(ToFloat(rows[row_size * r]));
    to[i] = FromFloat<T>(pyramid.Has(image) ? pool(r, bin, pyramid.Plane(pyramid.level[0], image, c)) : NAN);
  });
}

/// Returns the average of a bin on one plane. y and x have its extent and samples.
template <class T>
POLYOP_HD float AverageOfFreeBin(RoiAxis y, RoiAxis x, const BinStart& start, const T* plane, int64_t height,
                                 int64_t width) {
  if (!(std::fabs(start.y) < INFINITY && std::fabs(start.x) < INFINITY)) return 0;
  y.start = start.y;
  x.start = start.x;
  int64_t y_begin, y_end, x_begin, x_end;
  y.Inside(0, height, &y_begin, &y_end);
  x.Inside(0, width, &x_begin, &x_end);
  float sum = 0;
  for (int64_t iy = y_begin; iy < y_end; ++iy) {
    const LinearTaps down = RoiTaps(y.Position(0, iy), height);
    float along = 0;  // summing row by row limits rounding errors
    for (int64_t ix = x_begin; ix < x_end; ++ix) {
      along += RoiSample{down, RoiTaps(x.Position(0, ix), width)}.Of(plane, width);
    }
    sum += along;
  }
  const double samples = static_cast<double>(y.samples) * static_cast<double>(x.samples);
  return samples > 0 ? static_cast<float>(sum / samples) : 0.0f;
}

}  // namespace polyop
