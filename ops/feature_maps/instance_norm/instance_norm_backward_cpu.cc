// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <optional>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/feature_maps/instance_norm/instance_norm_backward_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/feature_maps/instance_norm/instance_norm_backward.h"

#ifndef POLYOP_OPS_INSTANCE_NORM_BACKWARD_ONCE_
#define POLYOP_OPS_INSTANCE_NORM_BACKWARD_ONCE_
namespace polyop {
namespace {

// The count and means of an input and a gradient, the sum of the input's squared distances from its mean, and the sum
// of the products of both distances, which is the sum of gradient times distance.
struct JointMoments {
  int64_t count = 0;
  double mean = 0, mean_grad = 0, squares = 0, products = 0;

  // T. Chan, G. Golub, R. LeVeque, Updating Formulae and a Pairwise Algorithm for Computing Sample Variances.
  void Merge(const JointMoments& other) {
    if (other.count == 0) return;
    const double total = static_cast<double>(count + other.count), share = static_cast<double>(other.count) / total;
    const double delta = other.mean - mean, delta_grad = other.mean_grad - mean_grad;
    squares += other.squares + delta * delta * static_cast<double>(count) * share;
    products += other.products + delta * delta_grad * static_cast<double>(count) * share;
    mean += delta * share;
    mean_grad += delta_grad * share;
    count += other.count;
  }
  double Reciprocal(double epsilon) const { return 1 / std::sqrt(squares / static_cast<double>(count) + epsilon); }
};

constexpr int64_t kJointBlock = 1024;              // elements whose sums are relative to the first one
constexpr int64_t kJointChunk = kJointBlock * 64;  // unit of parallelism in a large channel

}  // namespace
}  // namespace polyop
#endif  // POLYOP_OPS_INSTANCE_NORM_BACKWARD_ONCE_

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Sums of distances from the first elements, in double.
template <class D>
struct JointSums {
  hn::Vec<D> x, grad, squares, products;

  explicit JointSums(D d) : x(hn::Zero(d)), grad(x), squares(x), products(x) {}
  HWY_INLINE void Add(hn::Vec<D> dx, hn::Vec<D> dg) {
    x = hn::Add(x, dx);
    grad = hn::Add(grad, dg);
    squares = hn::MulAdd(dx, dx, squares);
    products = hn::MulAdd(dx, dg, products);
  }
};

template <class T>
JointMoments JointMomentsOfBlock(const T* x, const T* grad, int64_t count) {
  const hn::ScalableTag<float> df;
  const hn::Repartition<double, decltype(df)> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(df));
  const double first = ToFloat(x[0]), first_grad = ToFloat(grad[0]);
  const auto pivot = hn::Set(d, first), pivot_grad = hn::Set(d, first_grad);
  JointSums low(d), high(d);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto vx = LoadFloat(df, x + i), vg = LoadFloat(df, grad + i);
    low.Add(hn::Sub(hn::PromoteLowerTo(d, vx), pivot), hn::Sub(hn::PromoteLowerTo(d, vg), pivot_grad));
    high.Add(hn::Sub(hn::PromoteUpperTo(d, vx), pivot), hn::Sub(hn::PromoteUpperTo(d, vg), pivot_grad));
  }
  double sum = hn::ReduceSum(d, hn::Add(low.x, high.x)), sum_grad = hn::ReduceSum(d, hn::Add(low.grad, high.grad));
  double squares = hn::ReduceSum(d, hn::Add(low.squares, high.squares));
  double products = hn::ReduceSum(d, hn::Add(low.products, high.products));
  for (; i < count; ++i) {
    const double dx = static_cast<double>(ToFloat(x[i])) - first;
    const double dg = static_cast<double>(ToFloat(grad[i])) - first_grad;
    sum += dx;
    sum_grad += dg;
    squares += dx * dx;
    products += dx * dg;
  }
  const double n = static_cast<double>(count), about_mean = squares - sum * sum / n;
  return {count, first + sum / n, first_grad + sum_grad / n, about_mean < 0 ? 0 : about_mean,  // NaN is propagated
          products - sum * sum_grad / n};
}

template <class T>
JointMoments JointMomentsOf(const T* x, const T* grad, int64_t count) {
  JointMoments moments;
  for (int64_t i = 0; i < count; i += kJointBlock) {
    moments.Merge(JointMomentsOfBlock(x + i, grad + i, std::min(kJointBlock, count - i)));
  }
  return moments;
}

// Computes (grad - mean_grad) * of_grad + (x - mean) * of_x + shift, the gradient of an element. The parts of the means
// below fp32 precision are included in the shift.
struct GradientOfElement {
  float mean, mean_grad, of_grad, of_x, shift;

