// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "ops/special/random_distribution/random_distribution.h"
#include "ops/special/random_distribution/random_variates.h"

namespace polyop {
namespace {

// Rejections differ between elements, so that they are not computed in vectors.
template <class T>
Status RandomDistributionCpu(const RandomDistribution& op, const Context& context, Tensor<const int64_t, 1> seed,
                             Tensor<const T, kAnyRank> a, std::optional<Tensor<const T, kAnyRank>> b,
                             Tensor<T, kAnyRank> y) {
  const T *const first = a.data(), *const second = b ? b->data() : nullptr;
  T* const to = y.data();
  context.ParallelFor(y.size(), GrainFor(100), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      to[i] = Variate(op.distribution, seed.data(), i, first, second, double{std::numeric_limits<T>::min()});
    }
  });
  return Status::Ok();
}

POLYOP_PLAIN_CPU_KERNELS(RandomDistribution, RandomDistributionCpu, float, double);

}  // namespace
}  // namespace polyop
