// Pooling of regions on the GPU, bin by bin: for those whose bins have little in common.
#pragma once

#include "families/rois/roi_pool_cuda.h"

namespace polyop {

/// output[R, C, rows, columns] from input[N, C, H, W]: a thread pools a bin of one channel, pool(r, bin, plane) gives
/// it as float. Rois are rows (picture, …) of five; one without a picture gives NaN.
template <class T, class Pool>
Status PoolBinsCuda(const CudaContext& cuda, const Tensor<const T, 4>& input, const Tensor<const T, 2>& rois,
                    const Tensor<T, 4>& output, const Pool& pool) {
  RoiPyramid<T> pyramid{{}, input.dim(0), input.dim(1)};
  pyramid.level[0] = {input.data(), input.dim(2), input.dim(3), 1.0};
  POLYOP_RETURN_IF_ERROR(CheckLevels<T>({pyramid.level, 1}));
  const T* const rows = rois.data();
  T* const to = output.data();
  const Divider by_bins(output.dim(2) * output.dim(3)), by_channels(input.dim(1));
  return ForEach(cuda, output.size(), [=] POLYOP_DEVICE(int64_t i) {
    int64_t bin, c;
    const int64_t r = by_channels.Split(by_bins.Split(i, &bin), &c);
    const float picture = ToFloat(rows[5 * r]);
    to[i] = FromFloat<T>(pyramid.Has(picture) ? pool(r, bin, pyramid.Plane(pyramid.level[0], picture, c)) : NAN);
  });
}

}  // namespace polyop
