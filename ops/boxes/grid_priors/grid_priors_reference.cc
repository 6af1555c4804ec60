// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/grid_priors/grid_priors.h"

namespace polyop {
namespace {

Status GridPriorsReference(const GridPriors& op, const Context&, Tensor<const double, 2> base, AnyTensor height,
                           AnyTensor width, Tensor<double, 2> priors) {
  int64_t row = 0;
  for (int64_t y = 0; y < height.shape[0]; ++y) {
    for (int64_t x = 0; x < width.shape[0]; ++x) {
      for (int64_t a = 0; a < base.dim(0); ++a, ++row) {
        for (int64_t c = 0; c < 4; ++c) {
          const auto cell = static_cast<double>(c % 2 == 0 ? x : y);
          priors[row * 4 + c] = base[a * 4 + c] + cell * static_cast<double>(c % 2 == 0 ? op.stride_w : op.stride_h);
        }
      }
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(GridPriors, GridPriorsReference);

}  // namespace
}  // namespace polyop
