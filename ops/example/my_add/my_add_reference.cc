// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "ops/example/my_add/my_add.h"

namespace polyop {
namespace {

// Returns the element of `t` for the output's element `flat`. Shapes are right-aligned, and extents of 1 are repeated.
int64_t BroadcastIndex(const Shape& out, const Shape& t, int64_t flat) {
  int64_t index = 0, stride = 1;
  for (int i = out.rank() - 1, j = t.rank() - 1; j >= 0; --i, --j) {
    index += (t[j] == 1 ? 0 : flat % out[i]) * stride;
    stride *= t[j];
    flat /= out[i];
  }
  return index;
}

Status MyAddReference(const MyAdd&, const Context&, Tensor<const double, kAnyRank> a, Tensor<const double, kAnyRank> b,
                      Tensor<double, kAnyRank> c) {
  for (int64_t i = 0; i < c.size(); ++i) {
    c[i] = 2 * a[BroadcastIndex(c.shape(), a.shape(), i)] + b[BroadcastIndex(c.shape(), b.shape(), i)];
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(MyAdd, MyAddReference);

}  // namespace
}  // namespace polyop
