// SPDX-License-Identifier: Apache-2.0
// The largest of several blocks of 16 channels and its index, channel by channel: for the gradients of maxima. Compiled
// once per instruction set; include it from a kernel file.
#if defined(POLYOP_KERNELS_CPU_LARGEST_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_KERNELS_CPU_LARGEST_BLOCK_INL_H_
#undef POLYOP_KERNELS_CPU_LARGEST_BLOCK_INL_H_
#else
#define POLYOP_KERNELS_CPU_LARGEST_BLOCK_INL_H_
#endif

#include "kernels/cpu/channel_blocks-inl.h"
#include "kernels/cpu/simd.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

struct LargestBlock {
  using IndexTag = hn::RebindToSigned<BlockTag>;

  BlockSum value;
  hn::Vec<IndexTag> at[kBlockVectors];

  /// Only candidates larger than `floor` are taken. The index of none is -1.
  explicit LargestBlock(float floor) {
    value.Fill(floor);
    for (auto& index : at) index = hn::Set(IndexTag(), -1);
  }
  /// Takes the first of equal candidates. Ignores NaN.
  HWY_INLINE void Take(const BlockSum& candidate, int32_t index) {
    for (int64_t i = 0; i < kBlockVectors; ++i) {
      const auto larger = hn::Gt(candidate.v[i], value.v[i]);
      value.v[i] = hn::IfThenElse(larger, candidate.v[i], value.v[i]);
      at[i] = hn::IfThenElse(hn::RebindMask(IndexTag(), larger), hn::Set(IndexTag(), index), at[i]);
    }
  }
  /// Sets `selected` to the channels of `grad` whose largest candidate is `index`, and the others to 0. Returns false
  /// if there are none.
  HWY_INLINE bool Select(int32_t index, const BlockSum& grad, BlockSum& selected) const {
    bool any = false;
    for (int64_t i = 0; i < kBlockVectors; ++i) {
      const auto here = hn::Eq(at[i], hn::Set(IndexTag(), index));
      any = any || !hn::AllFalse(IndexTag(), here);
      selected.v[i] = hn::IfThenElseZero(hn::RebindMask(BlockTag(), here), grad.v[i]);
    }
    return any;
  }
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
