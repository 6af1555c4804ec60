// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/items_by_target.h"
#include "ops/points/chamfer_distance/chamfer_distance_backward.h"
#include "ops/points/chamfer_distance/chamfer_distance_difference.h"

namespace polyop {
namespace {

// Clouds of points, their neighbours in the other clouds and the gradients of the distances.
template <class T>
struct CloudsCuda {
  const T* points;
  const int32_t* neighbours;
  const T* grads;
  int64_t batch, count;
};

// A point receives the gradient of its own distance and of the distances of the points whose neighbour it is. Each
// thread has a point. A neighbour out of range is skipped.
template <class T>
Status CloudBackwardCuda(const CudaContext& cuda, const CloudsCuda<T>& own, const CloudsCuda<T>& other,
                         int64_t coordinates, T* to) {
  const Divider by_own(own.count), by_other(other.count);
  ItemsByTargetCuda groups;
  POLYOP_RETURN_IF_ERROR(ItemsByTargetCuda::Group(
      cuda, other.batch * other.count, own.batch * own.count,
      [=] POLYOP_DEVICE(int64_t j) {
        const int64_t near = other.neighbours[j];
        return near >= 0 && near < own.count ? by_other.Quotient(j) * own.count + near : int64_t{-1};
      },
      &groups));
  return ForEach(cuda, own.batch * own.count, [=] POLYOP_DEVICE(int64_t i) {
    const int64_t near = own.neighbours[i], first = by_own.Quotient(i) * other.count;
    const T* const point = own.points + i * coordinates;
    float sum[3] = {0, 0, 0};
    if (near >= 0 && near < other.count) {
      AddDifference(point, other.points + (first + near) * coordinates, own.grads[i], coordinates, sum);
    }
    for (int64_t k = groups.begins[i]; k < groups.begins[i + 1]; ++k) {
      const int64_t j = groups.items[k];
      AddDifference(point, other.points + j * coordinates, other.grads[j], coordinates, sum);
    }
    for (int64_t a = 0; a < coordinates; ++a) to[i * coordinates + a] = FromFloat<T>(sum[a]);
  });
}

template <class T>
Status ChamferDistanceBackwardCuda(const ChamferDistanceBackward&, const CudaContext& cuda,
                                   Tensor<const T, 2> grad_dist1, Tensor<const T, 2> grad_dist2,
                                   Tensor<const T, 3> xyz1, Tensor<const T, 3> xyz2, Tensor<const int32_t, 2> idx1,
                                   Tensor<const int32_t, 2> idx2, std::optional<Tensor<T, 3>> grad_xyz1,
                                   std::optional<Tensor<T, 3>> grad_xyz2) {
  const int64_t coordinates = xyz1.dim(2);
  const CloudsCuda<T> one{xyz1.data(), idx1.data(), grad_dist1.data(), xyz1.dim(0), xyz1.dim(1)};
  const CloudsCuda<T> two{xyz2.data(), idx2.data(), grad_dist2.data(), xyz2.dim(0), xyz2.dim(1)};
  if (grad_xyz1) POLYOP_RETURN_IF_ERROR(CloudBackwardCuda<T>(cuda, one, two, coordinates, grad_xyz1->data()));
  return grad_xyz2 ? CloudBackwardCuda<T>(cuda, two, one, coordinates, grad_xyz2->data()) : Status::Ok();
}

POLYOP_CUDA_KERNELS(ChamferDistanceBackward, ChamferDistanceBackwardCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
