// SPDX-License-Identifier: Apache-2.0
// Images, and conversion between pixels and tensors.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/base/array.h"

namespace polyop::cli {

/// An image in 8-bit RGB, row by row.
struct Image {
  int64_t width = 0, height = 0;
  std::vector<uint8_t> rgb;
};

/// Decodes PNG files of 8 bits per channel in sRGB, and gray and RGB JPEG files, upright. The format is recognized by
/// the content. Returns nullopt for other files, which polyop.batch.images of the Python package decodes. Throws
/// Failure if the file is damaged or has more than kMaxPixels.
std::optional<Image> DecodeImage(const std::vector<uint8_t>& bytes, const std::string& path);
/// Writes a file in the format of its extension: .png, .jpg or .jpeg (quality 95).
void WriteImage(const std::string& path, const Image& image);
inline constexpr int64_t kMaxPixels = int64_t{1} << 28;

/// Scales an image, as polyop_resize in adapters/c/polyop.h. Throws Failure if an extent is 0.
Image Resized(const Image& image, int64_t height, int64_t width, bool letterbox = false);

/// The layout and value range of an image in a tensor.
struct ImageFormat {
  enum class Layout { kNchw, kNhwc };
  enum class Color { kRgb, kBgr, kGray };
  Layout layout = Layout::kNchw;
  Color color = Color::kRgb;
  double low = 0, high = 1;  // the values of black and white
  bool stated = false;       // the model's metadata or an option says that the tensor is an image
  // Subtracted from the values of a tensor, and divided by: none, one for all channels, or one for each.
  std::vector<double> mean, std;

  int channels() const { return color == Color::kGray ? 1 : 3; }
};

/// Returns a tensor [1, C, H, W] or [1, H, W, C]. Gray is ITU-R BT.601 luma.
Array ToTensor(const Image& image, const ImageFormat& format, DType dtype);
/// Converts a tensor [1, C, H, W], [C, H, W], [1, H, W, C], [H, W, C] or [H, W]. Clips values beyond black and white.
/// Throws Failure if the tensor is not one image. Unless format.stated, tensors that may be a few boxes or scores are
/// none: only with three channels and a batch may an extent be below kMinExtent.
inline constexpr int64_t kMinExtent = 16;
Image FromTensor(const Array& tensor, const ImageFormat& format, const std::string& name);

}  // namespace polyop::cli
