// SPDX-License-Identifier: Apache-2.0
// Positions of samples that are offsets from reference points, with softmax weights. Compiled once per instruction set;
// include it from a kernel file.
#if defined(POLYOP_OPS_DEFORM_OFFSET_POSITIONS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_DEFORM_OFFSET_POSITIONS_INL_H_
#undef POLYOP_OPS_DEFORM_OFFSET_POSITIONS_INL_H_
#else
#define POLYOP_OPS_DEFORM_OFFSET_POSITIONS_INL_H_
#endif

#include "kernels/cpu/simd.h"
#include "kernels/cpu/softmax-inl.h"
#include "kernels/cpu/widen-inl.h"
#include "ops/deform/attn_taps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Sets positions and weights of the samples of a query and head. `group` is each sample's reference point; `reference`,
// `offsets` and `logits` are those of the query and head.
template <class T>
HWY_INLINE void SetPositionsByOffsets(const SampleLevels& levels, const int32_t* group, const T* reference,
                                      const T* offsets, const T* logits, const AttnPositions& positions) {
  const int64_t samples = levels.samples();
  WidenRow(logits, samples, positions.weight);
  Softmax(positions.weight, samples);
  for (int64_t s = 0; s < samples; ++s) {
    positions.x[s] = ToFloat(reference[2 * group[s]]);
    positions.y[s] = ToFloat(reference[2 * group[s] + 1]);
  }
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto half = hn::Set(d, 0.5f);
  // Converts reference points to pixels and adds the offsets.
  const auto move = [&](float* at, const int32_t* extent, auto offset) HWY_ATTR {
    const auto size = hn::ConvertTo(d, hn::LoadU(di, extent));
    hn::StoreU(hn::Sub(hn::MulAdd(hn::LoadU(d, at), size, offset), half), d, at);
  };
  ForEachPair(offsets, samples, [&](int64_t i, auto x, auto y) HWY_ATTR {
    move(positions.x + i, levels.widths() + i, x);
    move(positions.y + i, levels.heights() + i, y);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
