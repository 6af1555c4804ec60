// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/cpu/check_indices.h"
#include "ops/points/chamfer_distance/chamfer_distance_backward.h"
#include "ops/points/chamfer_distance/chamfer_distance_difference.h"

namespace polyop {
namespace {

// The points of one cloud, their neighbours in the other cloud and the gradients of the distances.
template <class T>
struct Cloud {
  const T* points;
  const int32_t* neighbours;
  const T* grads;
  int64_t count;
};

// A point receives the gradient of its own distance and of the distances of the points whose neighbour it is.
template <class T>
void CloudBackward(const Cloud<T>& own, const Cloud<T>& other, int64_t coordinates, float* sums, T* to) {
  const auto own_point = [&](int64_t i) { return own.points + i * coordinates; };
  const auto other_point = [&](int64_t i) { return other.points + i * coordinates; };
  std::fill_n(sums, own.count * coordinates, 0.0f);
  for (int64_t i = 0; i < own.count; ++i) {
    AddDifference(own_point(i), other_point(own.neighbours[i]), own.grads[i], coordinates, sums + i * coordinates);
  }
  for (int64_t j = 0; j < other.count; ++j) {
    const int64_t i = other.neighbours[j];
    AddDifference(own_point(i), other_point(j), other.grads[j], coordinates, sums + i * coordinates);
  }
  for (int64_t i = 0; i < own.count * coordinates; ++i) to[i] = FromFloat<T>(sums[i]);
}

template <class T>
Status ChamferDistanceBackwardCpu(const ChamferDistanceBackward&, const Context& context, Tensor<const T, 2> grad_dist1,
                                  Tensor<const T, 2> grad_dist2, Tensor<const T, 3> xyz1, Tensor<const T, 3> xyz2,
                                  Tensor<const int32_t, 2> idx1, Tensor<const int32_t, 2> idx2,
                                  std::optional<Tensor<T, 3>> grad_xyz1, std::optional<Tensor<T, 3>> grad_xyz2) {
  const int64_t batch = xyz1.dim(0), coordinates = xyz1.dim(2), count1 = xyz1.dim(1), count2 = xyz2.dim(1);
  POLYOP_RETURN_IF_ERROR(CheckIndices(context, "idx1", idx1.data(), idx1.size(), count2, "a point of 'xyz2'"));
  POLYOP_RETURN_IF_ERROR(CheckIndices(context, "idx2", idx2.data(), idx2.size(), count1, "a point of 'xyz1'"));
  const int64_t grain = GrainFor(10 * static_cast<double>(count1 + count2));
  const int64_t size = std::max(count1, count2) * coordinates;
  const auto add = [&](float* sums, int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t b = item / 2, first1 = b * count1, first2 = b * count2;
      const Cloud<T> one{xyz1.data() + first1 * coordinates, idx1.data() + first1, grad_dist1.data() + first1, count1};
      const Cloud<T> two{xyz2.data() + first2 * coordinates, idx2.data() + first2, grad_dist2.data() + first2, count2};
      if (item % 2 == 0 && grad_xyz1) {
        CloudBackward(one, two, coordinates, sums, grad_xyz1->data() + first1 * coordinates);
      }
      if (item % 2 == 1 && grad_xyz2) {
        CloudBackward(two, one, coordinates, sums, grad_xyz2->data() + first2 * coordinates);
      }
    }
  };
  if (context.ParallelForWithScratch<float>(2 * batch, grain, size, add)) return Status::Ok();
  return Internal("out of memory: gradients of ", size, " coordinates");
}
POLYOP_PLAIN_CPU_KERNELS(ChamferDistanceBackward, ChamferDistanceBackwardCpu, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
