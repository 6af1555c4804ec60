// SPDX-License-Identifier: Apache-2.0
// The gradient of one bilinear sample with zero padding, for blocks of 16 channels. Compiled once per instruction set;
// include it from a kernel file.
#if defined(POLYOP_OPS_DEFORM_DEFORM_SAMPLE_BACKWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_DEFORM_DEFORM_SAMPLE_BACKWARD_INL_H_
#undef POLYOP_OPS_DEFORM_DEFORM_SAMPLE_BACKWARD_INL_H_
#else
#define POLYOP_OPS_DEFORM_DEFORM_SAMPLE_BACKWARD_INL_H_
#endif

#include <cmath>

#include "kernels/cpu/channel_blocks-inl.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

/// The four pixels around a sample. Images and sums have one more pixel after the last: corners outside are read from
/// it (it is 0), and products with a weight of 0 are added to it (it is not used), so that NaN and infinities stay
/// where they belong without a branch for each corner.
struct SampleCorners {
  int64_t pixel[4], target[4];
  float weight[4];  // includes the mask
  float dy, dx;     // from the first corner to the sample

  /// Returns false if the sample is NaN or outside by a pixel or more, and has no gradient.
  HWY_INLINE bool Find(float y, float x, float mask, int64_t height, int64_t width) {
    if (!(y > -1 && x > -1 && y < static_cast<float>(height) && x < static_cast<float>(width))) return false;
    const float top = std::floor(y), left = std::floor(x);
    const int64_t row = static_cast<int64_t>(top), column = static_cast<int64_t>(left);
    dy = y - top;
    dx = x - left;
    const float rows[2] = {(1 - dy) * mask, dy * mask}, columns[2] = {1 - dx, dx};
    const int64_t none = height * width;
    for (int k = 0; k < 4; ++k) {
      const int64_t r = row + k / 2, c = column + k % 2;
      const bool inside = r >= 0 && r < height && c >= 0 && c < width;
      pixel[k] = inside ? r * width + c : none;
      weight[k] = inside ? rows[k / 2] * columns[k % 2] : 0;
      target[k] = weight[k] != 0 ? pixel[k] : none;
    }
    return true;
  }
};

/// The derivatives of a sample with respect to its position and its mask.
struct SampleSlopes {
  float y = 0, x = 0, mask = 0;

  /// `dot` has, for each corner, the sum over channels of pixel times gradient of the sample.
  static HWY_INLINE SampleSlopes Of(const SampleCorners& at, const float* dot, float mask) {
    const auto times = [](float factor, float value) { return factor == 0 ? 0.0f : factor * value; };
    const float top = 1 - at.dy, left = 1 - at.dx;
    return {times(mask, times(left, dot[2] - dot[0]) + times(at.dx, dot[3] - dot[1])),
            times(mask, times(top, dot[1] - dot[0]) + times(at.dy, dot[3] - dot[2])),
            times(top * left, dot[0]) + times(top * at.dx, dot[1]) + times(at.dy * left, dot[2]) +
                times(at.dy * at.dx, dot[3])};
  }
};

/// What VisitSample reads and writes: `blocks` blocks of channels, whose planes in `image` and `sums` are `plane`
/// floats apart.
struct SampleBlocksBackward {
  const float* image;
  float* sums;  // may be null
  int64_t plane, blocks;
};

/// Writes the sample to `column`, unless that is null. If `grad`, the gradient of the sample, is not null: adds its
/// products with the weights to the sums, and writes the sums over channels of each corner's pixel times `grad` to
/// dot[4].
HWY_INLINE void VisitSample(const SampleBlocksBackward& what, const SampleCorners& at, const float* grad, float* column,
                            float* dot) {
  using V = hn::Vec<BlockTag>;
  const BlockTag d;
  V dots[4], weight[4];
  for (int k = 0; k < 4; ++k) {
    dots[k] = hn::Zero(d);
    weight[k] = hn::Set(d, at.weight[k]);
  }
  for (int64_t b = 0; b < what.blocks; ++b) {
    const float* const image = what.image + b * what.plane;
    for (int64_t i = 0; i < kBlockChannels; i += kBlockLanes) {
      V pixel[4];
      for (int k = 0; k < 4; ++k) pixel[k] = hn::LoadU(d, image + at.pixel[k] * kBlockChannels + i);
      if (column != nullptr) {
        V sum = hn::Mul(weight[0], pixel[0]);
        for (int k = 1; k < 4; ++k) sum = hn::MulAdd(weight[k], pixel[k], sum);
        hn::StoreU(sum, d, column + b * kBlockChannels + i);
      }
      if (grad == nullptr) continue;
      const V g = hn::LoadU(d, grad + b * kBlockChannels + i);
      for (int k = 0; k < 4; ++k) dots[k] = hn::MulAdd(g, pixel[k], dots[k]);
      if (what.sums == nullptr) continue;
      float* const sums = what.sums + b * what.plane + i;
      for (int k = 0; k < 4; ++k) {
        float* const to = sums + at.target[k] * kBlockChannels;
        hn::StoreU(hn::MulAdd(weight[k], g, hn::LoadU(d, to)), d, to);
      }
    }
  }
  if (grad != nullptr) hn::StoreU(SumsOfLanes(d, dots), QuadTag(), dot);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
