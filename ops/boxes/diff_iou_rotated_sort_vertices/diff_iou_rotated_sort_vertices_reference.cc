// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <vector>

#include "ops/boxes/diff_iou_rotated_sort_vertices/diff_iou_rotated_sort_vertices.h"

namespace polyop {
namespace {

// Returns the angle in [0, 2 pi).
double AngleOf(const double* v) {
  const double angle = std::atan2(v[1] + 0.0, v[0]);  // -0 is on the axis, too
  return angle < 0 ? angle + 2 * std::numbers::pi : angle;
}

// Returns true if a precedes b: compares angles, and the cross product if the angles are equal up to rounding.
bool HasSmallerAngle(const double* a, const double* b) {
  constexpr double kOnAxis[2] = {1, 0};
  if (a[0] == 0 && a[1] == 0) a = kOnAxis;
  if (b[0] == 0 && b[1] == 0) b = kOnAxis;
  if (std::fabs(AngleOf(a) - AngleOf(b)) > 1e-12) return AngleOf(a) < AngleOf(b);
  return a[0] * b[1] > b[0] * a[1];
}

Status SortVerticesReference(const DiffIouRotatedSortVertices&, const Context&, Tensor<const double, 4> vertices,
                             Tensor<const bool, 3> mask, Tensor<const int32_t, 2> num_valid, Tensor<int32_t, 3> idx) {
  for (int64_t i = 0; i < num_valid.size(); ++i) {
    const double* const v = vertices.data() + 48 * i;
    const bool* const is_valid = mask.data() + 24 * i;
    const auto known = [&](int32_t k) { return is_valid[k] && std::isfinite(v[2 * k]) && std::isfinite(v[2 * k + 1]); };
    std::vector<int32_t> order(24);
    std::iota(order.begin(), order.end(), 0);
    const auto unknown = std::stable_partition(order.begin(), order.end(), known);
    std::stable_sort(order.begin(), unknown,
                     [&](int32_t a, int32_t b) { return HasSmallerAngle(v + 2 * a, v + 2 * b); });
    const auto masked_out = std::find(is_valid + 8, is_valid + 24, false);
    std::vector<int32_t> row(9, masked_out == is_valid + 24 ? 8 : static_cast<int32_t>(masked_out - is_valid));
    const int64_t count = std::min(num_valid[i], 8);
    if (count >= 3) {
      std::copy_n(order.begin(), count, row.begin());
      row[static_cast<size_t>(count)] = order[0];
    }
    std::copy(row.begin(), row.end(), idx.data() + 9 * i);
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(DiffIouRotatedSortVertices, SortVerticesReference);

}  // namespace
}  // namespace polyop
