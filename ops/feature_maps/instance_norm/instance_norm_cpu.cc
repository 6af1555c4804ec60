// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/feature_maps/instance_norm/instance_norm_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "kernels/cpu/stream-inl.h"
#include "ops/feature_maps/instance_norm/instance_norm.h"

#ifndef POLYOP_OPS_INSTANCE_NORM_ONCE_
#define POLYOP_OPS_INSTANCE_NORM_ONCE_
namespace polyop {
namespace {

// The count, mean and sum of squared distances from the mean.
struct Moments {
  int64_t count = 0;
  double mean = 0, squares = 0;

  // T. Chan, G. Golub, R. LeVeque, Updating Formulae and a Pairwise Algorithm for Computing Sample Variances.
  void Merge(const Moments& other) {
    if (other.count == 0) return;
    const double total = static_cast<double>(count + other.count), share = static_cast<double>(other.count) / total;
    const double delta = other.mean - mean;
    squares += other.squares + delta * delta * static_cast<double>(count) * share;
    mean += delta * share;
    count += other.count;
  }
};

constexpr int64_t kBlock = 1024;         // elements whose sums are relative to the first one
constexpr int64_t kChunk = kBlock * 64;  // unit of parallelism in a large channel

}  // namespace
}  // namespace polyop
#endif  // POLYOP_OPS_INSTANCE_NORM_ONCE_

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Loads the next elements as two vectors of the type of the sums.
template <class DF, class T>
HWY_INLINE void LoadPair(DF df, hn::Repartition<double, DF> d, const T* x, hn::Vec<hn::Repartition<double, DF>>& low,
                         hn::Vec<hn::Repartition<double, DF>>& high) {
  const auto v = LoadFloat(df, x);
  low = hn::PromoteLowerTo(d, v);
  high = hn::PromoteUpperTo(d, v);
}
template <class DF, class T>
HWY_INLINE void LoadPair(DF df, DF, const T* x, hn::Vec<DF>& low, hn::Vec<DF>& high) {
  low = LoadFloat(df, x);
  high = LoadFloat(df, x + hn::Lanes(df));
}

// Sums distances from the block's first element. Its distance from the mean is at most sqrt(count) standard deviations,
// so the difference of sums below loses at most log2(count) of the 53 bits of double, or of the 24 bits of float for
// results of 11 bits.
template <class Sum, class T>
Moments SumUpBlock(const T* x, int64_t count) {
  const hn::ScalableTag<float> df;
  const hn::Repartition<Sum, decltype(df)> d;
  const int64_t pair = 2 * static_cast<int64_t>(hn::Lanes(d));
  // Prefetches explicitly, because the conversions keep the processor from running far enough ahead.
  constexpr int64_t kAhead = 4096 / sizeof(T);
  const Sum first = ToFloat(x[0]);
  const auto pivot = hn::Set(d, first);
  auto sum0 = hn::Zero(d), sum1 = hn::Zero(d), squares0 = hn::Zero(d), squares1 = hn::Zero(d);
  int64_t i = 0;
  for (; i + pair <= count; i += pair) {
    hwy::Prefetch(x + i + kAhead);
    hn::Vec<decltype(d)> low, high;
    LoadPair(df, d, x + i, low, high);
    low = hn::Sub(low, pivot);
    high = hn::Sub(high, pivot);
    sum0 = hn::Add(sum0, low);
    sum1 = hn::Add(sum1, high);
    squares0 = hn::MulAdd(low, low, squares0);
    squares1 = hn::MulAdd(high, high, squares1);
  }
  double sum = hn::ReduceSum(d, hn::Add(sum0, sum1)), squares = hn::ReduceSum(d, hn::Add(squares0, squares1));
  for (; i < count; ++i) {
    const double distance = static_cast<double>(ToFloat(x[i])) - static_cast<double>(first);
    sum += distance;
    squares += distance * distance;
  }
  const double n = static_cast<double>(count);
  const double about_mean = squares - sum * sum / n;
  return {count, first + sum / n, about_mean < 0 ? 0 : about_mean};  // NaN is propagated
}

Moments MomentsOfBlock(const float* x, int64_t count) { return SumUpBlock<double>(x, count); }
Moments MomentsOfBlock(const Half* x, int64_t count) { return SumUpBlock<float>(x, count); }
// bfloat16 has the range of float: very large and very small squares are summed again in double.
Moments MomentsOfBlock(const BFloat16* x, int64_t count) {
  const Moments moments = SumUpBlock<float>(x, count);
  return moments.squares > 1e-25 && moments.squares < 1e30 ? moments : SumUpBlock<double>(x, count);
}

template <class T>
Moments MomentsOf(const T* x, int64_t count) {
  Moments moments;
  for (int64_t i = 0; i < count; i += kBlock) moments.Merge(MomentsOfBlock(x + i, std::min(kBlock, count - i)));
  return moments;
}

// Computes (x - mean) * factor + shift. The part of the mean below fp32 precision is included in the shift.
struct Affine {
  float mean, factor, shift;

