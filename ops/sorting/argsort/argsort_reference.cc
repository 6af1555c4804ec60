// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/sorting/argsort/argsort.h"

namespace polyop {
namespace {

template <class T>
bool IsLess(T a, T b) {
  return a < b || (std::isnan(static_cast<double>(b)) && !std::isnan(static_cast<double>(a)));
}

template <class T>
Status ArgsortReference(const Argsort& op, const Context&, Tensor<const T, kAnyRank> x,
                        Tensor<int64_t, kAnyRank> order) {
  const int64_t length = x.dim(x.rank() - 1);
  for (int64_t first = 0; first < x.size(); first += length) {
    const T* const row = x.data() + first;
    int64_t* const to = order.data() + first;
    std::iota(to, to + length, int64_t{0});
    std::stable_sort(to, to + length, [&](int64_t a, int64_t b) {
      return op.descending != 0 ? IsLess(row[b], row[a]) : IsLess(row[a], row[b]);
    });
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(Argsort, ArgsortReference, double, int64_t);

}  // namespace
}  // namespace polyop
