// SPDX-License-Identifier: Apache-2.0
// The order in which the gradients of a grid's samples are added to an image: by rows, so that consecutive points touch
// the same pixels, which are then in the caches. Compiled once per instruction set; include it from a kernel file.
#if defined(POLYOP_OPS_SAMPLING_POINT_ORDER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_SAMPLING_POINT_ORDER_INL_H_
#undef POLYOP_OPS_SAMPLING_POINT_ORDER_INL_H_
#else
#define POLYOP_OPS_SAMPLING_POINT_ORDER_INL_H_
#endif

#include <algorithm>

#include "kernels/cpu/simd.h"
#include "ops/sampling/grid_taps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Sets first[i] to the first row of pixels that point i samples, or to -1 if it samples none. Writes up to a vector
// beyond `count`. Returns the maximum difference of a point's last and first row. Rows of a volume are those of all its
// planes.
template <int kAxes, int kPerAxis>
int32_t FindFirstRows(const Axis* axes, const float* points, int64_t count, int32_t* first) {
  const I di;
  const VI none = hn::Set(di, -1), zero = hn::Zero(di);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(di));
  VI span = zero;
  for (int64_t i = 0; i < count; i += lanes) {
    float last[kAxes * hn::MaxLanes(di)] = {};  // the last points, up to a vector
    const float* from = points + i * kAxes;
    if (i + lanes > count) {
      std::copy_n(from, (count - i) * kAxes, last);
      from = last;
    }
    VF at[kAxes];
    LoadPoints<kAxes>(from, at);
    VI low[kAxes], high[kAxes];
    auto inside = hn::Eq(zero, zero);
    for (int a = 0; a < kAxes; ++a) {
      AxisTaps<kPerAxis> taps;
      taps.Find(axes[a], at[a]);
      low[a] = hn::Set(di, INT32_MAX);
      high[a] = none;
      for (const VI index : taps.index) {
        high[a] = hn::Max(high[a], index);
        low[a] = hn::IfThenElse(hn::Lt(index, zero), low[a], hn::Min(low[a], index));
      }
      inside = hn::And(inside, hn::Gt(high[a], none));
    }
    VI low_row = low[1], high_row = high[1];
    if constexpr (kAxes == 3) {
      const VI height = hn::Set(di, static_cast<int32_t>(axes[1].extent));
      low_row = hn::Add(low_row, hn::Mul(low[2], height));
      high_row = hn::Add(high_row, hn::Mul(high[2], height));
    }
    hn::StoreU(hn::IfThenElse(inside, low_row, none), di, first + i);
    span = hn::Max(span, hn::IfThenElseZero(inside, hn::Sub(high_row, low_row)));
  }
  return hn::ReduceMax(di, span);
}

// The points of a grid in some order: sorted by the first rows that they sample, without those that sample none; or as
// they are.
template <int kAxes>
class PointOrder {
 public:
  // Has room for `points` points of an image of `rows` rows.
  PointOrder(const Context& context, int64_t points, int64_t rows)
      : index_(context.Allocate<int32_t>(points)),
        first_row_(context.Allocate<int32_t>(points + kPad)),
        at_(context.Allocate<float>((points + kPad) * kAxes)),
        begins_(context.Allocate<int32_t>(kBuckets + 1)) {
    while ((rows - 1) >> shift_ >= kBuckets) ++shift_;
  }
  bool ok() const { return index_ && first_row_ && at_ && begins_; }

  template <int kPerAxis>
  void Sort(const Context& context, const Axis* axes, const float* points, int64_t count) {
    // Vectors of a task write only its own rows: tasks begin at multiples of kPad points.
    const int64_t items = (count + kPad - 1) / kPad, grain = 4096 / kPad;
    int32_t spans[Context::kMaxTasks] = {};
    context.ParallelFor(items, grain, [&](int64_t task, int64_t begin, int64_t end) HWY_ATTR {
      const int64_t first = begin * kPad, some = std::min(end * kPad, count) - first;
      spans[task] = FindFirstRows<kAxes, kPerAxis>(axes, points + first * kAxes, some, first_row_.data() + first);
    });
    span_ = *std::max_element(spans, spans + Context::kMaxTasks);
    std::fill_n(begins_.data(), kBuckets + 1, 0);
    for (int64_t i = 0; i < count; ++i) {
      if (first_row_[i] >= 0) ++begins_[Bucket(first_row_[i]) + 1];
    }
    for (int64_t b = 0; b < kBuckets; ++b) begins_[b + 1] += begins_[b];
    for (int64_t i = 0; i < count; ++i) {
      if (first_row_[i] < 0) continue;
      const int64_t to = begins_[Bucket(first_row_[i])]++;
      index_[to] = static_cast<int32_t>(i);
      std::copy_n(points + i * kAxes, kAxes, at_.data() + to * kAxes);
    }
    std::copy_backward(begins_.data(), begins_.data() + kBuckets, begins_.data() + kBuckets + 1);
    begins_[0] = 0;
    std::fill_n(at_.data() + size() * kAxes, kPad * kAxes, 0.0f);
  }

  // Keeps the order of the points. All ranges contain all of them.
  void Keep(const Context&, const Axis*, const float* points, int64_t count) {
    for (int64_t i = 0; i < count; ++i) index_[i] = static_cast<int32_t>(i);
    std::copy_n(points, count * kAxes, at_.data());
    std::fill_n(at_.data() + count * kAxes, kPad * kAxes, 0.0f);
    begins_[0] = 0;
    std::fill_n(begins_.data() + 1, kBuckets, static_cast<int32_t>(count));
    span_ = INT32_MAX;
  }

  // A range of the order that contains all points that sample rows [begin, end).
  struct Range {
    int64_t begin, end;
    int64_t size() const { return end - begin; }
  };
  Range Of(int64_t begin, int64_t end) const {
    return {begins_[Bucket(std::max<int64_t>(begin - span_, 0))], begins_[Bucket(end - 1) + 1]};
  }
  int64_t size() const { return begins_[kBuckets]; }
  const int32_t* index() const { return index_.data(); }
  // The points' coordinates. Padded by a vector.
  const float* at() const { return at_.data(); }

 private:
  static constexpr int64_t kBuckets = 1 << 12, kPad = 16;

  int64_t Bucket(int64_t row) const { return row >> shift_; }

  const Scratch<int32_t> index_, first_row_;
  const Scratch<float> at_;
  const Scratch<int32_t> begins_;
  int shift_ = 0;
  int64_t span_ = 0;
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
