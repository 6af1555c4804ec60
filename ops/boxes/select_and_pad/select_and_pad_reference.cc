// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "ops/boxes/select_and_pad/select_and_pad.h"

namespace polyop {
namespace {

template <class I>
Status SelectAndPadReference(const SelectAndPad& op, const Context&, Tensor<const double, 3> feat,
                             Tensor<const I, 1> flags, Tensor<const double, 1> invalid, Tensor<double, 3> selected) {
  const int64_t of_batch = feat.dim(1), channels = feat.dim(2);
  std::vector<int64_t> selected_rows;
  for (int64_t q = 0; q < of_batch; ++q) {
    if (flags[q] != 0) selected_rows.push_back(q);
  }
  int64_t at = 0;
  for (int64_t b = 0; b < feat.dim(0); ++b) {
    for (int64_t p = 0; p < op.rows; ++p) {
      const bool is_selected = p < static_cast<int64_t>(selected_rows.size());
      for (int64_t c = 0; c < channels; ++c) {
        selected[at++] =
            is_selected ? feat[(b * of_batch + selected_rows[static_cast<size_t>(p)]) * channels + c] : invalid[c];
      }
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(SelectAndPad, SelectAndPadReference, int32_t, int64_t);

}  // namespace
}  // namespace polyop
