// SPDX-License-Identifier: Apache-2.0
#include "ops/points/farthest_cuda.h"
#include "ops/points/furthest_point_sampling_with_dist/furthest_point_sampling_with_dist.h"

namespace polyop {
namespace {

template <class T>
struct DistanceRows {
  const T* dist;
  int64_t points;

  POLYOP_HD float Initial(int64_t, int64_t) const { return INFINITY; }
  POLYOP_HD const T* Center(int64_t cloud, int32_t last) const { return dist + (cloud * points + last) * points; }
  POLYOP_HD void Distances(const T* row, int32_t i, float* to) const {
    for (int e = 0; e < kFarthestPoints; ++e) to[e] = i + e < points ? ToFloat(row[i + e]) : 0;
  }
};

template <class T>
Status FurthestPointSamplingWithDistCuda(const FurthestPointSamplingWithDist&, const CudaContext& cuda,
                                         Tensor<const T, 3> dist, Tensor<int32_t, 2> idx) {
  const int64_t points = dist.dim(1);
  return SampleFarthest(cuda, dist.dim(0), points, idx.dim(1), DistanceRows<T>{dist.data(), points}, idx.data());
}

POLYOP_CUDA_KERNELS(FurthestPointSamplingWithDist, FurthestPointSamplingWithDistCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
