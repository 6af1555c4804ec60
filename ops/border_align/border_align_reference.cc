#include <cmath>
#include <limits>

#include "families/sampling/reference_sampling.h"
#include "ops/border_align/border_align.h"

namespace polyop {
namespace {

Status BorderAlignReference(const BorderAlign& op, const Context&, Tensor<const double, 4> input,
                            Tensor<const double, 3> boxes, Tensor<double, 4> output) {
  const int64_t height = input.dim(2), width = input.dim(3), channels = output.dim(1), number = boxes.dim(1);
  for (int64_t i = 0; i < output.size(); ++i) {
    const int64_t side = i % 4, k = i / 4 % number, c = i / 4 / number % channels, n = i / 4 / number / channels;
    const double* box = boxes.data() + (n * number + k) * 4;
    const double* plane = input.data() + (n * 4 * channels + side * channels + c) * height * width;
    // Where the side begins, and the way along it.
    const double starts[4][2] = {{box[0], box[1]}, {box[0], box[1]}, {box[2], box[3]}, {box[2], box[3]}};
    const double ways[4][2] = {{box[2] - box[0], 0}, {0, box[3] - box[1]}, {box[0] - box[2], 0}, {0, box[1] - box[3]}};
    bool finite = true;
    for (int64_t e = 0; e < 4; ++e) finite = finite && std::isfinite(box[e]);
    double largest = -std::numeric_limits<double>::infinity();
    for (int64_t s = 0; finite && s <= op.pool_size; ++s) {
      const double part = static_cast<double>(s) / static_cast<double>(op.pool_size);
      const double value = reference::SampleClamped(plane, height, width, starts[side][1] + ways[side][1] * part,
                                                    starts[side][0] + ways[side][0] * part);
      if (value > largest) largest = value;
    }
    output[i] = std::isinf(largest) && largest < 0 ? 0 : largest;
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(BorderAlign, BorderAlignF64, BorderAlignReference);

}  // namespace
}  // namespace polyop
