#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/special_unary/special_unary_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/special/lanes-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/special_unary/call_unary.h"
#include "ops/special_unary/special_unary.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

using special::SpecialLanes;

POLYOP_DEFINE_CALL_UNARY(HWY_NOINLINE, CallUnaryInLanes)

template <int kCode, class T>
void ComputeElements(const T* from, int64_t begin, int64_t end, T* to) {
  const int64_t lanes = SpecialLanes::Count();
  for (int64_t i = begin; i < end; i += lanes) {
    HWY_ALIGN double buffer[SpecialLanes::kMaxCount];
    const int64_t count = std::min(lanes, end - i);
    if (count == lanes) {  // these loops are vectorized
      for (int64_t k = 0; k < lanes; ++k) buffer[k] = static_cast<double>(from[i + k]);
      CallUnaryInLanes<kCode>(SpecialLanes::Load(buffer)).Store(buffer);
      for (int64_t k = 0; k < lanes; ++k) to[i + k] = static_cast<T>(buffer[k]);
      continue;
    }
    for (int64_t k = 0; k < lanes; ++k) buffer[k] = static_cast<double>(from[i + std::min(k, count - 1)]);
    CallUnaryInLanes<kCode>(SpecialLanes::Load(buffer)).Store(buffer);
    for (int64_t k = 0; k < count; ++k) to[i + k] = static_cast<T>(buffer[k]);
  }
}

template <class T>
Status SpecialUnaryCpu(const SpecialUnary& op, const Context& context, Tensor<const T, kAnyRank> x,
                       Tensor<T, kAnyRank> y) {
  // Tasks begin at whole vectors, so that the lanes that share a decision do not depend on the number of threads.
  constexpr int64_t kBlock = 64;
  const T* const from = x.data();
  T* const to = y.data();
  const int64_t count = x.size();
  context.ParallelFor((count + kBlock - 1) / kBlock, GrainFor(40.0 * kBlock),
                      [&](int64_t first, int64_t last) HWY_ATTR {
                        const int64_t begin = first * kBlock, end = std::min(last * kBlock, count);
                        WithUnaryFunction(op.Code(), [&](auto function) HWY_ATTR {
                          ComputeElements<decltype(function)::kCode>(from, begin, end, to);
                        });
                      });
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(SpecialUnary, SpecialUnaryCpu, float, double);
}  // namespace polyop
#endif
