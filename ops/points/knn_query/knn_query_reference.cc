// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "ops/points/knn_query/knn_query.h"
#include "ops/points/segments.h"

namespace polyop {
namespace {

// Rounds each product and sum separately; volatile prevents fused instructions.
double Squared(const float* a, const float* b) {
  volatile double sum = 0;
  for (int c = 0; c < 3; ++c) {
    const double d = static_cast<double>(a[c]) - static_cast<double>(b[c]);
    const volatile double square = d * d;
    sum = sum + square;
  }
  return sum;
}

template <class K, class I, class J>
Status KnnQueryReference(const KnnQuery&, const Context&, Tensor<const K, 0>, Tensor<const float, 2> xyz,
                         Tensor<const I, 1> offset, std::optional<Tensor<const float, 2>> new_xyz,
                         std::optional<Tensor<const J, 1>> new_offset, Tensor<int32_t, 2> idx, Tensor<float, 2> dist) {
  const Tensor<const float, 2>& queries = new_xyz ? *new_xyz : xyz;
  const int64_t samples = idx.dim(1);
  std::vector<int64_t> ends(static_cast<size_t>(offset.dim(0))), query_ends(ends);
  POLYOP_RETURN_IF_ERROR(ReadEnds("offset", offset, "n", xyz.dim(0), ends.data()));
  if (new_offset) {
    POLYOP_RETURN_IF_ERROR(ReadEnds("new_offset", *new_offset, "m", queries.dim(0), query_ends.data()));
  } else {
    query_ends = ends;
  }
  size_t segment = 0;
  for (int64_t q = 0; q < queries.dim(0); ++q) {
    while (q >= query_ends[segment]) ++segment;
    std::vector<std::pair<double, int64_t>> found;
    for (int64_t p = segment == 0 ? 0 : ends[segment - 1]; p < ends[segment]; ++p) {
      const double squared = Squared(queries.data() + q * 3, xyz.data() + p * 3);
      if (std::isfinite(squared)) found.emplace_back(squared, p);
    }
    std::sort(found.begin(), found.end());
    for (int64_t k = 0; k < samples; ++k) {
      const bool has = k < static_cast<int64_t>(found.size());
      idx[q * samples + k] = has ? static_cast<int32_t>(found[static_cast<size_t>(k)].second) : -1;
      dist[q * samples + k] = has ? static_cast<float>(std::sqrt(found[static_cast<size_t>(k)].first)) : 1e5f;
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(KnnQuery, KnnQueryReference, (int32_t, int32_t, int32_t), (int32_t, int32_t, int64_t),
                         (int32_t, int64_t, int32_t), (int32_t, int64_t, int64_t), (int64_t, int32_t, int32_t),
                         (int64_t, int32_t, int64_t), (int64_t, int64_t, int32_t), (int64_t, int64_t, int64_t));

}  // namespace
}  // namespace polyop