  Affine(const Moments& moments, double epsilon, double scale, double bias) {
    const double exact = scale / std::sqrt(moments.squares / static_cast<double>(moments.count) + epsilon);
    mean = static_cast<float>(moments.mean);
    factor = static_cast<float>(exact);
    shift = static_cast<float>(bias - (moments.mean - static_cast<double>(mean)) * exact);
  }
};

template <class T>
void Apply(const Affine& affine, const T* x, int64_t count, bool stream, T* y) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto mean = hn::Set(d, affine.mean), factor = hn::Set(d, affine.factor), shift = hn::Set(d, affine.shift);
  const auto normalized = [&](auto v) HWY_ATTR { return hn::MulAdd(hn::Sub(v, mean), factor, shift); };
  const auto part = [&](int64_t begin, int64_t end) HWY_ATTR {  // for parts smaller than a cache line
    for (; begin < end; begin += lanes) {
      const size_t lanes_left = static_cast<size_t>(std::min(lanes, end - begin));
      StoreFloatN(normalized(LoadFloatN(d, x + begin, lanes_left)), d, y + begin, lanes_left);
    }
  };
  int64_t i = 0;
  if constexpr (std::is_same_v<T, float>) {
    if (stream) {
      constexpr int64_t kLine = kCacheLine / static_cast<int64_t>(sizeof(T));
      i = std::min(count, ElementsBeforeLine(y));
      part(0, i);
      for (; i + kLine <= count; i += kLine) {
        for (int64_t k = i; k < i + kLine; k += lanes) hn::Stream(normalized(LoadFloat(d, x + k)), d, y + k);
      }
    }
  }
  for (; i + lanes <= count; i += lanes) StoreFloat(normalized(LoadFloat(d, x + i)), d, y + i);
  part(i, count);
}

// Normalizes channels `begin` to `end_channel`. Writing a channel is interleaved, block by block, with computing the
// moments of the next one, so that memory reads and writes overlap.
template <class T, class MakeAffine>
void Normalise(const T* input, int64_t begin, int64_t end_channel, int64_t count, const MakeAffine& make_affine,
               bool stream, T* output) {
  Moments moments = MomentsOf(input + begin * count, count);
  for (int64_t p = begin; p < end_channel; ++p) {
    const Affine affine = make_affine(moments, p);
    moments = {};
    // Blocks of the output end at cache line boundaries.
    const int64_t first = p * count, stop = first + count, shift = stream ? ElementsBeforeLine(output + first) : 0;
    if (shift != 0) PrefetchForWrite(output + stop);
    for (int64_t i = first, done = first; i < stop; i += kBlock) {
      const int64_t size = std::min(kBlock, stop - i), end = i + size == stop ? stop : std::min(stop, i + size + shift);
      Apply(affine, input + done, end - done, stream, output + done);
      done = end;
      if (p + 1 < end_channel) moments.Merge(MomentsOfBlock(input + i + count, size));
    }
  }
  if (stream) hwy::FlushStream();
}

template <class T>
Status InstanceNormCpu(const InstanceNorm& op, const Context& context, Tensor<const T, kAnyRank> input,
                       Tensor<const T, 1> scale, Tensor<const T, 1> shift, Tensor<T, kAnyRank> output) {
  const int64_t channels = input.dim(1), planes = input.dim(0) * channels, count = input.size() / planes;
  const bool stream = std::is_same_v<T, float> && ShouldStream(count * static_cast<int64_t>(sizeof(T)), planes);
  const auto affine = [&](const Moments& moments, int64_t plane) {
    const int64_t c = plane % channels;
    return Affine(moments, op.epsilon, ToFloat(scale[c]), ToFloat(shift[c]));
  };
  if (count <= kChunk || planes >= 16) {
    const int64_t grain = std::max(planes / 16, GrainFor(static_cast<double>(count) * 0.4));
    context.ParallelFor(planes, grain, [&](int64_t begin, int64_t end) HWY_ATTR {
      Normalise(input.data(), begin, end, count, affine, stream, output.data());
    });
    return Status::Ok();
  }
  const int64_t chunks = (count + kChunk - 1) / kChunk;
  const Scratch<Moments> moments = context.Allocate<Moments>(planes * chunks);
  if (!moments) return Internal("out of memory: moments of ", planes * chunks, " chunks");
  context.ParallelFor(planes * chunks, 1, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = i % chunks * kChunk;
      moments[i] = MomentsOf(input.data() + i / chunks * count + at, std::min(kChunk, count - at));
    }
  });
  for (int64_t p = 0; p < planes; ++p) {
    for (int64_t c = 1; c < chunks; ++c) moments[p * chunks].Merge(moments[p * chunks + c]);
  }
  context.ParallelFor(planes * chunks, 1, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t p = i / chunks, at = i % chunks * kChunk;
      Apply(affine(moments[p * chunks], p), input.data() + p * count + at, std::min(kChunk, count - at), stream,
            output.data() + p * count + at);
    }
    if (stream) hwy::FlushStream();
  });
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(InstanceNorm, InstanceNormCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
