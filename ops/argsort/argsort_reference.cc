#include <algorithm>
#include <numeric>

#include "ops/argsort/argsort.h"

namespace polyop {
namespace {

Status ArgsortReference(const Argsort&, const Context&, Tensor<const int64_t, 1> x, Tensor<int64_t, 1> order) {
  std::iota(order.data(), order.data() + order.size(), int64_t{0});
  std::stable_sort(order.data(), order.data() + order.size(), [&](int64_t a, int64_t b) { return x[a] < x[b]; });
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(Argsort, ArgsortReference);

}  // namespace
}  // namespace polyop
