#include "families/neighbours/farthest_cuda.h"
#include "ops/furthest_point_sampling/furthest_point_sampling.h"

namespace polyop {
namespace {

template <class T>
struct PointCloud {
  const T* xyz;
  int64_t points;

  POLYOP_HD float Initial(int64_t cloud, int64_t i) const {
    const T* const p = xyz + 3 * (cloud * points + i);
    const bool finite = std::isfinite(ToFloat(p[0])) && std::isfinite(ToFloat(p[1])) && std::isfinite(ToFloat(p[2]));
    return finite ? INFINITY : -INFINITY;
  }
  POLYOP_HD float Distance(int64_t cloud, int64_t last, int64_t i) const {
    const T *const p = xyz + 3 * (cloud * points + i), *const q = xyz + 3 * (cloud * points + last);
    const float x = ToFloat(p[0]) - ToFloat(q[0]), y = ToFloat(p[1]) - ToFloat(q[1]), z = ToFloat(p[2]) - ToFloat(q[2]);
    return x * x + y * y + z * z;
  }
};

template <class T>
Status FurthestPointSamplingCuda(const FurthestPointSampling&, const CudaContext& cuda, Tensor<const T, 3> xyz,
                                 Tensor<int32_t, 2> idx) {
  const int64_t points = xyz.dim(1);
  return SampleFarthest(cuda, xyz.dim(0), points, idx.dim(1), PointCloud<T>{xyz.data(), points}, idx.data());
}

POLYOP_CUDA_KERNELS(FurthestPointSampling, FurthestPointSamplingCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
