// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/pack.h"
#include "ops/points/farthest_cuda.h"
#include "ops/points/furthest_point_sampling/furthest_point_sampling.h"

namespace polyop {
namespace {

// Coordinates are [clouds, 3, padded].
struct PointCloud {
  const float* xyz;
  int64_t padded;

  using Points = Pack<float, kFarthestPoints>;
  struct CenterPoint {
    const float* cloud;
    float x, y, z;
  };

  POLYOP_HD float Initial(int64_t c, int64_t i) const {
    const float* const p = xyz + 3 * c * padded + i;
    return std::isfinite(p[0]) && std::isfinite(p[padded]) && std::isfinite(p[2 * padded]) ? INFINITY : -INFINITY;
  }
  POLYOP_HD CenterPoint Center(int64_t c, int32_t last) const {
    const float* const cloud = xyz + 3 * c * padded;
    return {cloud, cloud[last], cloud[padded + last], cloud[2 * padded + last]};
  }
  POLYOP_HD void Distances(const CenterPoint& center, int32_t i, float* to) const {
    const float* const p = center.cloud + i;
    const Points xs = *reinterpret_cast<const Points*>(p), ys = *reinterpret_cast<const Points*>(p + padded),
                 zs = *reinterpret_cast<const Points*>(p + 2 * padded);
    for (int e = 0; e < kFarthestPoints; ++e) {
      const float x = xs.of[e] - center.x, y = ys.of[e] - center.y, z = zs.of[e] - center.z;
      to[e] = x * x + y * y + z * z;
    }
  }
};

template <class T>
Status FurthestPointSamplingCuda(const FurthestPointSampling&, const CudaContext& cuda, Tensor<const T, 3> xyz,
                                 Tensor<int32_t, 2> idx) {
  const int64_t clouds = xyz.dim(0), points = xyz.dim(1), padded = PaddedPoints(points);
  const T* const from = xyz.data();
  float* const coordinates = cuda.Allocate<float>(clouds * 3 * padded);
  const Divider by_padded(padded), by_axes(3);
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, clouds * 3 * padded, [=] POLYOP_DEVICE(int64_t at) {
    int64_t i, axis;
    const int64_t c = by_axes.Split(by_padded.Split(at, &i), &axis);
    coordinates[at] = i < points ? ToFloat(from[(c * points + i) * 3 + axis]) : 0;
  }));
  return SampleFarthest(cuda, clouds, points, idx.dim(1), PointCloud{coordinates, padded}, idx.data());
}

POLYOP_CUDA_KERNELS(FurthestPointSampling, FurthestPointSamplingCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
