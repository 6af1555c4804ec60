// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/block_reduce.h"
#include "ops/feature_maps/instance_norm/instance_norm.h"

namespace polyop {
namespace {

// One thread block per plane. The plane is read three times: for its mean, its variance and the result. Sums are in
// double, so that neither a large mean nor an outlier costs precision; the kernel is memory-bound nevertheless.
template <class T>
Status InstanceNormCuda(const InstanceNorm& op, const CudaContext& cuda, Tensor<const T, kAnyRank> input,
                        Tensor<const T, 1> scale, Tensor<const T, 1> shift, Tensor<T, kAnyRank> output) {
  const int64_t channels = input.dim(1), planes = input.dim(0) * channels, count = input.size() / planes;
  const T *from = input.data(), *factors = scale.data(), *terms = shift.data();
  T* const to = output.data();
  const double epsilon = op.epsilon;
  constexpr int kThreads = 512;
  return ForBlocks<kThreads>(cuda, planes, kThreads, kThreads * 8 + 32, [=] POLYOP_DEVICE(Block& block) {
    double* const sums = block.Shared<double>(kThreads);
    double* const mean = block.Shared<double>(1);
    const T* const plane = from + block.index * count;
    const auto add = [](double a, double b) { return a + b; };
    block.ForThreads([&](int t) {
      double sum = 0;
      for (int64_t i = t; i < count; i += kThreads) sum += ToFloat(plane[i]);
      sums[t] = sum;
    });
    ReduceBlock(block, sums, kThreads, add);
    block.ForThreads([&](int t) {
      if (t == 0) *mean = sums[0] / static_cast<double>(count);
    });
    block.ForThreads([&](int t) {
      double sum = 0;
      for (int64_t i = t; i < count; i += kThreads) {
        const double difference = ToFloat(plane[i]) - *mean;
        sum += difference * difference;
      }
      sums[t] = sum;
    });
    ReduceBlock(block, sums, kThreads, add);
    block.ForThreads([&](int t) {
      const int64_t c = block.index % channels;
      const double variance = sums[0] / static_cast<double>(count);
      const float factor = static_cast<float>(ToFloat(factors[c]) / std::sqrt(variance + epsilon));
      for (int64_t i = t; i < count; i += kThreads) {
        const float x = static_cast<float>(ToFloat(plane[i]) - *mean);
        to[block.index * count + i] = FromFloat<T>(std::fma(x, factor, ToFloat(terms[c])));
      }
    });
  });
}

POLYOP_CUDA_KERNELS(InstanceNorm, InstanceNormCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
