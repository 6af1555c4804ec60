// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "kernels/cuda/cuda.h"
#include "ops/linalg/cdist/cdist.h"

namespace polyop {
namespace {

template <class T>
POLYOP_HD T DistanceOf(const T* a, const T* b, int64_t size, DistanceNorm norm) {
  using enum DistanceNorm::Kind;
  T sum = 0;
  for (int64_t d = 0; d < size; ++d) {
    const T x = std::fabs(a[d] - b[d]);
    if (norm.kind == kEuclidean) {
      sum += x * x;
    } else if (norm.kind == kSum) {
      sum += x;
    } else if (norm.kind == kMax) {
      sum = x > sum || x != x ? x : sum;
    } else if (norm.kind == kCount) {
      sum += x == 0 ? T{0} : x != x ? x : T{1};
    } else {
      sum += std::pow(x, static_cast<T>(norm.p));
    }
  }
  if (norm.kind == kEuclidean) return std::sqrt(sum);
  return norm.kind == kPower ? static_cast<T>(std::pow(sum, static_cast<T>(1 / norm.p))) : sum;
}

// Returns the first row of a condensed pair.
POLYOP_HD inline int64_t FirstRow(int64_t pair, int64_t rows) {
  const double corner = static_cast<double>(rows) - 0.5;
  auto row = static_cast<int64_t>(corner - std::sqrt(std::fmax(corner * corner - 2 * static_cast<double>(pair), 0.0)));
  while (row > 0 && CondensedIndex(row, row + 1, rows) > pair) --row;  // the root is rounded
  while (CondensedIndex(row + 1, row + 2, rows) <= pair) ++row;
  return row;
}

template <class T>
Status CdistCuda(const Cdist& op, const CudaContext& cuda, Tensor<const T, kAnyRank> a, Tensor<const T, kAnyRank> b,
                 Tensor<T, kAnyRank> distances) {
  const int rank = a.rank();
  const int64_t rows = a.dim(rank - 2), others = b.dim(rank - 2), size = a.dim(rank - 1);
  const int64_t per_batch = distances.dim(rank - 2) * distances.dim(rank - 1);
  const T *const first = a.data(), *const second = b.data();
  T* const to = distances.data();
  const DistanceNorm norm(op);
  const bool condensed = op.condensed != 0;
  return ForEach(cuda, distances.size(), [=] POLYOP_DEVICE(int64_t at) {
    const int64_t n = at / per_batch, pair = at - n * per_batch;
    const int64_t i = condensed ? FirstRow(pair, rows) : pair / others;
    const int64_t j = condensed ? pair - CondensedIndex(i, i + 1, rows) + i + 1 : pair - i * others;
    to[at] = DistanceOf(first + (n * rows + i) * size, second + (n * others + j) * size, size, norm);
  });
}

POLYOP_CUDA_KERNELS(Cdist, CdistCuda, float, double);

}  // namespace
}  // namespace polyop
