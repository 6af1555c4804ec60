// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/riroi_align_rotated/orientation_shift.h"
#include "ops/rois/riroi_align_rotated/riroi_align_rotated.h"
#include "ops/rois/roi_pool_cuda.h"

namespace polyop {
namespace {

// Each thread pools one bin of the two source channels of its channel. A RoI with an invalid batch index gives NaN.
template <class T>
Status RiRoiAlignRotatedCuda(const RiRoiAlignRotated& op, const CudaContext& cuda, Tensor<const T, 4> input,
                             Tensor<const T, 2> rois, Tensor<T, 4> output) {
  RoiPyramid<T> pyramid{{}, input.dim(0), input.dim(1)};
  pyramid.level[0] = {input.data(), input.dim(2), input.dim(3), op.spatial_scale};
  POLYOP_RETURN_IF_ERROR(CheckLevels<T>({pyramid.level, 1}));
  const RoiPooling how{op.pooled_height, op.pooled_width, op.num_samples, false, true};
  const RotatedRois<T> boxes{rois.data(), op.clockwise};
  const int64_t orientations = op.num_orientations;
  T* const to = output.data();
  const Divider by_rows(how.rows), by_columns(how.columns), by_channels(input.dim(1)), by_orientations(orientations);
  return ForEach(cuda, output.size(), [=] POLYOP_DEVICE(int64_t i) {
    int64_t column, row, c, o;
    const int64_t r = by_channels.Split(by_rows.Split(by_columns.Split(i, &column), &row), &c);
    const int64_t first = by_orientations.Split(c, &o) * orientations;
    const int64_t image = boxes.Image(r);
    if (!pyramid.Has(image)) {
      to[i] = FromFloat<T>(NAN);
      return;
    }
    const RoiLevel<T>& level = pyramid.level[0];
    const RotatedGrid grid = RotatedGrid::Make(boxes.Box(r), level.scale, how);
    const auto shift = OrientationShift::Of(ToFloat(boxes.rows[RotatedRois<T>::kWidth * r + 5]), orientations);
    const auto pooled = [&](int64_t orientation) {
      return AverageOfRotatedBin(grid, level, pyramid.Plane(level, image, first + orientation), row, column);
    };
    float value = shift.finite ? pooled(shift.First(o)) : 0;
    if (shift.part > 0) value = (1 - shift.part) * value + shift.part * pooled(shift.Second(o));
    to[i] = FromFloat<T>(value);
  });
}

POLYOP_CUDA_KERNELS(RiRoiAlignRotated, RiRoiAlignRotatedCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
