#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/scaled_rows/scaled_rows_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/scaled_rows/scaled_rows.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class T>
Status ScaledRowsCpu(const ScaledRows& op, const Context& context, Tensor<const T, 2> x, Tensor<const T, 1> weight,
                     Tensor<T, 2> y, Tensor<int64_t, 1> row) {
  const hn::ScalableTag<float> d;
  const int64_t columns = x.dim(1), lanes = static_cast<int64_t>(hn::Lanes(d));
  context.ParallelFor(x.dim(0), GrainFor(0.1 * static_cast<double>(columns)), [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t n = begin; n < end; ++n) {
      const auto w = hn::Set(d, ToFloat(weight[n])), shift = hn::Set(d, op.shift);
      const T* from = x.data() + n * columns;
      T* to = y.data() + n * columns;
      for (int64_t c = 0; c < columns; c += lanes) {
        const size_t count = static_cast<size_t>(std::min(lanes, columns - c));
        StoreFloatN(hn::MulAdd(LoadFloatN(d, from + c, count), w, shift), d, to + c, count);
      }
      row[n] = n;
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
POLYOP_CPU_KERNELS(ScaledRows, ScaledRowsCpu, float, Half);
}  // namespace polyop
#endif
