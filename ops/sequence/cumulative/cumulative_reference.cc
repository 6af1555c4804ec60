// SPDX-License-Identifier: Apache-2.0
#include <type_traits>

#include "ops/sequence/cumulative/cumulative.h"

namespace polyop {
namespace {

template <class T>
T Next(Cumulative::Mode mode, T before, T x) {
  const bool product = mode == Cumulative::Mode::kProd;
  if constexpr (std::is_integral_v<T>) {
    const auto a = static_cast<uint64_t>(before), b = static_cast<uint64_t>(x);
    return static_cast<T>(static_cast<int64_t>(product ? a * b : a + b));
  } else {
    return product ? before * x : before + x;
  }
}

template <class T>
Status CumulativeReference(const Cumulative& op, const Context&, Tensor<const T, kAnyRank> input,
                           Tensor<T, kAnyRank> output) {
  const int rank = input.rank();
  const int axis = static_cast<int>(op.axis < 0 ? op.axis + rank : op.axis);
  const int64_t length = rank == 0 ? 1 : input.dim(axis);
  int64_t step = 1;
  for (int d = axis + 1; d < rank; ++d) step *= input.dim(d);
  for (int64_t first = 0; first < input.size(); ++first) {
    if (first / step % length != 0) continue;
    T running = op.mode == Cumulative::Mode::kProd ? T{1} : T{0};
    for (int64_t k = 0; k < length; ++k) {
      const int64_t at = first + (op.reverse != 0 ? length - 1 - k : k) * step;
      const T next = Next(op.mode, running, input[at]);
      output[at] = op.exclusive != 0 ? running : next;
      running = next;
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(Cumulative, CumulativeReference, double, int32_t, int64_t);

}  // namespace
}  // namespace polyop
