// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "ops/sorting/find_indices/find_indices.h"

namespace polyop {
namespace {

template <class T>
Status FindIndicesReference(const FindIndices& op, const Context&, Tensor<const T, kAnyRank> x,
                            Pending<int64_t, 2> indices) {
  std::vector<int64_t> found;
  for (int64_t i = 0; i < x.size(); ++i) {
    const bool starts = i == 0 || x[i] != x[i - 1];
    if (op.mode == FindIndices::Mode::kNonZero ? x[i] != T{0} : starts) found.push_back(i);
  }
  Tensor<int64_t, 2> to;
  POLYOP_RETURN_IF_ERROR(indices.Allocate(static_cast<int64_t>(found.size()), &to));
  for (size_t k = 0; k < found.size(); ++k) {
    int64_t rest = found[k];
    for (int c = static_cast<int>(op.dimensions) - 1; c >= 0; --c) {
      const int axis = x.rank() - static_cast<int>(op.dimensions) + c;
      int64_t& coordinate = to[static_cast<int64_t>(k) * op.dimensions + c];
      if (c == 0) {
        coordinate = rest;
      } else {
        const int64_t extent = axis >= 0 ? x.dim(axis) : 1;
        coordinate = rest % extent;
        rest /= extent;
      }
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(FindIndices, FindIndicesReference, bool, uint8_t, int32_t, int64_t, double);

}  // namespace
}  // namespace polyop
