// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "ops/sorting/custom_unique/custom_unique.h"

namespace polyop {
namespace {

template <class I>
Status CustomUniqueReference(const CustomUnique&, const Context&, Tensor<const I, 1> x, Pending<I, 1> unique,
                             Tensor<int64_t, 1> inverse, Pending<int64_t, 1> counts, Tensor<int64_t, 0> num) {
  std::map<I, int64_t> counts_of, index;
  for (int64_t i = 0; i < x.dim(0); ++i) ++counts_of[x[i]];
  num[0] = static_cast<int64_t>(counts_of.size());
  Tensor<I, 1> values;
  Tensor<int64_t, 1> sizes;
  POLYOP_RETURN_IF_ERROR(unique.Allocate(num[0], &values));
  POLYOP_RETURN_IF_ERROR(counts.Allocate(num[0], &sizes));
  for (const auto& [value, occurrences] : counts_of) {
    const auto u = static_cast<int64_t>(index.size());
    values[u] = value;
    sizes[u] = occurrences;
    index[value] = u;
  }
  for (int64_t i = 0; i < x.dim(0); ++i) inverse[i] = index[x[i]];
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(CustomUnique, CustomUniqueReference, int32_t, int64_t);

}  // namespace
}  // namespace polyop
