// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "kernels/cuda/block_reduce.h"
#include "ops/feature_maps/instance_norm/instance_norm_backward.h"

namespace polyop {
namespace {

// The sums of a plane: of the squared distances from the mean, of the gradients, and of gradient times distance.
struct PlaneSums {
  double squares = 0, grads = 0, products = 0;

  POLYOP_HD PlaneSums operator+(const PlaneSums& other) const {
    return {squares + other.squares, grads + other.grads, products + other.products};
  }
};

// The gradients of a plane with respect to its scale and shift.
struct PlaneGrads {
  double scale = 0, shift = 0;

  POLYOP_HD PlaneGrads operator+(const PlaneGrads& other) const { return {scale + other.scale, shift + other.shift}; }
};

// One thread block per plane. The plane is read three times: for its mean, the sums, and the result. Sums are in
// double, as in the forward pass.
template <class T>
Status PlanesBackward(const InstanceNormBackward& op, const CudaContext& cuda, const T* grads, const T* from,
                      const T* factors, int64_t planes, int64_t channels, int64_t count, T* to, PlaneGrads* of_planes) {
  const double epsilon = op.epsilon, n = static_cast<double>(count);
  constexpr int kThreads = 512;
  constexpr int64_t kShared = kThreads * static_cast<int64_t>(sizeof(double) + sizeof(PlaneSums));
  return ForBlocks<kThreads>(cuda, planes, kThreads, kShared, [=] POLYOP_DEVICE(Block& block) {
    double* const means = block.Shared<double>(kThreads);
    PlaneSums* const sums = block.Shared<PlaneSums>(kThreads);
    const T *const plane = from + block.index * count, *const grad = grads + block.index * count;
    block.ForThreads([&](int t) {
      double sum = 0;
      for (int64_t i = t; i < count; i += kThreads) sum += ToFloat(plane[i]);
      means[t] = sum;
    });
    ReduceBlock(block, means, kThreads, [](double a, double b) { return a + b; });
    block.ForThreads([&](int t) {
      const double mean = means[0] / n;
      PlaneSums sum;
      for (int64_t i = t; i < count; i += kThreads) {
        const double distance = ToFloat(plane[i]) - mean, of = ToFloat(grad[i]);
        sum = sum + PlaneSums{distance * distance, of, of * distance};
      }
      sums[t] = sum;
    });
    ReduceBlock(block, sums, kThreads, [](const PlaneSums& a, const PlaneSums& b) { return a + b; });
    block.ForThreads([&](int t) {
      const double mean = means[0] / n, mean_grad = sums[0].grads / n;
      const double reciprocal = 1 / std::sqrt(sums[0].squares / n + epsilon);
      if (t == 0) of_planes[block.index] = {sums[0].products * reciprocal, sums[0].grads};
      if (to == nullptr) return;
      const double factor = ToFloat(factors[block.index % channels]) * reciprocal;
      const auto of_grad = static_cast<float>(factor);
      const auto of_x = static_cast<float>(-factor * reciprocal * reciprocal * sums[0].products / n);
      for (int64_t i = t; i < count; i += kThreads) {
        const auto distance = static_cast<float>(ToFloat(plane[i]) - mean);
        const auto from_mean = static_cast<float>(ToFloat(grad[i]) - mean_grad);
        to[block.index * count + i] = FromFloat<T>(std::fma(from_mean, of_grad, distance * of_x));
      }
    });
  });
}

template <class T>
Status InstanceNormBackwardCuda(const InstanceNormBackward& op, const CudaContext& cuda,
                                Tensor<const T, kAnyRank> grad_output, Tensor<const T, kAnyRank> input,
                                Tensor<const T, 1> scale, std::optional<Tensor<T, kAnyRank>> grad_input,
                                std::optional<Tensor<T, 1>> grad_scale, std::optional<Tensor<T, 1>> grad_shift) {
  const bool empty = input.size() == 0;  // then the number of planes may not fit
  const int64_t channels = input.dim(1), batch = empty ? 0 : input.dim(0), planes = batch * channels;
  PlaneGrads* const of_planes = cuda.Allocate<PlaneGrads>(planes);
  if (!empty) {
    POLYOP_RETURN_IF_ERROR(PlanesBackward(op, cuda, grad_output.data(), input.data(), scale.data(), planes, channels,
                                          input.size() / planes, grad_input ? grad_input->data() : nullptr, of_planes));
  }
  if (!grad_scale && !grad_shift) return cuda.Check();
  T* const to_scale = grad_scale ? grad_scale->data() : nullptr;
  T* const to_shift = grad_shift ? grad_shift->data() : nullptr;
  return ForEach(cuda, channels, [=] POLYOP_DEVICE(int64_t c) {
    PlaneGrads sum;
    for (int64_t n = 0; n < batch; ++n) sum = sum + of_planes[n * channels + c];
    if (to_scale != nullptr) to_scale[c] = FromFloat<T>(static_cast<float>(sum.scale));
    if (to_shift != nullptr) to_shift[c] = FromFloat<T>(static_cast<float>(sum.shift));
  });
}

POLYOP_CUDA_KERNELS(InstanceNormBackward, InstanceNormBackwardCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
