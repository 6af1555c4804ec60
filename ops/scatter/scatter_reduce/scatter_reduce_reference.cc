// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "kernels/cpu/check_indices.h"
#include "ops/scatter/scatter_reduce/scatter_reduce.h"

namespace polyop {
namespace {

// Visits each update by its coordinates.
template <class T, class I>
Status ScatterReduceReference(const ScatterReduce& op, const Context& context, Tensor<const T, kAnyRank> data,
                              Tensor<const I, kAnyRank> indices, Tensor<const T, kAnyRank> updates,
                              Tensor<T, kAnyRank> output) {
  using enum ScatterReduce::Reduction;
  const int rank = data.rank(), axis = static_cast<int>(op.axis < 0 ? op.axis + rank : op.axis);
  const bool slices = indices.rank() == 1 && rank > 1;
  POLYOP_RETURN_IF_ERROR(CheckIndicesFromBothEnds(context, "indices", indices.data(), indices.size(), data.dim(axis)));
  for (int64_t i = 0; i < data.size(); ++i) output[i] = data[i];
  std::vector<int64_t> count(static_cast<size_t>(data.size()), 0), at(static_cast<size_t>(rank), 0);
  for (int64_t u = 0; u < updates.size(); ++u) {
    int64_t rest = u;
    for (int d = rank - 1; d >= 0; --d) {
      at[static_cast<size_t>(d)] = rest % updates.dim(d);
      rest /= updates.dim(d);
    }
    int64_t index = indices[slices ? at[static_cast<size_t>(axis)] : u], target = 0;
    if (index < 0) index += data.dim(axis);
    for (int d = 0; d < rank; ++d) target = target * data.dim(d) + (d == axis ? index : at[static_cast<size_t>(d)]);
    const T before = output[target], next = updates[u];
    int64_t& number = count[static_cast<size_t>(target)];
    const auto nan = [](T x) { return std::isnan(static_cast<double>(x)); };
    const auto wrapped = [](uint64_t x) { return static_cast<T>(static_cast<int64_t>(x)); };
    if (++number == 1 && op.include_self == 0) {
      output[target] = next;
    } else if (op.reduction == kMax) {
      output[target] = nan(before) || nan(next) ? before + next : std::max(before, next);
    } else if (op.reduction == kMin) {
      output[target] = nan(before) || nan(next) ? before + next : std::min(before, next);
    } else if constexpr (std::is_integral_v<T>) {
      const auto a = static_cast<uint64_t>(before), b = static_cast<uint64_t>(next);
      output[target] = wrapped(op.reduction == kMul ? a * b : a + b);
    } else {
      output[target] = op.reduction == kMul ? before * next : before + next;
    }
  }
  if (op.reduction != kMean) return Status::Ok();
  for (int64_t i = 0; i < output.size(); ++i) {
    const int64_t number = count[static_cast<size_t>(i)];
    if (number > 0) output[i] = static_cast<T>(output[i] / static_cast<T>(number + op.include_self));
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(ScatterReduce, ScatterReduceReference, (double, int32_t), (double, int64_t),
                         (int32_t, int32_t), (int32_t, int64_t), (int64_t, int32_t), (int64_t, int64_t));

}  // namespace
}  // namespace polyop
