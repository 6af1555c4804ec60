// SPDX-License-Identifier: Apache-2.0
// The parts of the input's and the output's rows that hold the same values.
#pragma once

#include <algorithm>

#include "ops/feature_maps/psa_mask/psa_mask.h"

namespace polyop {

/// Elements [begin, end) of the row of the output at `output` are those of the input at input + (w - begin) * step. The
/// other elements of the row are 0.
struct PsaMaskRun {
  int64_t output, input, step, begin, end;

  /// Returns the run of row h of the input's pixels that refers to pixel (y, r) of an image: collect: channel (y, r) of
  /// pixels (h, .); distribute: channel (h, r) of pixels (y, .).
  static PsaMaskRun Of(const PsaMask& op, int64_t height, int64_t width, int64_t h, int64_t y, int64_t r) {
    const bool collect = op.psa_type == PsaMask::Type::kCollect;
    const int64_t a = op.mask_size[0] / 2, b = op.mask_size[1] / 2, pixels = height * width, i = y - h + a;
    const int64_t output = collect ? (y * width + r) * pixels + h * width : (h * width + r) * pixels + y * width;
    if (i < 0 || i >= op.mask_size[0]) return {output, 0, 0, 0, 0};
    const int64_t begin = std::max<int64_t>(r - b, 0), end = std::min(r + b + 1, width);
    const int64_t row = i * op.mask_size[1] * pixels + h * width;  // [columns of masks][pixels]
    return {output, row + (collect ? (r - begin + b) * pixels + begin : (begin - r + b) * pixels + r),
            collect ? 1 - pixels : pixels, begin, end};
  }
};

}  // namespace polyop
