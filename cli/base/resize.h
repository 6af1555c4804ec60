// SPDX-License-Identifier: Apache-2.0
// Scaling of images. python/polyop/batch/resizing.py has the same functions, with equal results.
#pragma once

#include "cli/base/image.h"

namespace polyop::cli {

/// Scales by bilinear interpolation between the centres of pixels, without filtering, like OpenCV's INTER_LINEAR.
/// Requires: no extent is 0.
Image Resized(const Image& image, int64_t height, int64_t width);

/// Scales with the aspect ratio, to the largest size that fits, and centres the result on gray (114).
Image Letterboxed(const Image& image, int64_t height, int64_t width);

}  // namespace polyop::cli
