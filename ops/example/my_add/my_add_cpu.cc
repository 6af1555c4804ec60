// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/example/my_add/my_add_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "core/broadcast.h"
#include "kernels/cpu/simd.h"
#include "ops/example/my_add/my_add.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Computes one run of the innermost dimension. A step of 0 repeats one element.
template <class T>
void AddRow(const T* a, int a_step, const T* b, int b_step, T* c, int64_t count) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto two = hn::Set(d, 2.0f);
  const auto a_repeated = hn::Set(d, ToFloat(*a)), b_repeated = hn::Set(d, ToFloat(*b));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto va = a_step ? LoadFloat(d, a + i) : a_repeated;
    const auto vb = b_step ? LoadFloat(d, b + i) : b_repeated;
    StoreFloat(hn::MulAdd(two, va, vb), d, c + i);
  }
  if (i == count) return;
  const size_t rest = static_cast<size_t>(count - i);
  const auto va = a_step ? LoadFloatN(d, a + i, rest) : a_repeated;
  const auto vb = b_step ? LoadFloatN(d, b + i, rest) : b_repeated;
  StoreFloatN(hn::MulAdd(two, va, vb), d, c + i, rest);
}

template <class T>
Status MyAddCpu(const MyAdd&, const Context& context, Tensor<const T, kAnyRank> a, Tensor<const T, kAnyRank> b,
                Tensor<T, kAnyRank> c) {
  const BroadcastAxes axes = BroadcastAxes::Merge(c.shape(), a.shape(), b.shape());
  // A long single row is divided into blocks, so that several threads compute it.
  constexpr int64_t kBlock = 16384;
  const int64_t inner = axes.extent[0], blocks = (inner + kBlock - 1) / kBlock;
  const int64_t grain = std::max<int64_t>(1, kBlock / std::min(inner, kBlock));
  context.ParallelFor(c.size() / inner * blocks, grain, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t row = item / blocks, offset = item % blocks * kBlock;
      int64_t a_at = 0, b_at = 0, rest = row;
      for (int axis = 1; axis < axes.rank; ++axis) {
        const int64_t at = rest % axes.extent[axis];
        a_at += at * axes.a_stride[axis];
        b_at += at * axes.b_stride[axis];
        rest /= axes.extent[axis];
      }
      const int a_step = axes.a_stride[0] != 0, b_step = axes.b_stride[0] != 0;
      AddRow(a.data() + a_at + offset * a_step, a_step, b.data() + b_at + offset * b_step, b_step,
             c.data() + row * inner + offset, std::min(kBlock, inner - offset));
    }
  });
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(MyAdd, MyAddCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
