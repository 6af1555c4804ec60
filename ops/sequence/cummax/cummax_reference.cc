// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/sequence/cummax/cummax.h"

namespace polyop {
namespace {

template <class T>
bool Replaces(CumMax::Mode mode, T x, T best) {
  if (std::isnan(static_cast<double>(x))) return true;
  if (std::isnan(static_cast<double>(best))) return false;
  return mode == CumMax::Mode::kMax ? x >= best : x <= best;
}

template <class T>
Status CumMaxReference(const CumMax& op, const Context&, Tensor<const T, kAnyRank> input, Tensor<T, kAnyRank> values,
                       Tensor<int64_t, kAnyRank> indices) {
  const int rank = input.rank();
  const int dim = static_cast<int>(op.dim < 0 ? op.dim + rank : op.dim);
  const int64_t length = rank == 0 ? 1 : input.dim(dim);
  int64_t step = 1;
  for (int d = dim + 1; d < rank; ++d) step *= input.dim(d);
  for (int64_t i = 0; i < input.size(); ++i) {
    const int64_t position = i / step % length;
    const bool replaces = position == 0 || Replaces(op.mode, input[i], values[i - step]);
    values[i] = replaces ? input[i] : values[i - step];
    indices[i] = replaces ? position : indices[i - step];
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(CumMax, CumMaxReference, double, int32_t, int64_t);

}  // namespace
}  // namespace polyop
