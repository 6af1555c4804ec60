#include <algorithm>
#include <array>

#include "ops/quantized_corner_pool/quantized_corner_pool.h"

namespace polyop {
namespace {

// The result for each maximum, by its 8 bits. The compiler vectorizes the maxima of rows.
using Results = std::array<Q8, 256>;

Results ResultsOf(const Requantize<Q8>& codes) {
  Results results;
  for (int bits = 0; bits < 256; ++bits) {
    const auto q = static_cast<uint8_t>(bits);
    results[q] = codes.Round(static_cast<float>(codes.Difference({q})));
  }
  return results;
}

template <class I>
Status QuantizedCornerPoolCpu(const QuantizedCornerPool& op, const Context& context, Tensor<const I, 4> input,
                              Tensor<I, 4> output) {
  using Mode = QuantizedCornerPool::Mode;
  const int64_t height = input.dim(2), width = input.dim(3), planes = input.dim(0) * input.dim(1);
  const bool vertical = op.mode == Mode::kTop || op.mode == Mode::kBottom;
  const bool reverse = op.mode == Mode::kTop || op.mode == Mode::kLeft;
  const Results results = ResultsOf(op.Codes<I>());
  const auto result = [&](I maximum) { return static_cast<I>(results[static_cast<uint8_t>(maximum)].bits); };
  if (!vertical) {
    context.ParallelFor(planes * height, GrainFor(static_cast<double>(width)), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t first = row * width + (reverse ? width - 1 : 0), step = reverse ? -1 : 1;
        I largest = input[first];
        for (int64_t i = 0; i < width; ++i) {
          largest = std::max(largest, input[first + i * step]);
          output[first + i * step] = result(largest);
        }
      }
    });
    return Status::Ok();
  }
  constexpr int64_t kStrip = 256;  // columns per work item, whose maxima are kept on the stack
  const int64_t strips = (width + kStrip - 1) / kStrip;
  const double strip_work = static_cast<double>(height * std::min(width, kStrip));
  context.ParallelFor(planes * strips, GrainFor(strip_work), [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t plane = item / strips, column = item % strips * kStrip, count = std::min(kStrip, width - column);
      std::array<I, kStrip> largest;
      largest.fill(std::numeric_limits<I>::min());
      for (int64_t k = 0; k < height; ++k) {
        const int64_t y = reverse ? height - 1 - k : k, at = (plane * height + y) * width + column;
        const I* const from = input.data() + at;
        for (int64_t x = 0; x < count; ++x)
          largest[static_cast<size_t>(x)] = std::max(largest[static_cast<size_t>(x)], from[x]);
        for (int64_t x = 0; x < count; ++x) output[at + x] = result(largest[static_cast<size_t>(x)]);
      }
    }
  });
  return Status::Ok();
}

POLYOP_PLAIN_CPU_KERNELS(QuantizedCornerPool, QuantizedCornerPoolCpu, int8_t, uint8_t);

}  // namespace
}  // namespace polyop
