// SPDX-License-Identifier: Apache-2.0
// Sums of rows in float that are rounded once. Compiled once per instruction set; include it from a kernel file.
#if defined(POLYOP_KERNELS_CPU_FLOAT_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_KERNELS_CPU_FLOAT_SUMS_INL_H_
#undef POLYOP_KERNELS_CPU_FLOAT_SUMS_INL_H_
#else
#define POLYOP_KERNELS_CPU_FLOAT_SUMS_INL_H_
#endif

#include <algorithm>

#include "core/context.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/widen-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

/// Sums in float, in the output itself if that is float.
template <class T>
class FloatSums {
 public:
  /// Sets all sums to 0. `to` may be null: there are no sums.
  FloatSums(const Context& context, T* to, int64_t size)
      : to_(to), size_(to == nullptr ? 0 : size), memory_(context.Allocate<float>(kIsFloat ? 0 : size_)) {
    if (memory_ && to != nullptr) std::fill_n(data(), size_, 0.0f);
  }
  explicit operator bool() const { return static_cast<bool>(memory_); }

  bool exists() const { return to_ != nullptr; }
  float* data() const {
    if constexpr (kIsFloat) {
      return to_;
    } else {
      return memory_.data();
    }
  }
  /// Rounds the sums to the output.
  void Finish() const {
    if constexpr (!kIsFloat) NarrowRow(memory_.data(), size_, to_);
  }

 private:
  static constexpr bool kIsFloat = std::is_same_v<T, float>;
  T* to_;
  int64_t size_;
  Scratch<float> memory_;
};

/// Adds weight * row to `sum`, unless the weight is 0, and returns the scalar product of `row` and `features`. With
/// kWithDot = false, returns 0.
template <bool kWithSum, bool kWithDot, class T>
HWY_INLINE float AddRow(const T* row, const float* features, float weight, int64_t channels, float* sum) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto w = hn::Set(d, weight);
  auto dot = hn::Zero(d);
  int64_t c = 0;
  for (; c + lanes <= channels; c += lanes) {
    const auto g = LoadFloat(d, row + c);
    if constexpr (kWithSum) hn::StoreU(hn::MulAdd(w, g, hn::LoadU(d, sum + c)), d, sum + c);
    if constexpr (kWithDot) dot = hn::MulAdd(g, hn::LoadU(d, features + c), dot);
  }
  if (c < channels) {
    const size_t rest = static_cast<size_t>(channels - c);
    const auto g = LoadFloatN(d, row + c, rest);
    if constexpr (kWithSum) hn::StoreN(hn::MulAdd(w, g, hn::LoadN(d, sum + c, rest)), d, sum + c, rest);
    if constexpr (kWithDot) dot = hn::MulAdd(g, hn::LoadN(d, features + c, rest), dot);
  }
  return kWithDot ? hn::ReduceSum(d, dot) : 0.0f;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
