// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/feature_maps/active_rotated_filter/active_rotated_filter.h"
#include "ops/feature_maps/active_rotated_filter/active_rotated_filter_values.h"

namespace polyop {
namespace {

template <class I>
Status ActiveRotatedFilterReference(const ActiveRotatedFilter&, const Context&, Tensor<const double, 5> input,
                                    Tensor<const I, 4> indices, Tensor<double, 4> output) {
  POLYOP_RETURN_IF_ERROR(CheckPositions(indices));
  const int64_t planes = input.dim(1), entries = input.dim(2) * input.dim(3) * input.dim(4), rotations = indices.dim(3);
  std::fill_n(output.data(), output.size(), 0.0);
  for (int64_t o = 0; o < input.dim(0); ++o) {
    for (int64_t plane = 0; plane < planes; ++plane) {
      for (int64_t entry = 0; entry < entries; ++entry) {
        for (int64_t r = 0; r < rotations; ++r) {
          const int64_t position = int64_t{indices[entry * rotations + r]} - 1;
          output[((o * rotations + r) * planes + plane) * entries + position] =
              input[(o * planes + plane) * entries + entry];
        }
      }
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(ActiveRotatedFilter, ActiveRotatedFilterReference, int32_t, int64_t);

}  // namespace
}  // namespace polyop
