// SPDX-License-Identifier: Apache-2.0
#include "ops/scatter/embedding_bag/embedding_bag.h"
#include "ops/scatter/embedding_bag/embedding_bag_bags.h"

namespace polyop {
namespace {

template <class I>
Status EmbeddingBagReference(const EmbeddingBag& op, const Context& context, Tensor<const double, 2> weight,
                             Tensor<const I, 1> indices, Tensor<const I, 1> offsets,
                             std::optional<Tensor<const double, 1>> per_sample_weights, Tensor<double, 2> output) {
  POLYOP_RETURN_IF_ERROR(CheckBags(context, indices, offsets, weight.dim(0)));
  const int64_t channels = weight.dim(1);
  for (int64_t m = 0; m < output.dim(0); ++m) {
    for (int64_t c = 0; c < channels; ++c) {
      double result = 0;
      int64_t used = 0;
      for (int64_t i = offsets[m]; i < EndOfBag(offsets, m, indices.dim(0)); ++i) {
        if (indices[i] == op.padding_idx) continue;
        const double x = weight[indices[i] * channels + c];
        if (op.mode == EmbeddingBag::Mode::kMax) {
          if (used == 0 || x > result) result = x;
        } else {
          result += per_sample_weights ? x * (*per_sample_weights)[i] : x;
        }
        ++used;
      }
      if (op.mode == EmbeddingBag::Mode::kMean && used > 0) result /= static_cast<double>(used);
      output[m * channels + c] = result;
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(EmbeddingBag, EmbeddingBagReference, int32_t, int64_t);

}  // namespace
}  // namespace polyop
