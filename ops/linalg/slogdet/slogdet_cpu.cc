// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <numbers>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/linalg/slogdet/slogdet_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/contrib/math/math-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/linalg/blocked-inl.h"
#include "ops/linalg/lanes-inl.h"
#include "ops/linalg/slogdet/determinant.h"
#include "ops/linalg/slogdet/slogdet.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// The determinant of a matrix in each lane, if its pivots are neither 0 nor tiny.
template <class T, class Size>
class DeterminantLanes {
 public:
  // The number of doubles that Read's `memory` must have space for.
  static int64_t Doubles(int64_t size) { return LaneMatrices::Doubles(size, size) + 2 * RealLanes(); }

  HWY_INLINE void Read(const MatricesWithDeterminants<T>& matrices, int64_t first, int64_t count, double* memory) {
    const int64_t size = SizeOr<Size>(matrices.size), area = size * size;
    a_ = {memory, size, size};
    results_ = a_.At(size, 0);
    signs_ = matrices.signs + first;
    logarithms_ = matrices.logarithms + first;
    const T* const from = matrices.from + first * area;
    fetch_ = PrefetchInSteps<T>(area, from + count * area, std::min(count, matrices.count - first - count));
    a_.Read(from, count);
    regular_ = a_.Moderate();
    product_ = RealsOf(1);
    exponents_ = hn::Zero(Bits());
  }

  HWY_INLINE int64_t Steps() const { return a_.rows; }

  // Multiplies the mantissa of a pivot, and adds its exponent.
  HWY_INLINE void Step(int64_t k) {
    fetch_(k, Steps());
    regular_ = hn::And(regular_, FactorLuStepInLanes(a_, k, results_));
    const auto in_place = hn::Eq(LoadReals(results_), RealsOf(static_cast<double>(k)));
    const auto exponent_bits = hn::Set(Bits(), int64_t{0x7ff} << 52), of_one = hn::Set(Bits(), int64_t{0x3ff} << 52);
    const auto pivot = hn::BitCast(Bits(), a_.Get(k, k)), exponent = hn::And(pivot, exponent_bits);
    const auto mantissa = hn::BitCast(RealTag(), hn::Or(hn::AndNot(exponent_bits, pivot), of_one));
    product_ = hn::Mul(product_, hn::IfThenElse(in_place, mantissa, hn::Neg(mantissa)));
    exponents_ = hn::Add(exponents_, hn::ShiftRight<52>(hn::Sub(exponent, of_one)));
  }

  // Returns the lanes with results.
  HWY_INLINE RealMask Write(int64_t count) const {
    const LaneMatrices sign{results_, 1, 1}, logarithm{results_ + RealLanes(), 1, 1};
    sign.Set(0, 0, hn::CopySign(RealsOf(1), product_));
    logarithm.Set(0, 0,
                  hn::MulAdd(hn::ConvertTo(RealTag(), exponents_), RealsOf(std::numbers::ln2),
                             hn::Log(RealTag(), hn::Abs(product_))));
    sign.Write(count, signs_);
    logarithm.Write(count, logarithms_);
    return regular_;
  }

 private:
  using Bits = hn::RebindToSigned<RealTag>;

  LaneMatrices a_;
  double* results_;
  T *signs_, *logarithms_;
  PrefetchInSteps<T> fetch_;
  RealMask regular_;
  Reals product_;
  hn::Vec<Bits> exponents_;
};

template <class T>
bool InLanes(const Context& context, const MatricesWithDeterminants<T>& matrices) {
  const int64_t size = matrices.size;
  return WithConstantSize(size, [&]<class Size>(Size) {
    using Group = DeterminantLanes<T, Size>;
    return ForLaneGroups<kInterleavedGroups<Size>>(
        context, matrices.count, (matrices.Operations() + 50) / 2, std::max(Group::Doubles(size), size * size),
        [&](int64_t first, int64_t count, double* memory, double* done)
            HWY_ATTR { ComputeInterleaved<Group, Size>(matrices, first, count, memory, done); },
        [&](int64_t n, double* memory) {
          std::array<int32_t, kMaxSizeInLanes> pivots{};
          matrices.Compute(n, memory, pivots.data());
        });
  });
}

template <class T>
bool ByBlocks(const Context& context, const MatricesWithDeterminants<T>& matrices) {
  const int64_t size = matrices.size, area = size * size;
  const int64_t memory = blocked::Products::Doubles(size);
  return blocked::ForLargeMatrices(context, matrices.count, area + memory + size,
                                   [&](int64_t n, double* work, const Context* threads) {
                                     auto* const own = reinterpret_cast<int32_t*>(work + area + memory);
                                     blocked::ToDoubles(matrices.from + n * area, area, work);
                                     if (!AllFinite(work, area)) return matrices.Compute(n, work, own);
                                     const blocked::Products products(threads, work + area);
                                     blocked::FactorLu(products, work, size, size, size, own);
                                     matrices.Write(n, work, size, own);
                                   });
}

template <class T>
bool OneByOne(const Context& context, const MatricesWithDeterminants<T>& matrices) {
  const int64_t size = matrices.size, grain = GrainFor(matrices.Operations() + 50);
  return context.ParallelForWithScratch<double>(matrices.count, grain, size * (size + 1),
                                                [&](double* work, int64_t begin, int64_t end) {
                                                  auto* const pivots = reinterpret_cast<int32_t*>(work + size * size);
                                                  for (int64_t n = begin; n < end; ++n)
                                                    matrices.Compute(n, work, pivots);
                                                });
}

template <class T>
Status SlogdetCpu(const Slogdet&, const Context& context, Tensor<const T, kAnyRank> a, Tensor<T, kAnyRank> sign,
                  Tensor<T, kAnyRank> logabsdet) {
  const MatricesWithDeterminants<T> matrices(a, sign, logabsdet);
  const int64_t size = matrices.size;
  const bool in_lanes = size > 0 && size <= kMaxSizeInLanes;
  const bool enough_memory = in_lanes                    ? InLanes(context, matrices)
                             : size >= blocked::kMinSize ? ByBlocks(context, matrices)
                                                         : OneByOne(context, matrices);
  return enough_memory ? Status::Ok() : Internal("out of memory: matrices of ", size, " rows");
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(Slogdet, SlogdetCpu, float, double);
}  // namespace polyop
#endif
