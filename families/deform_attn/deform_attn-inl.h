// Deformable attention on the CPU: for every query and head, weighted bilinear samples of several levels are summed.
// Compiled once per instruction set; include it from a kernel file.
#if defined(POLYOP_FAMILIES_DEFORM_ATTN_DEFORM_ATTN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_FAMILIES_DEFORM_ATTN_DEFORM_ATTN_INL_H_
#undef POLYOP_FAMILIES_DEFORM_ATTN_DEFORM_ATTN_INL_H_
#else
#define POLYOP_FAMILIES_DEFORM_ATTN_DEFORM_ATTN_INL_H_
#endif

#include "families/deform_attn/attn_levels.h"
#include "families/sampling/zero_padded_sample.h"
#include "hwy/cache_control.h"
#include "kernels/cpu/simd.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// One pixel of `value` and what it weighs in a head's sum.
struct AttnTap {
  int64_t offset;
  float weight;
};

// The taps of a query's head, found one sample after the other.
template <class T>
class AttnTaps {
 public:
  AttnTaps(const T* value, int64_t stride, AttnTap* room) : value_(value), stride_(stride), first_(room), last_(room) {}

  // Adds the pixels of the sample at (y, x) of a level. They lie anywhere in `value`, so they are called to the cache
  // here, before the sums ask for them.
  HWY_INLINE void Add(const AttnLevel& level, float y, float x, float weight) {
    ForEachZeroPaddedTap(y, x, level.height, level.width, weight, [&](int, int64_t pixel, float pixel_weight) {
      *last_ = {(level.start + pixel) * stride_, pixel_weight};
      hwy::Prefetch(value_ + last_++->offset);
    });
  }

  // The same at a location (x, y) that is 0 to 1 over the level.
  HWY_INLINE void AddAtLocation(const AttnLevel& level, const T* location, float weight) {
    Add(level, ToFloat(location[1]) * static_cast<float>(level.height) - 0.5f,
        ToFloat(location[0]) * static_cast<float>(level.width) - 0.5f, weight);
  }

  // to[0, depth) = the weighted sum of the taps.
  void Sum(int64_t depth, T* to) const {
    const hn::ScalableTag<float> d;
    int64_t at = SumVectors<4>(depth, 0, to);
    at = SumVectors<2>(depth, at, to);
    at = SumVectors<1>(depth, at, to);
    if (at == depth) return;
    const size_t rest = static_cast<size_t>(depth - at);
    auto sum = hn::Zero(d);
    for (const AttnTap* tap = first_; tap != last_; ++tap) {
      sum = hn::MulAdd(LoadFloatN(d, value_ + tap->offset + at, rest), hn::Set(d, tap->weight), sum);
    }
    StoreFloatN(sum, d, to + at, rest);
  }

 private:
  // kVectors vectors at a time stay in registers.
  template <int kVectors>
  HWY_INLINE int64_t SumVectors(int64_t depth, int64_t at, T* to) const {
    const hn::ScalableTag<float> d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    for (; at + kVectors * lanes <= depth; at += kVectors * lanes) {
      hn::Vec<decltype(d)> sum[kVectors];
      for (auto& s : sum) s = hn::Zero(d);
      for (const AttnTap* tap = first_; tap != last_; ++tap) {
        const auto weight = hn::Set(d, tap->weight);
        const T* pixel = value_ + tap->offset + at;
        for (int v = 0; v < kVectors; ++v) sum[v] = hn::MulAdd(LoadFloat(d, pixel + v * lanes), weight, sum[v]);
      }
      for (int v = 0; v < kVectors; ++v) StoreFloat(sum[v], d, to + at + v * lanes);
    }
    return at;
  }

  const T* const value_;
  const int64_t stride_;
  AttnTap* const first_;
  AttnTap* last_;
};

/// output[N, Q, M, D] from value[N, S, M, D]. find(pair, room, taps) adds the at most `samples` samples of pair number
/// (n * Q + q) * M + m; `room` has a float for each.
template <class T, class Find>
Status DeformAttn(const Context& context, const Tensor<const T, 4>& value, int64_t queries, int64_t samples,
                  const Find& find, T* output) {
  const int64_t spatial = value.dim(1), heads = value.dim(2), depth = value.dim(3), items = value.dim(0) * queries;
  const int64_t grain = GrainFor(static_cast<double>(heads * samples) * (8 + 0.2 * static_cast<double>(depth)));
  const int64_t tasks = Context::NumTasks(items, grain);
  const Scratch<AttnTap> taps = context.Allocate<AttnTap>(tasks * samples * 4);
  const Scratch<float> rooms = context.Allocate<float>(tasks * samples);
  if (!taps || !rooms) return Internal("out of memory: scratch for ", samples, " samples");
  context.ParallelFor(items, grain, [&](int64_t task, int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t item = begin; item < end; ++item) {
      const T* const picture = value.data() + item / queries * spatial * heads * depth;
      for (int64_t m = 0; m < heads; ++m) {
        const T* const first = spatial > 0 ? picture + m * depth : nullptr;  // a value without pixels has no tap
        AttnTaps<T> found(first, heads * depth, taps.data() + task * samples * 4);
        find(item * heads + m, rooms.data() + task * samples, found);
        found.Sum(depth, output + (item * heads + m) * depth);
      }
    }
  });
  return Status::Ok();
}

/// The same with weights as they are, at locations that are 0 to 1 over a level.
template <class T, class I>
Status DeformAttnAtLocations(const Context& context, const Tensor<const T, 4>& value, const Tensor<const I, 2>& shapes,
                             const Tensor<const I, 1>& starts, const Tensor<const T, 6>& locations, const T* weights,
                             T* output) {
  const int64_t points = locations.dim(4), samples = locations.dim(3) * points;
  const Scratch<AttnLevel> levels = context.Allocate<AttnLevel>(starts.dim(0));
  if (!levels) return Internal("out of memory: ", starts.dim(0), " levels");
  POLYOP_RETURN_IF_ERROR(ReadLevels(shapes, starts, value.dim(1), levels.data()));
  const auto find = [&](int64_t pair, float*, AttnTaps<T>& taps) HWY_ATTR {
    const T* const location = locations.data() + pair * samples * 2;
    const T* const weight = weights + pair * samples;
    for (int64_t s = 0; s < samples; ++s) {
      taps.AddAtLocation(levels[s / points], location + 2 * s, ToFloat(weight[s]));
    }
  };
  return DeformAttn<T>(context, value, locations.dim(1), samples, find, output);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
