// Axis-aligned boxes in structure-of-arrays form, and the vectorised question whether any of many overlaps
// one too much. Compiled once per instruction set; include it from a kernel file.
#if defined(POLYOP_CORE_BOXES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_CORE_BOXES_INL_H_
#undef POLYOP_CORE_BOXES_INL_H_
#else
#define POLYOP_CORE_BOXES_INL_H_
#endif

#include "core/simd.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

/// Five arrays of coordinates and areas. Room for one vector behind the last box is needed.
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

  void Set(int64_t i, const float* box, float offset) const {
    x1[i] = box[0];
    y1[i] = box[1];
    x2[i] = box[2];
    y2[i] = box[3];
    area[i] = (box[2] - box[0] + offset) * (box[3] - box[1] + offset);
  }
  void Copy(int64_t to, const BoxArrays& source, int64_t from) const {
    x1[to] = source.x1[from];
    y1[to] = source.y1[from];
    x2[to] = source.x2[from];
    y2[to] = source.y2[from];
    area[to] = source.area[from];
  }
};

/// Whether intersection > threshold * union, in double precision. NaN and reversed boxes: false.
inline bool OverlapExactly(const BoxArrays& a, int64_t i, const BoxArrays& b, int64_t j, double offset,
                           double threshold) {
  const double width = std::min<double>(a.x2[i], b.x2[j]) - std::max<double>(a.x1[i], b.x1[j]) + offset;
  const double height = std::min<double>(a.y2[i], b.y2[j]) - std::max<double>(a.y1[i], b.y1[j]) + offset;
  if (!(width > 0) || !(height > 0)) return false;
  const auto area = [offset](const BoxArrays& s, int64_t k) {
    return (static_cast<double>(s.x2[k]) - s.x1[k] + offset) * (static_cast<double>(s.y2[k]) - s.y1[k] + offset);
  };
  const double intersection = width * height;
  return intersection > threshold * (area(a, i) + area(b, j) - intersection);
}

/// True if candidates' box i overlaps any of kept[begin, end) by more than `threshold`. A float test finds
/// the suspects (its error is below 1e-6 of the union, so none is missed), double precision decides.
inline bool OverlapsAny(const BoxArrays& candidates, int64_t i, const BoxArrays& kept, int64_t begin, int64_t end,
                        float offset, float threshold) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto x1 = hn::Set(d, candidates.x1[i]), y1 = hn::Set(d, candidates.y1[i]);
  const auto x2 = hn::Set(d, candidates.x2[i]), y2 = hn::Set(d, candidates.y2[i]);
  const auto area = hn::Set(d, candidates.area[i]), shift = hn::Set(d, offset), zero = hn::Zero(d);
  const auto bound = hn::Set(d, threshold * (1 - 4e-6f));
  for (int64_t k = begin; k < end; k += lanes) {
    const auto width =
        hn::Add(hn::Sub(hn::Min(x2, hn::LoadU(d, kept.x2 + k)), hn::Max(x1, hn::LoadU(d, kept.x1 + k))), shift);
    const auto height =
        hn::Add(hn::Sub(hn::Min(y2, hn::LoadU(d, kept.y2 + k)), hn::Max(y1, hn::LoadU(d, kept.y1 + k))), shift);
    const auto intersection = hn::Mul(hn::Max(width, zero), hn::Max(height, zero));
    const auto united = hn::Sub(hn::Add(area, hn::LoadU(d, kept.area + k)), intersection);
    // Written so that NaN (overflowed areas) is a suspect too.
    const auto suspect =
        hn::AndNot(hn::Le(intersection, hn::Mul(bound, united)), hn::FirstN(d, static_cast<size_t>(end - k)));
    if (hn::AllFalse(d, suspect)) continue;
    uint8_t bits[8] = {};
    hn::StoreMaskBits(d, suspect, bits);
    for (int64_t lane = 0; lane < std::min(lanes, end - k); ++lane) {
      if ((bits[lane / 8] >> (lane % 8) & 1) && OverlapExactly(candidates, i, kept, k + lane, offset, threshold))
        return true;
    }
  }
  return false;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
