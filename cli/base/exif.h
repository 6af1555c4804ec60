// SPDX-License-Identifier: Apache-2.0
// The metadata of image files that decoders ignore, and the orientation of photos.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "cli/base/image.h"

namespace polyop::cli {

/// Returns the EXIF orientation of a JPEG or PNG file, 1 to 8; 1 if it has none or its EXIF data is damaged.
int Orientation(std::span<const uint8_t> file);

/// Returns the content of the first chunk of this type of a PNG file; empty if there is none.
std::span<const uint8_t> PngChunk(std::span<const uint8_t> file, std::string_view type);

/// Returns the image as it is viewed: an image that is stored with this orientation, rotated and mirrored.
Image Upright(const Image& image, int orientation);

}  // namespace polyop::cli
