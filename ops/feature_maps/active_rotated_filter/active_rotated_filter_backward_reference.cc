// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/feature_maps/active_rotated_filter/active_rotated_filter_backward.h"
#include "ops/feature_maps/active_rotated_filter/active_rotated_filter_values.h"

namespace polyop {
namespace {

template <class I>
Status ActiveRotatedFilterBackwardReference(const ActiveRotatedFilterBackward&, const Context&,
                                            Tensor<const double, 4> grad_output, Tensor<const double, 5> input,
                                            Tensor<const I, 4> indices, Tensor<double, 5> grad_input) {
  POLYOP_RETURN_IF_ERROR(CheckPositions(indices));
  const int64_t planes = input.dim(1), entries = input.dim(2) * input.dim(3) * input.dim(4), rotations = indices.dim(3);
  std::fill_n(grad_input.data(), grad_input.size(), 0.0);
  for (int64_t filter = 0; filter < input.dim(0) * planes; ++filter) {
    for (int64_t i = 0; i < indices.size(); ++i) {
      const int64_t entry = i / rotations, r = i % rotations, position = int64_t{indices[i]} - 1;
      bool last = true;  // a later entry at the same position replaces this one
      for (int64_t later = i + rotations; later < indices.size(); later += rotations) {
        last = last && indices[later] != indices[i];
      }
      const int64_t copy = (filter / planes * rotations + r) * planes + filter % planes;
      if (last) grad_input[filter * entries + entry] += grad_output[copy * entries + position];
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(ActiveRotatedFilterBackward, ActiveRotatedFilterBackwardReference, int32_t, int64_t);

}  // namespace
}  // namespace polyop
