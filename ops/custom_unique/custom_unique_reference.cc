#include <map>

#include "ops/custom_unique/custom_unique.h"

namespace polyop {
namespace {

template <class I>
Status CustomUniqueReference(const CustomUnique&, const Context&, Tensor<const I, 1> x, Pending<I, 1> unique,
                             Tensor<int64_t, 1> inverse, Pending<int64_t, 1> counts, Tensor<int64_t, 0> num) {
  std::map<I, int64_t> occurs, place;
  for (int64_t i = 0; i < x.dim(0); ++i) ++occurs[x[i]];
  num[0] = static_cast<int64_t>(occurs.size());
  Tensor<I, 1> made;
  Tensor<int64_t, 1> sizes;
  POLYOP_RETURN_IF_ERROR(unique.Allocate(num[0], &made));
  POLYOP_RETURN_IF_ERROR(counts.Allocate(num[0], &sizes));
  for (const auto& [value, times] : occurs) {
    const auto u = static_cast<int64_t>(place.size());
    made[u] = value;
    sizes[u] = times;
    place[value] = u;
  }
  for (int64_t i = 0; i < x.dim(0); ++i) inverse[i] = place[x[i]];
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(CustomUnique, CustomUniqueI32, CustomUniqueReference<int32_t>);
POLYOP_REFERENCE_KERNEL(CustomUnique, CustomUniqueI64, CustomUniqueReference<int64_t>);

}  // namespace
}  // namespace polyop
