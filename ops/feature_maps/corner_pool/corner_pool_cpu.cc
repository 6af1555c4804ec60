// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/feature_maps/corner_pool/corner_pool_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/running_max-inl.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/stream-inl.h"
#include "ops/feature_maps/corner_pool/corner_pool.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Pools elements [from, to) of a row one at a time. Elements are counted in the direction of the scan.
template <bool kReverse, class T>
void PoolElements(const T* input, int64_t width, int64_t from, int64_t to, float best, T* output) {
  for (int64_t k = from; k < to; ++k) {
    const int64_t j = kReverse ? width - 1 - k : k;
    const float x = ToFloat(input[j]);
    best = Replaces<false>(x, best) ? x : best;
    output[j] = FromFloat<T>(best);
  }
}

template <bool kReverse, bool kStream, class T>
void PoolRows(const T* input, int64_t rows, int64_t width, T* output) {
  using D = hn::ScalableTag<float>;
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), whole = width / lanes * lanes;
  const PrefixMax<D, kReverse> prefix_max;
  if (kReverse) {  // start at the last row, so that memory is accessed in one direction
    input += (rows - 1) * width;
    output += (rows - 1) * width;
  }
  const int64_t step = kReverse ? -width : width, first = kReverse ? width - whole : 0;
  bool one_run = false;  // this row continues the run of the row before
  RunWriter<kStream, D, T, kReverse> run(output + first, whole);
  for (int64_t r = 0; r < rows; ++r, input += step, output += step) {
    auto best = hn::Set(d, -INFINITY);
    if (r > 0 && !one_run) run = RunWriter<kStream, D, T, kReverse>(output + first, whole);
    int64_t k = 0;  // elements done, counted in the direction of the scan
    for (; k < whole; k += lanes) {
      const auto x = LoadFloat(d, input + (kReverse ? width - k - lanes : k));
      if (HWY_UNLIKELY(!hn::AllFalse(d, hn::IsNaN(x)))) break;
      // No branch for vectors without a greater element: it would be mispredicted too often.
      best = hn::Max(prefix_max(x), best);
      run.Put(best);
      best = prefix_max.Last(best);
    }
    one_run = k == width && r + 1 < rows;
    if (!one_run) run.Finish();
    PoolElements<kReverse>(input, width, k, width, hn::GetLane(best), output);
  }
}

template <bool kReverse, bool kStream, class T>
void Pool(const Context& context, const Tensor<const T, 4>& input, const Tensor<T, 4>& output, bool vertical) {
  const int64_t height = input.dim(2), width = input.dim(3), planes = input.dim(0) * input.dim(1);
  if (!vertical) {
    context.ParallelFor(
        planes * height, GrainFor(static_cast<double>(width) * 0.3), [&](int64_t begin, int64_t end) HWY_ATTR {
          PoolRows<kReverse, kStream>(input.data() + begin * width, end - begin, width, output.data() + begin * width);
          if (kStream) hwy::FlushStream();
        });
    return;
  }
  const auto pool = [&](int64_t plane, int64_t column, int64_t columns) HWY_ATTR {
    const int64_t at = (plane * height + (kReverse ? height - 1 : 0)) * width + column;
    RunDownColumns<false, false, kStream>(input.data() + at, height, kReverse ? -width : width, columns,
                                          output.data() + at, static_cast<int64_t*>(nullptr));
  };
  ForColumnStrips(context, planes, width, kRunningPart, static_cast<double>(height) * 0.3, pool);
}

template <bool kReverse, class T>
void Pool(const Context& context, const Tensor<const T, 4>& input, const Tensor<T, 4>& output, bool vertical) {
  const bool stream =
      ShouldStream(input.dim(3) * static_cast<int64_t>(sizeof(T)), input.dim(0) * input.dim(1) * input.dim(2));
  stream ? Pool<kReverse, true>(context, input, output, vertical)
         : Pool<kReverse, false>(context, input, output, vertical);
}

template <class T>
Status CornerPoolCpu(const CornerPool& op, const Context& context, Tensor<const T, 4> input, Tensor<T, 4> output) {
  const bool vertical = op.mode == CornerPool::Mode::kTop || op.mode == CornerPool::Mode::kBottom;
  const bool reverse = op.mode == CornerPool::Mode::kTop || op.mode == CornerPool::Mode::kLeft;
  reverse ? Pool<true>(context, input, output, vertical) : Pool<false>(context, input, output, vertical);
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(CornerPool, CornerPoolCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
