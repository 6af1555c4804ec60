// SPDX-License-Identifier: Apache-2.0
// The taps of all upright boxes of a call. They are found once and used for every block of channels.
#pragma once

#include <optional>
#include <span>

#include "core/context.h"
#include "ops/rois/roi_grid.h"
#include "ops/rois/upright_taps.h"

namespace polyop {

/// The taps of boxes for an average, a maximum of samples or a maximum of their weighted pixels, as UprightRoi states.
class UprightTable {
 public:
  /// Finds the taps of `count` boxes. With `pad`, boxes that allow it have kFour pixels per bin and axis. R, the type
  /// of the boxes: f32, f16, bf16.
  template <class T, class R>
  Status Fill(const Context& context, std::span<const RoiLevel<T>> levels, int64_t count, const UprightRois<R>& rois,
              const RoiPooling& how, bool pad) {
    const int64_t rows = how.rows, columns = how.columns, each = how.corners ? 2 : 1;  // taps per pixel
    const auto level_at = [&](int64_t r) -> const RoiLevel<T>& { return levels[static_cast<size_t>(rois.Level(r))]; };
    const auto bound = [&](const RoiAxis& axis, int64_t bins, int64_t extent) {
      return TapsBound(axis, bins, extent, each);
    };
    table_.emplace(context.Allocate<UprightRoi>(count));
    if (!*table_) return Internal("out of memory: ", count, " rois");
    int64_t taps_total = 0;
    for (int64_t r = 0; r < count; ++r) {
      UprightRoi roi;
      const RoiLevel<T>& level = level_at(r);
      float box[4];
      rois.Box(r, box);
      roi.x = RoiAxis::Make(box[0], box[2], level.scale, how.aligned, columns, how.sampling_ratio);
      roi.y = RoiAxis::Make(box[1], box[3], level.scale, how.aligned, rows, how.sampling_ratio);
      const double samples = static_cast<double>(roi.x.samples) * static_cast<double>(roi.y.samples);
      roi.scale = samples > 0 ? static_cast<float>(1 / samples) : 0;
      taps_total += bound(roi.y, rows, level.height) + bound(roi.x, columns, level.width);
      (*table_)[r] = roi;
    }
    taps_.emplace(context.Allocate<Tap>(taps_total));
    begins_.emplace(context.Allocate<int32_t>(count * (rows + columns + 2)));
    if (!*taps_ || !*begins_) return Internal("out of memory: taps of ", count, " rois");
    int64_t tap_at = 0;
    for (int64_t r = 0; r < count; ++r) {
      UprightRoi& roi = (*table_)[r];
      int32_t* const begin = begins_->data() + r * (rows + columns + 2);
      roi.rows = {taps_->data() + tap_at, begin};
      tap_at += bound(roi.y, rows, level_at(r).height);
      roi.columns = {taps_->data() + tap_at, begin + rows + 1};
      tap_at += bound(roi.x, columns, level_at(r).width);
    }
    context.ParallelFor(count, 64, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        UprightRoi& roi = (*table_)[r];
        FillAxis(how, roi.y, rows, level_at(r).height, roi.rows, roi);
        FillAxis(how, roi.x, columns, level_at(r).width, roi.columns, roi);
        roi.four = pad && (how.average || how.corners) && PadToFour(roi.rows, rows, each) &&
                   PadToFour(roi.columns, columns, each);
      }
    });
    return Status::Ok();
  }

  const UprightRoi& operator[](int64_t r) const { return (*table_)[r]; }

 private:
  static void FillAxis(const RoiPooling& how, const RoiAxis& axis, int64_t bins, int64_t extent, AxisTaps& out,
                       UprightRoi& roi) {
    if (how.average) {
      FillMerged(axis, bins, extent, out);
    } else if (how.corners) {
      roi.differ |= FillCorners(axis, bins, extent, out);
    } else {
      FillSamples(axis, bins, extent, out);
    }
  }

  std::optional<Scratch<UprightRoi>> table_;
  std::optional<Scratch<Tap>> taps_;
  std::optional<Scratch<int32_t>> begins_;
};

}  // namespace polyop
