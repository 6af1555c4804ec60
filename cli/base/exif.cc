// SPDX-License-Identifier: Apache-2.0
#include "cli/base/exif.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace polyop::cli {
namespace {

using Bytes = std::span<const uint8_t>;

Bytes Part(Bytes bytes, size_t begin, size_t size) {
  if (begin > bytes.size()) return {};
  return bytes.subspan(begin, std::min(size, bytes.size() - begin));
}

bool StartsWith(Bytes bytes, std::string_view text) {
  return bytes.size() >= text.size() && std::equal(text.begin(), text.end(), bytes.begin(),
                                                   [](char c, uint8_t b) { return static_cast<uint8_t>(c) == b; });
}

// Reads an unsigned integer of `size` bytes; 0 beyond the end.
uint32_t Integer(Bytes bytes, size_t at, size_t size, bool little_endian) {
  uint32_t value = 0;
  if (at + size > bytes.size()) return 0;
  for (size_t i = 0; i < size; ++i) value = value << 8 | bytes[at + (little_endian ? size - 1 - i : i)];
  return value;
}

uint32_t BigEndian(Bytes bytes, size_t at, size_t size) { return Integer(bytes, at, size, false); }

// Returns the orientation in the first directory of a TIFF structure, as EXIF data is.
int OrientationIn(Bytes tiff) {
  constexpr uint32_t kTag = 0x0112, kShort = 3;
  constexpr size_t kEntry = 12;
  const bool little = StartsWith(tiff, "II*");
  if (!little && !StartsWith(tiff, std::string_view("MM\0*", 4))) return 1;
  const size_t directory = Integer(tiff, 4, 4, little);
  const uint32_t count = Integer(tiff, directory, 2, little);
  for (uint32_t i = 0; i < count; ++i) {
    const size_t entry = directory + 2 + i * kEntry;
    if (entry + kEntry > tiff.size()) return 1;
    if (Integer(tiff, entry, 2, little) != kTag || Integer(tiff, entry + 2, 2, little) != kShort) continue;
    const auto value = static_cast<int>(Integer(tiff, entry + 8, 2, little));
    return value >= 1 && value <= 8 ? value : 1;
  }
  return 1;
}

// Returns the EXIF data of a JPEG file, from its APP1 segment.
Bytes ExifOfJpeg(Bytes file) {
  constexpr std::string_view kHeader("Exif\0\0", 6);
  for (size_t at = 2; at + 4 <= file.size() && file[at] == 0xFF;) {
    const uint8_t marker = file[at + 1];
    const size_t size = BigEndian(file, at + 2, 2);
    const Bytes segment = Part(file, at + 4, size < 2 ? 0 : size - 2);
    if (marker == 0xDA || size < 2) break;  // the pixels
    if (marker == 0xE1 && StartsWith(segment, kHeader)) return segment.subspan(kHeader.size());
    at += 2 + size;
  }
  return {};
}

}  // namespace

int Orientation(Bytes file) {
  if (StartsWith(file, "\xFF\xD8")) return OrientationIn(ExifOfJpeg(file));
  return OrientationIn(PngChunk(file, "eXIf"));
}

std::span<const uint8_t> PngChunk(std::span<const uint8_t> file, std::string_view type) {
  constexpr size_t kSignature = 8, kAround = 12;  // the size, the type and the checksum of a chunk
  for (size_t at = kSignature; at + kAround <= file.size();) {
    const size_t size = BigEndian(file, at, 4);
    if (StartsWith(file.subspan(at + 4), type)) return Part(file, at + 8, size);
    at += kAround + size;
  }
  return {};
}

Image Upright(const Image& image, int orientation) {
  if (orientation == 1) return image;
  const int64_t height = image.height, width = image.width;
  const bool swapped = orientation >= 5;
  Image result{swapped ? height : width, swapped ? width : height, std::vector<uint8_t>(image.rgb.size())};
  // Returns the row and the column of the stored pixel.
  const auto source = [&](int64_t y, int64_t x) -> std::pair<int64_t, int64_t> {
    switch (orientation) {
      case 2: return {y, width - 1 - x};
      case 3: return {height - 1 - y, width - 1 - x};
      case 4: return {height - 1 - y, x};
      case 5: return {x, y};
      case 6: return {height - 1 - x, y};
      case 7: return {height - 1 - x, width - 1 - y};
      default: return {x, width - 1 - y};
    }
  };
  uint8_t* to = result.rgb.data();
  for (int64_t y = 0; y < result.height; ++y) {
    for (int64_t x = 0; x < result.width; ++x, to += 3) {
      const auto [row, column] = source(y, x);
      std::copy_n(image.rgb.data() + (row * width + column) * 3, 3, to);
    }
  }
  return result;
}

}  // namespace polyop::cli
