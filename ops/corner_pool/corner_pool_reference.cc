#include <cmath>

#include "ops/corner_pool/corner_pool.h"

namespace polyop {
namespace {

double Greater(double a, double b) {
  if (std::isnan(a)) return a;
  if (std::isnan(b)) return b;
  return a > b ? a : b;
}

Status CornerPoolReference(const CornerPool& op, const Context&, Tensor<const double, 4> input,
                           Tensor<double, 4> output) {
  const int64_t height = input.dim(2), width = input.dim(3), planes = input.dim(0) * input.dim(1);
  const bool vertical = op.mode == CornerPool::Mode::kTop || op.mode == CornerPool::Mode::kBottom;
  const bool to_start = op.mode == CornerPool::Mode::kTop || op.mode == CornerPool::Mode::kLeft;
  for (int64_t p = 0; p < planes; ++p) {
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t x = 0; x < width; ++x) {
        const int64_t last = vertical ? height - 1 : width - 1, here = vertical ? y : x;
        double best = -INFINITY;
        for (int64_t k = to_start ? here : 0; k <= (to_start ? last : here); ++k) {
          best = Greater(best, input[(p * height + (vertical ? k : y)) * width + (vertical ? x : k)]);
        }
        output[(p * height + y) * width + x] = best;
      }
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(CornerPool, CornerPoolF64, CornerPoolReference);

}  // namespace
}  // namespace polyop