  GradientOfElement(const JointMoments& m, double epsilon, double scale) {
    const double reciprocal = m.Reciprocal(epsilon), factor = scale * reciprocal;
    const double slope = -factor * reciprocal * reciprocal * m.products / static_cast<double>(m.count);
    mean = static_cast<float>(m.mean);
    mean_grad = static_cast<float>(m.mean_grad);
    of_grad = static_cast<float>(factor);
    of_x = static_cast<float>(slope);
    shift = static_cast<float>((static_cast<double>(mean_grad) - m.mean_grad) * factor +
                               (static_cast<double>(mean) - m.mean) * slope);
  }
};

template <class T>
void ApplyGradient(const GradientOfElement& of, const T* x, const T* grad, int64_t count, T* to) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto mean = hn::Set(d, of.mean), mean_grad = hn::Set(d, of.mean_grad), shift = hn::Set(d, of.shift);
  const auto of_grad = hn::Set(d, of.of_grad), of_x = hn::Set(d, of.of_x);
  const auto gradient = [&](auto vx, auto vg) HWY_ATTR {
    return hn::MulAdd(hn::Sub(vg, mean_grad), of_grad, hn::MulAdd(hn::Sub(vx, mean), of_x, shift));
  };
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    StoreFloat(gradient(LoadFloat(d, x + i), LoadFloat(d, grad + i)), d, to + i);
  }
  if (i < count) {
    const auto left = static_cast<size_t>(count - i);
    StoreFloatN(gradient(LoadFloatN(d, x + i, left), LoadFloatN(d, grad + i, left)), d, to + i, left);
  }
}

template <class T>
Status InstanceNormBackwardCpu(const InstanceNormBackward& op, const Context& context,
                               Tensor<const T, kAnyRank> grad_output, Tensor<const T, kAnyRank> input,
                               Tensor<const T, 1> scale, std::optional<Tensor<T, kAnyRank>> grad_input,
                               std::optional<Tensor<T, 1>> grad_scale, std::optional<Tensor<T, 1>> grad_shift) {
  const int64_t channels = input.dim(1);
  if (input.size() == 0) {  // the number of planes may not fit
    if (grad_scale) std::fill_n(grad_scale->data(), channels, FromFloat<T>(0));
    if (grad_shift) std::fill_n(grad_shift->data(), channels, FromFloat<T>(0));
    return Status::Ok();
  }
  const int64_t planes = input.dim(0) * channels, count = input.size() / planes;
  const bool whole = count <= kJointChunk || planes >= 16;  // a task computes whole channels
  const int64_t chunks = whole ? 1 : (count + kJointChunk - 1) / kJointChunk, size = whole ? count : kJointChunk;
  const Scratch<JointMoments> moments = context.Allocate<JointMoments>(planes * chunks);
  if (!moments) return Internal("out of memory: moments of ", planes * chunks, " chunks");
  const auto apply = [&](int64_t plane, int64_t at) HWY_ATTR {
    const GradientOfElement gradient(moments[plane * chunks], op.epsilon, ToFloat(scale[plane % channels]));
    const int64_t first = plane * count + at;
    ApplyGradient(gradient, input.data() + first, grad_output.data() + first, std::min(size, count - at),
                  grad_input->data() + first);
  };
  const int64_t grain = whole ? std::max(planes / 16, GrainFor(static_cast<double>(count) * 0.8)) : 1;
  context.ParallelFor(planes * chunks, grain, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = i % chunks * size, first = i / chunks * count + at;
      moments[i] = JointMomentsOf(input.data() + first, grad_output.data() + first, std::min(size, count - at));
      if (whole && grad_input) apply(i, 0);
    }
  });
  for (int64_t p = 0; p < planes; ++p) {
    for (int64_t c = 1; c < chunks; ++c) moments[p * chunks].Merge(moments[p * chunks + c]);
  }
  if (!whole && grad_input) {
    context.ParallelFor(planes * chunks, 1, [&](int64_t begin, int64_t end) HWY_ATTR {
      for (int64_t i = begin; i < end; ++i) apply(i / chunks, i % chunks * size);
    });
  }
  for (int64_t c = 0; c < channels && (grad_scale || grad_shift); ++c) {
    double of_scale = 0, of_shift = 0;
    for (int64_t p = c; p < planes; p += channels) {
      const JointMoments& m = moments[p * chunks];
      of_scale += m.products * m.Reciprocal(op.epsilon);
      of_shift += m.mean_grad * static_cast<double>(m.count);
    }
    if (grad_scale) (*grad_scale)[c] = FromFloat<T>(static_cast<float>(of_scale));
    if (grad_shift) (*grad_shift)[c] = FromFloat<T>(static_cast<float>(of_shift));
  }
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(InstanceNormBackward, InstanceNormBackwardCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
