// SPDX-License-Identifier: Apache-2.0
// Boxes as a structure of arrays, and a vectorised test whether any of them overlaps a given box too much. Compiled
// once per instruction set; include it from a kernel file.
#if defined(POLYOP_OPS_BOXES_BOXES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_BOXES_BOXES_INL_H_
#undef POLYOP_OPS_BOXES_BOXES_INL_H_
#else
#define POLYOP_OPS_BOXES_BOXES_INL_H_
#endif

#include <bit>
#include <cmath>
#include <limits>
#include <span>

#include "kernels/cpu/mask_bits-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/boxes/boxes_overlap.h"
#include "ops/boxes/rotated_boxes.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

/// Five arrays of coordinates and areas, padded by one vector after the last box.
struct BoxArrays {
  float* x1;
  float* y1;
  float* x2;
  float* y2;
  float* area;

  static constexpr int64_t kArrays = 5, kPad = 64;
  static BoxArrays In(float* memory, int64_t capacity) {
    const int64_t stride = capacity + kPad;
    return {memory, memory + stride, memory + 2 * stride, memory + 3 * stride, memory + 4 * stride};
  }
  static int64_t FloatsFor(int64_t capacity) { return kArrays * (capacity + kPad); }

  /// Minimum area for the overlap test in float. Below it, products of lengths underflow.
  static constexpr float kMinArea = 1e-30f;

  void Set(int64_t i, const float* box, float offset) const {
    x1[i] = box[0];
    y1[i] = box[1];
    x2[i] = box[2];
    y2[i] = box[3];
    const float width = box[2] - box[0] + offset, height = box[3] - box[1] + offset;
    area[i] = NonzeroArea(width * height, width != 0 && height != 0);
  }
  /// Returns `area`, or the smallest positive float where the product of two nonzero sides underflowed to 0.
  static float NonzeroArea(float area, bool has_area) {
    return area == 0 && has_area ? std::numeric_limits<float>::denorm_min() : area;
  }
  /// Returns the exact overlap of box i and box k of `other`.
  BoxOverlap Overlap(int64_t i, const BoxArrays& other, int64_t k, double offset) const {
    const float a[4] = {x1[i], y1[i], x2[i], y2[i]};
    const float b[4] = {other.x1[k], other.y1[k], other.x2[k], other.y2[k]};
    return BoxOverlap::Of(a, b, offset);
  }
  void Copy(int64_t to, const BoxArrays& source, int64_t from) const {
    x1[to] = source.x1[from];
    y1[to] = source.y1[from];
    x2[to] = source.x2[from];
    y2[to] = source.y2[from];
    area[to] = source.area[from];
  }
};

/// Calls visit(lane) for the lanes of `mask` below `count`, in order, until it returns true. Returns whether it did.
template <class D, class M, class Visit>
HWY_INLINE bool VisitLanes(D d, M mask, int64_t count, const Visit& visit) {
  if (hn::AllFalse(d, mask)) return false;
  for (uint64_t bits = BitsOf(d, mask); bits != 0; bits &= bits - 1) {
    const int64_t lane = std::countr_zero(bits);
    if (lane >= count) break;
    if (visit(lane)) return true;
  }
  return false;
}

/// The boxes [begin, end).
struct BoxRange {
  int64_t begin = 0, end = 0;
};

/// Calls exact(k) for those boxes k of `others` that box i may overlap by `threshold` or more, row by row, until it
/// returns true. Returns whether it did. A test in float finds these suspects; its error is below 1e-6 of the union, so
/// none is missed. For a tiny box or a threshold near 0, all boxes that touch are suspects because products underflow.
/// All that touch a box are also suspects if the union of both overflows, which says nothing about their overlap.
/// With kBounds, the boxes are upright bounds of shapes whose areas are `area`.
template <bool kBounds, class Row, class Exact>
bool AnySuspect(const BoxArrays& candidates, int64_t i, const BoxArrays& others, std::span<const Row> rows,
                float offset, float threshold, const Exact& exact) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto x1 = hn::Set(d, candidates.x1[i]), y1 = hn::Set(d, candidates.y1[i]);
  const auto x2 = hn::Set(d, candidates.x2[i]), y2 = hn::Set(d, candidates.y2[i]);
  const auto area = hn::Set(d, candidates.area[i]), shift = hn::Set(d, offset), zero = hn::Zero(d);
  // Adding an offset rounds with an error relative to the offset, not to the sum.
  const auto bound = hn::Set(d, threshold * (1 - 4e-6f) - (offset != 0 ? 1e-6f : 0.0f));
  const auto least = hn::Set(d, LeastExtent(offset)), largest = hn::Set(d, std::numeric_limits<float>::max());
  const bool touching_suffices =
      threshold < 4e-6f || (candidates.area[i] != 0 && std::fabs(candidates.area[i]) < BoxArrays::kMinArea);
  for (const Row& row : rows) {
    const int64_t end = row.end;
    for (int64_t k = row.begin; k < end; k += lanes) {
      const auto width =
          hn::Add(hn::Sub(hn::Min(x2, hn::LoadU(d, others.x2 + k)), hn::Max(x1, hn::LoadU(d, others.x1 + k))), shift);
      const auto height =
          hn::Add(hn::Sub(hn::Min(y2, hn::LoadU(d, others.y2 + k)), hn::Max(y1, hn::LoadU(d, others.y1 + k))), shift);
      if (touching_suffices) {
        const auto touching = hn::And(hn::Gt(width, least), hn::Gt(height, least));
        if (VisitLanes(d, touching, std::min(lanes, end - k), [&](int64_t lane) { return exact(k + lane); })) {
          return true;
        }
        continue;
      }
      const auto other_area = hn::LoadU(d, others.area + k);
      auto intersection = hn::Mul(hn::Max(width, zero), hn::Max(height, zero));
      if constexpr (kBounds) intersection = hn::Min(intersection, hn::Min(area, other_area));
      const auto united = hn::Sub(hn::Add(area, other_area), intersection);
      // Negated, so that NaN is a suspect too.
      const auto decided = hn::Or(hn::Le(united, largest), hn::Le(intersection, zero));
      const auto suspect = hn::Not(hn::And(hn::Le(intersection, hn::Mul(bound, united)), decided));
      if (VisitLanes(d, suspect, std::min(lanes, end - k), [&](int64_t lane) { return exact(k + lane); })) return true;
    }
  }
  return false;
}

/// Sets box i of `arrays` to the upright bounds of a rotated box, and its area to that of the rotated box.
inline void SetBounds(const BoxArrays& arrays, int64_t i, const RotatedBox& r) {
  // The bounds grow by more than the rounding to float may cut off, also for denormal numbers.
  constexpr double kMinGrowth = 1e-37;
  const double grow_x = 1e-6 * (std::fabs(r.x) + r.reach_x) + kMinGrowth;
  const double grow_y = 1e-6 * (std::fabs(r.y) + r.reach_y) + kMinGrowth;
  arrays.x1[i] = static_cast<float>(r.x - r.reach_x - grow_x);
  arrays.y1[i] = static_cast<float>(r.y - r.reach_y - grow_y);
  arrays.x2[i] = static_cast<float>(r.x + r.reach_x + grow_x);
  arrays.y2[i] = static_cast<float>(r.y + r.reach_y + grow_y);
  arrays.area[i] = BoxArrays::NonzeroArea(static_cast<float>(r.area), r.area != 0);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
