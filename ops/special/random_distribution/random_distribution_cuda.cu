// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "kernels/cuda/cuda.h"
#include "ops/special/random_distribution/random_distribution.h"
#include "ops/special/random_distribution/random_variates.h"

namespace polyop {
namespace {

template <class T>
Status RandomDistributionCuda(const RandomDistribution& op, const CudaContext& cuda, Tensor<const int64_t, 1> seed,
                              Tensor<const T, kAnyRank> a, std::optional<Tensor<const T, kAnyRank>> b,
                              Tensor<T, kAnyRank> y) {
  const int64_t* const key = seed.data();
  const T *const first = a.data(), *const second = b ? b->data() : nullptr;
  T* const to = y.data();
  const RandomDistribution::Distribution distribution = op.distribution;
  const double smallest = std::numeric_limits<T>::min();
  return ForEach(cuda, y.size(),
                 [=] POLYOP_DEVICE(int64_t i) { to[i] = Variate(distribution, key, i, first, second, smallest); });
}

POLYOP_CUDA_KERNELS(RandomDistribution, RandomDistributionCuda, float, double);

}  // namespace
}  // namespace polyop
