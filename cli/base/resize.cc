// SPDX-License-Identifier: Apache-2.0
#include "cli/base/resize.h"

#include <algorithm>

namespace polyop::cli {
namespace {

constexpr int kBits = 11;  // of a weight
constexpr int64_t kOne = int64_t{1} << kBits;

// The two pixels of an axis that an output pixel is between, and the weight of the second.
struct Tap {
  int64_t first = 0, second = 0, weight = 0;
};

// Integers only, so that every processor and language has the same result.
std::vector<Tap> Taps(int64_t from, int64_t to) {
  std::vector<Tap> taps;
  const int64_t denominator = 2 * to;
  for (int64_t i = 0; i < to; ++i) {
    const int64_t numerator = (2 * i + 1) * from - to;  // of the position, (i + 1/2) * from / to - 1/2
    const int64_t floor = numerator >= 0 ? numerator / denominator : -1;  // the position is at least -1/2
    const int64_t rest = numerator - floor * denominator;
    taps.push_back({std::clamp<int64_t>(floor, 0, from - 1), std::clamp<int64_t>(floor + 1, 0, from - 1),
                    (rest * kOne + to) / denominator});
  }
  return taps;
}

// Returns round(numerator / denominator), but at least 1.
int64_t Rounded(int64_t numerator, int64_t denominator) {
  return std::max<int64_t>(1, (2 * numerator + denominator) / (2 * denominator));
}

}  // namespace

Image Resized(const Image& image, int64_t height, int64_t width) {
  if (image.height == height && image.width == width) return image;
  const std::vector<Tap> rows = Taps(image.height, height), columns = Taps(image.width, width);
  Image result{width, height, std::vector<uint8_t>(static_cast<size_t>(height * width * 3))};
  uint8_t* to = result.rgb.data();
  for (const Tap& row : rows) {
    const uint8_t* const upper = image.rgb.data() + row.first * image.width * 3;
    const uint8_t* const lower = image.rgb.data() + row.second * image.width * 3;
    for (const Tap& column : columns) {
      for (int64_t c = 0; c < 3; ++c) {
        const int64_t left = column.first * 3 + c, right = column.second * 3 + c;
        const int64_t above = upper[left] * (kOne - column.weight) + upper[right] * column.weight;
        const int64_t below = lower[left] * (kOne - column.weight) + lower[right] * column.weight;
        const int64_t sum = above * (kOne - row.weight) + below * row.weight;
        *to++ = static_cast<uint8_t>((sum + (int64_t{1} << (2 * kBits - 1))) >> (2 * kBits));
      }
    }
  }
  return result;
}

Image Letterboxed(const Image& image, int64_t height, int64_t width) {
  constexpr uint8_t kGray = 114;
  const bool is_wide = image.width * height >= image.height * width;
  const int64_t inner_width = is_wide ? width : Rounded(image.width * height, image.height);
  const int64_t inner_height = is_wide ? Rounded(image.height * width, image.width) : height;
  const Image inner = Resized(image, inner_height, inner_width);
  const int64_t top = (height - inner_height) / 2, left = (width - inner_width) / 2;
  Image result{width, height, std::vector<uint8_t>(static_cast<size_t>(height * width * 3), kGray)};
  for (int64_t y = 0; y < inner_height; ++y) {
    std::copy_n(inner.rgb.data() + y * inner_width * 3, inner_width * 3,
                result.rgb.data() + ((top + y) * width + left) * 3);
  }
  return result;
}

}  // namespace polyop::cli
