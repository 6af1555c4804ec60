// SPDX-License-Identifier: Apache-2.0
// Regions of interest (RoIs) and the positions of their samples, for pooling on CPU and GPU.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "core/dtype.h"
#include "core/host_device.h"
#include "core/status.h"
#include "core/tensor.h"
#include "ops/rois/batch_indices.h"
#include "ops/rois/roi_axis.h"
#include "ops/rois/roi_levels.h"

namespace polyop {

/// A feature map of shape [N, C, height, width].
template <class T>
struct RoiLevel {
  const T* data;
  int64_t height, width;
  double scale;  // pixels of this level per unit of the boxes' coordinates
};

struct RoiPooling {
  int64_t rows, columns, sampling_ratio;
  bool aligned, average;  // average or maximum
  bool corners = false;   // maximum of the samples' four weighted pixels instead of the samples
};

/// Checks that 32 bits can index the pixels of every level.
template <class T>
Status CheckLevels(std::span<const RoiLevel<T>> levels) {
  for (const RoiLevel<T>& level : levels) {
    if (level.width > 0 && level.height > INT32_MAX / level.width) {
      return InvalidArgument("expected feature maps of at most 2147483647 pixels, got ", level.height, " x ",
                             level.width);
    }
  }
  return Status::Ok();
}

/// Fills `levels`, at most TensorList's kMax, from a feature pyramid. `strides` are image pixels per pixel of a level.
template <class T, class Strides>
void PyramidLevels(const Strides& strides, const TensorList<const T, 4>& feats, RoiLevel<T>* levels) {
  for (int l = 0; l < feats.size(); ++l) {
    levels[l] = {feats[l].data(), feats[l].dim(2), feats[l].dim(3), 1.0 / strides[l]};
  }
}

/// Rows (batch index, x1, y1, x2, y2), read as floats; or rows (x1, y1, x2, y2) with separate batch indices or one
/// image.
template <class T>
struct UprightRois {
  const T* rows;
  float grow = 0;           // scale factor about the centre; 0 or less: 1
  double finest_scale = 1;  // see RoiLevelOf
  int32_t levels = 1;
  const int64_t* images = nullptr;
  bool of_one_image = false;

  POLYOP_HD const T* Corners(int64_t r) const {
    return of_one_image || images != nullptr ? rows + 4 * r : rows + 5 * r + 1;
  }
  /// Returns the index of the box's image; on a GPU it need not be one.
  POLYOP_HD int64_t Image(int64_t r) const {
    if (of_one_image) return 0;
    return images != nullptr ? images[r] : ImageOf(ToFloat(rows[5 * r]));
  }
  POLYOP_HD void Box(int64_t r, float box[4]) const {
    for (int k = 0; k < 4; ++k) box[k] = ToFloat(Corners(r)[k]);
    if (!(grow > 0)) return;
    for (int k = 0; k < 2; ++k) {
      const float centre = (box[k] + box[k + 2]) * 0.5f, half = (box[k + 2] - box[k]) * grow * 0.5f;
      box[k] = centre - half;
      box[k + 2] = centre + half;
    }
  }
  POLYOP_HD int32_t Level(int64_t r) const {
    const T* const box = Corners(r);
    return levels == 1 ? 0
                       : RoiLevelOf(static_cast<double>(ToFloat(box[2])) - ToFloat(box[0]),
                                    static_cast<double>(ToFloat(box[3])) - ToFloat(box[1]), finest_scale, levels);
  }
};

/// A rotated RoI: centre and extents in the boxes' coordinates, angle in radians.
struct RotatedRoiBox {
  double x, y, width, height, angle;
};

/// Rows (batch index, centre x, centre y, width, height, angle).
template <class T>
struct RotatedRois {
  const T* rows;
  bool clockwise;
  float grow = 0;
  double finest_scale = 1;
  int32_t levels = 1;

  static constexpr int64_t kWidth = 6;

  POLYOP_HD int64_t Image(int64_t r) const { return ImageOf(ToFloat(rows[kWidth * r])); }
  POLYOP_HD RotatedRoiBox Box(int64_t r) const {
    const T* const roi = rows + kWidth * r;
    const double factor = grow > 0 ? grow : 1.0, angle = ToFloat(roi[5]);
    return {ToFloat(roi[1]), ToFloat(roi[2]), ToFloat(roi[3]) * factor, ToFloat(roi[4]) * factor,
            clockwise ? -angle : angle};
  }
  POLYOP_HD int32_t Level(int64_t r) const {
    const T* const roi = rows + kWidth * r;
    return levels == 1 ? 0 : RoiLevelOf(ToFloat(roi[3]), ToFloat(roi[4]), finest_scale, levels);
  }
};

/// Positions of a rotated box's samples: a grid in the box's own axes, u along its width and v along its height.
struct RotatedGrid {
  double centre_x, centre_y, cosine, sine;
  RoiAxis u, v;

  POLYOP_HD static RotatedGrid Make(const RotatedRoiBox& box, double scale, const RoiPooling& how) {
    const double shift = how.aligned ? 0.5 : 0.0;
    RotatedGrid grid{box.x * scale - shift, box.y * scale - shift, std::cos(box.angle), std::sin(box.angle), {}, {}};
    // Extents are scaled here; the axis is relative to the centre, without scale or shift.
    const auto axis = [&](double extent, int64_t bins) {
      double length = extent * scale;
      if (!how.aligned && std::isfinite(length)) length = std::max(length, 1.0);
      return RoiAxis::Between(-length / 2, length / 2, 0.0, bins, how.sampling_ratio);
    };
    grid.u = axis(box.width, how.columns);
    grid.v = axis(box.height, how.rows);
    const bool finite = std::isfinite(grid.centre_x) && std::isfinite(grid.centre_y) && std::isfinite(grid.cosine);
    if (!finite) grid.u.samples = grid.v.samples = 0;
    return grid;
  }
  POLYOP_HD double X(double u_at, double v_at) const { return v_at * sine + u_at * cosine + centre_x; }
  POLYOP_HD double Y(double u_at, double v_at) const { return v_at * cosine - u_at * sine + centre_y; }

  /// Computes the range of the image's corners along the box's axes. Samples beyond it are outside.
  POLYOP_HD void Bounds(int64_t height, int64_t width, double u_range[2], double v_range[2]) const {
    u_range[0] = v_range[0] = std::numeric_limits<double>::infinity();
    u_range[1] = v_range[1] = -std::numeric_limits<double>::infinity();
    for (const double x : {-1.0, static_cast<double>(width)}) {
      for (const double y : {-1.0, static_cast<double>(height)}) {
        const double u_at = (x - centre_x) * cosine - (y - centre_y) * sine,
                     v_at = (x - centre_x) * sine + (y - centre_y) * cosine;
        u_range[0] = std::min(u_range[0], u_at);
        u_range[1] = std::max(u_range[1], u_at);
        v_range[0] = std::min(v_range[0], v_at);
        v_range[1] = std::max(v_range[1], v_at);
      }
    }
  }
};

}  // namespace polyop
