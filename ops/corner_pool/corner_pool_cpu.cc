#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/corner_pool/corner_pool_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "kernels/cpu/stream-inl.h"
#include "ops/corner_pool/corner_pool.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kStrip = 1024;  // columns walked together: their maxima stay in the L1 cache

template <class D, class T>
HWY_INLINE void StoreRow(hn::Vec<D> v, D d, bool stream, T* p) {
  if constexpr (std::is_same_v<T, float>) {
    stream ? StoreOrStream<true>(v, d, p) : StoreOrStream<false>(v, d, p);
  } else {
    StoreFloat(v, d, p);
  }
}

// The greater one; NaN is the greatest.
HWY_INLINE float Greater(float x, float best) { return x >= best || x != x ? x : best; }

// Columns of one plane; a negative `step` walks up from the last row, where `input` and `output` point to.
template <class T>
void PoolColumns(const T* input, int64_t height, int64_t step, int64_t width, bool stream, T* output) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), whole = width / lanes * lanes;
  HWY_ALIGN float best[kStrip];
  for (int64_t j = 0; j < width; ++j) best[j] = ToFloat(input[j]);
  for (int64_t k = 0; k < height; ++k, input += step, output += step) {
    for (int64_t j = 0; j < whole; j += lanes) {
      const auto x = LoadFloat(d, input + j), b = hn::Load(d, best + j);
      const auto greater = hn::IfThenElse(hn::Or(hn::Ge(x, b), hn::IsNaN(x)), x, b);
      hn::Store(greater, d, best + j);
      StoreRow(greater, d, stream, output + j);
    }
    for (int64_t j = whole; j < width; ++j) {
      best[j] = Greater(ToFloat(input[j]), best[j]);
      output[j] = FromFloat<T>(best[j]);
    }
  }
}

// A row, an element at a time, from the element number `from` (counted from where the walk begins) to `to`.
template <bool kReverse, class T>
void PoolElements(const T* input, int64_t width, int64_t from, int64_t to, float best, T* output) {
  for (int64_t k = from; k < to; ++k) {
    const int64_t j = kReverse ? width - 1 - k : k;
    best = Greater(ToFloat(input[j]), best);
    output[j] = FromFloat<T>(best);
  }
}

// Maxima of a vector's lanes up to each lane, in log2(lanes) steps; reversed, from each lane on.
template <bool kReverse, class D>
struct PrefixMax {
  static constexpr size_t kSteps = hwy::CeilLog2(hn::MaxLanes(D()));
  using DI = hn::RebindToSigned<D>;
  decltype(hn::IndicesFromVec(D(), hn::Zero(DI()))) table[kSteps], last;

  HWY_INLINE PrefixMax() {
    const D d;
    const DI di;
    const auto lane = hn::Iota(di, 0), end = hn::Set(di, static_cast<int32_t>(hn::Lanes(di) - 1));
    for (size_t s = 0; s < kSteps; ++s) {
      const auto shift = hn::Set(di, 1 << s);
      const auto other = kReverse ? hn::Add(lane, shift) : hn::Sub(lane, shift);
      const auto outside = kReverse ? hn::Gt(other, end) : hn::Lt(other, hn::Zero(di));
      table[s] = hn::IndicesFromVec(d, hn::IfThenElse(outside, lane, other));
    }
    last = hn::IndicesFromVec(d, kReverse ? hn::Zero(di) : end);
  }
  HWY_INLINE hn::Vec<D> operator()(hn::Vec<D> v) const {
    for (size_t s = 0; s < kSteps; ++s) v = hn::Max(v, hn::TableLookupLanes(v, table[s]));
    return v;
  }
  HWY_INLINE hn::Vec<D> Last(hn::Vec<D> v) const { return hn::TableLookupLanes(v, last); }
};

template <bool kReverse, class T>
void PoolRows(const T* input, int64_t rows, int64_t width, bool stream, T* output) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const PrefixMax<kReverse, decltype(d)> prefix_max;
  if (kReverse) {  // the last row first: memory is then walked in one direction
    input += (rows - 1) * width;
    output += (rows - 1) * width;
  }
  const int64_t step = kReverse ? -width : width;
  for (int64_t r = 0; r < rows; ++r, input += step, output += step) {
    auto best = hn::Set(d, -INFINITY);
    int64_t k = 0;  // elements done, counted from where the walk begins
    for (; k + lanes <= width; k += lanes) {
      const int64_t j = kReverse ? width - k - lanes : k;
      const auto x = LoadFloat(d, input + j);
      if (HWY_UNLIKELY(!hn::AllFalse(d, hn::IsNaN(x)))) break;
      // Without a branch for vectors that hold nothing greater: it would be mispredicted too often.
      best = hn::Max(prefix_max(x), best);
      StoreRow(best, d, stream, output + j);
      best = prefix_max.Last(best);
    }
    PoolElements<kReverse>(input, width, k, width, hn::GetLane(best), output);
  }
}

template <bool kReverse, class T>
void Pool(const Context& context, const Tensor<const T, 4>& input, const Tensor<T, 4>& output, bool vertical) {
  const int64_t height = input.dim(2), width = input.dim(3), planes = input.dim(0) * input.dim(1);
  const bool stream = ShouldStream(output.data(), width * static_cast<int64_t>(sizeof(T)), planes * height);
  if (!vertical) {
    context.ParallelFor(
        planes * height, GrainFor(static_cast<double>(width) * 0.3), [&](int64_t begin, int64_t end) HWY_ATTR {
          PoolRows<kReverse>(input.data() + begin * width, end - begin, width, stream, output.data() + begin * width);
          if (stream) hwy::FlushStream();
        });
    return;
  }
  // Strips of whole cache lines, narrower where there are few: threads share them.
  const int64_t strip = std::min(kStrip, std::max<int64_t>(64, (planes * width / 16 + 63) / 64 * 64));
  const int64_t strips = (width + strip - 1) / strip;
  const double nanoseconds = static_cast<double>(height * std::min(strip, width)) * 0.3;
  context.ParallelFor(planes * strips, GrainFor(nanoseconds), [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t column = item % strips * strip, first = kReverse ? height - 1 : 0;
      const int64_t at = (item / strips * height + first) * width + column;
      PoolColumns(input.data() + at, height, kReverse ? -width : width, std::min(strip, width - column), stream,
                  output.data() + at);
    }
    if (stream) hwy::FlushStream();
  });
}

template <class T>
Status CornerPoolCpu(const CornerPool& op, const Context& context, Tensor<const T, 4> input, Tensor<T, 4> output) {
  if (output.size() == 0) return Status::Ok();
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
POLYOP_CPU_KERNEL(CornerPool, CornerPoolF32, CornerPoolCpu<float>);
POLYOP_CPU_KERNEL(CornerPool, CornerPoolF16, CornerPoolCpu<Half>);
POLYOP_CPU_KERNEL(CornerPool, CornerPoolBF16, CornerPoolCpu<BFloat16>);
}  // namespace polyop
#endif
