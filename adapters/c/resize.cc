// SPDX-License-Identifier: Apache-2.0
// Scaling of images in the C interface. Integers only, so that every processor has the same result.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/guard.h"
#include "platform/exported.h"

#define POLYOP_API POLYOP_EXPORTED  // expands where polyop.h declares the functions
#include "adapters/c/polyop.h"

namespace polyop {
namespace {

constexpr int kBits = 11;  // of a weight
constexpr int32_t kOne = 1 << kBits;
constexpr int64_t kChannels = 3;

// The two pixels of an axis that an output pixel is between, and the weight of the second.
struct Tap {
  int64_t first = 0, second = 0;
  int32_t weight = 0;
};

std::vector<Tap> Taps(int64_t from, int64_t to) {
  std::vector<Tap> taps;
  const int64_t denominator = 2 * to;
  for (int64_t i = 0; i < to; ++i) {
    const int64_t numerator = (2 * i + 1) * from - to;  // of the position, (i + 1/2) * from / to - 1/2
    const int64_t floor = numerator >= 0 ? numerator / denominator : -1;  // the position is at least -1/2
    const int64_t rest = numerator - floor * denominator;
    taps.push_back({std::clamp<int64_t>(floor, 0, from - 1), std::clamp<int64_t>(floor + 1, 0, from - 1),
                    static_cast<int32_t>((rest * kOne + to) / denominator)});
  }
  return taps;
}

// Returns round(numerator / denominator), but at least 1.
int64_t Rounded(int64_t numerator, int64_t denominator) {
  return std::max<int64_t>(1, (2 * numerator + denominator) / (2 * denominator));
}

// Writes an image of this size to rows that are `stride` pixels apart.
void Resize(const uint8_t* pixels, int64_t height, int64_t width, uint8_t* resized, int64_t new_height,
            int64_t new_width, int64_t stride) {
  const std::vector<Tap> rows = Taps(height, new_height), columns = Taps(width, new_width);
  for (int64_t y = 0; y < new_height; ++y) {
    const Tap& row = rows[static_cast<size_t>(y)];
    const uint8_t* const upper = pixels + row.first * width * kChannels;
    const uint8_t* const lower = pixels + row.second * width * kChannels;
    uint8_t* to = resized + y * stride * kChannels;
    for (const Tap& column : columns) {
      for (int64_t c = 0; c < kChannels; ++c) {
        const int64_t left = column.first * kChannels + c, right = column.second * kChannels + c;
        const int32_t above = upper[left] * (kOne - column.weight) + upper[right] * column.weight;
        const int32_t below = lower[left] * (kOne - column.weight) + lower[right] * column.weight;
        const int32_t sum = above * (kOne - row.weight) + below * row.weight;  // at most 255 * 2^22
        *to++ = static_cast<uint8_t>((sum + (1 << (2 * kBits - 1))) >> (2 * kBits));
      }
    }
  }
}

void Letterbox(const uint8_t* pixels, int64_t height, int64_t width, uint8_t* resized, int64_t new_height,
               int64_t new_width) {
  constexpr uint8_t kGray = 114;
  const bool is_wide = width * new_height >= height * new_width;
  const int64_t inner_width = is_wide ? new_width : Rounded(width * new_height, height);
  const int64_t inner_height = is_wide ? Rounded(height * new_width, width) : new_height;
  const int64_t top = (new_height - inner_height) / 2, left = (new_width - inner_width) / 2;
  std::fill_n(resized, new_height * new_width * kChannels, kGray);
  Resize(pixels, height, width, resized + (top * new_width + left) * kChannels, inner_height, inner_width, new_width);
}

}  // namespace
}  // namespace polyop

const char* polyop_resize(const uint8_t* pixels, int64_t height, int64_t width, uint8_t* resized, int64_t new_height,
                          int64_t new_width, int32_t letterbox) {
  return polyop::Guarded(
      [&]() -> const char* {
        if (std::min({height, width, new_height, new_width}) < 1)
          return "expected images with pixels, got an empty one";
        if (letterbox != 0) {
          polyop::Letterbox(pixels, height, width, resized, new_height, new_width);
        } else {
          polyop::Resize(pixels, height, width, resized, new_height, new_width, new_width);
        }
        return nullptr;
      },
      [](const char*) -> const char* { return "out of memory"; });
}
