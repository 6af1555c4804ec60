#include <algorithm>

#include "families/quantized/quantized_reference.h"
#include "ops/quantized_corner_pool/quantized_corner_pool.h"

namespace polyop {
namespace {

template <class I>
Status QuantizedCornerPoolReference(const QuantizedCornerPool& op, const Context&, Tensor<const I, 4> input,
                                    Tensor<I, 4> output) {
  const auto real = reference::Dequantized(op, input);
  auto result = reference::ResultsFor(output);
  const int64_t height = input.dim(2), width = input.dim(3);
  const auto at = [&](int64_t plane, int64_t y, int64_t x) {
    return real.values[static_cast<size_t>((plane * height + y) * width + x)];
  };
  size_t to = 0;
  for (int64_t plane = 0; plane < input.dim(0) * input.dim(1); ++plane) {
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t x = 0; x < width; ++x) {
        double largest = at(plane, y, x);
        switch (op.mode) {
          case QuantizedCornerPool::Mode::kTop:
            for (int64_t k = y; k < height; ++k) largest = std::max(largest, at(plane, k, x));
            break;
          case QuantizedCornerPool::Mode::kBottom:
            for (int64_t k = 0; k <= y; ++k) largest = std::max(largest, at(plane, k, x));
            break;
          case QuantizedCornerPool::Mode::kLeft:
            for (int64_t k = x; k < width; ++k) largest = std::max(largest, at(plane, y, k));
            break;
          case QuantizedCornerPool::Mode::kRight:
            for (int64_t k = 0; k <= x; ++k) largest = std::max(largest, at(plane, y, k));
            break;
        }
        result.values[to++] = largest;
      }
    }
  }
  reference::Quantize(op, result, output);
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(QuantizedCornerPool, QuantizedCornerPoolReference, int8_t, uint8_t);

}  // namespace
}  // namespace polyop
