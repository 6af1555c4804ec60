#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/ms_deform_attn/ms_deform_attn_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/sampling/zero_padded_sample.h"
#include "hwy/cache_control.h"
#include "kernels/cpu/simd.h"
#include "ops/ms_deform_attn/ms_deform_attn.h"
#include "ops/ms_deform_attn/ms_deform_attn_values.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// One pixel of `value` and what it weighs in a head's sum.
struct Tap {
  int64_t offset;
  float weight;
};

// Adds the pixels of one sample. They lie anywhere in `value`, so they are called to the cache here, before the sums
// ask for them.
template <class T>
HWY_INLINE Tap* AddSample(const AttnLevel& level, float location_x, float location_y, float weight, const T* value,
                          int64_t stride, Tap* tap) {
  const float x = location_x * static_cast<float>(level.width) - 0.5f;
  const float y = location_y * static_cast<float>(level.height) - 0.5f;
  ForEachZeroPaddedTap(y, x, level.height, level.width, weight, [&](int, int64_t pixel, float pixel_weight) {
    *tap = {(level.start + pixel) * stride, pixel_weight};
    hwy::Prefetch(value + tap++->offset);
  });
  return tap;
}

// to[0, depth) = the weighted sum of the taps; kVectors vectors at a time stay in registers.
template <class T, int kVectors>
HWY_INLINE int64_t SumVectors(const T* value, const Tap* begin, const Tap* end, int64_t depth, int64_t at, T* to) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (; at + kVectors * lanes <= depth; at += kVectors * lanes) {
    hn::Vec<decltype(d)> sum[kVectors];
    for (auto& s : sum) s = hn::Zero(d);
    for (const Tap* tap = begin; tap != end; ++tap) {
      const auto weight = hn::Set(d, tap->weight);
      const T* pixel = value + tap->offset + at;
      for (int v = 0; v < kVectors; ++v) sum[v] = hn::MulAdd(LoadFloat(d, pixel + v * lanes), weight, sum[v]);
    }
    for (int v = 0; v < kVectors; ++v) StoreFloat(sum[v], d, to + at + v * lanes);
  }
  return at;
}

template <class T>
void SumTaps(const T* value, const Tap* begin, const Tap* end, int64_t depth, T* to) {
  const hn::ScalableTag<float> d;
  int64_t at = SumVectors<T, 4>(value, begin, end, depth, 0, to);
  at = SumVectors<T, 2>(value, begin, end, depth, at, to);
  at = SumVectors<T, 1>(value, begin, end, depth, at, to);
  if (at == depth) return;
  const size_t rest = static_cast<size_t>(depth - at);
  auto sum = hn::Zero(d);
  for (const Tap* tap = begin; tap != end; ++tap) {
    sum = hn::MulAdd(LoadFloatN(d, value + tap->offset + at, rest), hn::Set(d, tap->weight), sum);
  }
  StoreFloatN(sum, d, to + at, rest);
}

template <class T, class I>
Status MsDeformAttnCpu(const MsDeformAttn&, const Context& context, Tensor<const T, 4> value, Tensor<const I, 2> shapes,
                       Tensor<const I, 1> starts, Tensor<const T, 6> locations, Tensor<const T, 5> weights,
                       Tensor<T, 3> output) {
  const int64_t spatial = value.dim(1), heads = value.dim(2), depth = value.dim(3), queries = locations.dim(1);
  const int64_t num_levels = locations.dim(3), points = locations.dim(4), samples = num_levels * points;
  const Scratch<AttnLevel> levels = context.Allocate<AttnLevel>(num_levels);
  const int64_t items = value.dim(0) * queries;
  const int64_t grain = GrainFor(static_cast<double>(heads * samples) * (8 + 0.2 * static_cast<double>(depth)));
  const Scratch<Tap> taps = context.Allocate<Tap>(Context::NumTasks(items, grain) * samples * 4);
  if (!levels || !taps) return Internal("out of memory: scratch for ", samples, " samples");
  POLYOP_RETURN_IF_ERROR(ReadLevels(shapes, starts, spatial, levels.data()));

  context.ParallelFor(items, grain, [&](int64_t task, int64_t begin, int64_t end) HWY_ATTR {
    Tap* const first = taps.data() + task * samples * 4;
    for (int64_t item = begin; item < end; ++item) {
      const T* picture = value.data() + item / queries * spatial * heads * depth;
      for (int64_t m = 0; m < heads; ++m) {
        const T* location = locations.data() + (item * heads + m) * samples * 2;
        const T* weight = weights.data() + (item * heads + m) * samples;
        Tap* last = first;
        for (int64_t s = 0; s < samples; ++s) {
          last = AddSample(levels[s / points], ToFloat(location[2 * s]), ToFloat(location[2 * s + 1]),
                           ToFloat(weight[s]), picture + m * depth, heads * depth, last);
        }
        SumTaps(picture + m * depth, first, last, depth, output.data() + (item * heads + m) * depth);
      }
    }
  });
  return Status::Ok();
}

template <class T>
Status MsDeformAttnI64(const MsDeformAttn& op, const Context& context, Tensor<const T, 4> value,
                       Tensor<const int64_t, 2> shapes, Tensor<const int64_t, 1> starts, Tensor<const T, 6> locations,
                       Tensor<const T, 5> weights, Tensor<T, 3> output) {
  return MsDeformAttnCpu<T, int64_t>(op, context, value, shapes, starts, locations, weights, output);
}
template <class T>
Status MsDeformAttnI32(const MsDeformAttn& op, const Context& context, Tensor<const T, 4> value,
                       Tensor<const int32_t, 2> shapes, Tensor<const int32_t, 1> starts, Tensor<const T, 6> locations,
                       Tensor<const T, 5> weights, Tensor<T, 3> output) {
  return MsDeformAttnCpu<T, int32_t>(op, context, value, shapes, starts, locations, weights, output);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNEL(MsDeformAttn, MsDeformAttnF32I64, MsDeformAttnI64<float>);
POLYOP_CPU_KERNEL(MsDeformAttn, MsDeformAttnF16I64, MsDeformAttnI64<Half>);
POLYOP_CPU_KERNEL(MsDeformAttn, MsDeformAttnBF16I64, MsDeformAttnI64<BFloat16>);
POLYOP_CPU_KERNEL(MsDeformAttn, MsDeformAttnF32I32, MsDeformAttnI32<float>);
POLYOP_CPU_KERNEL(MsDeformAttn, MsDeformAttnF16I32, MsDeformAttnI32<Half>);
}  // namespace polyop
#endif
