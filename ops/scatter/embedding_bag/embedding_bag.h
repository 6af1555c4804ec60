// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// Reduces rows of a table, bag by bag.
struct EmbeddingBag {
  enum class Mode { kSum, kMean, kMax };
  Mode mode = Mode::kSum;
  int64_t include_last_offset = 0;
  int64_t padding_idx = -1;

  static constexpr const char* kName = "embedding_bag";
  static constexpr Signature kSignature =
      "weight: T[R, F], indices: I[N], offsets: I[P], per_sample_weights?: T[N] -> "
      "output: T[P - include_last_offset, F]";
  static constexpr NodeName kNodes[] = {"polyop::EmbeddingBag"};
  static constexpr std::tuple kAttributes = {
      Attr("mode", &EmbeddingBag::mode, "how to reduce the rows of a bag").OneOf("sum", "mean", "max"),
      Attr("include_last_offset", &EmbeddingBag::include_last_offset, "1: the last offset is the end of the last bag")
          .Between(0, 1),
      Attr("padding_idx", &EmbeddingBag::padding_idx, "rows of this index are left out; -1: none").AtLeast(-1),
  };
  static constexpr Doc kDoc = {
      .summary = "Reduces rows of a table, bag by bag: sum, mean or maximum.",
      .semantics =
          R"(Bag m consists of the rows weight[indices[i]] for i from offsets[m] to offsets[m + 1] - 1; the last
          bag ends with the indices, or at the last offset with `include_last_offset`. In mode sum,
          `per_sample_weights` multiply the rows. mean divides by the number of rows without padding. max keeps the
          first row's elements until a greater one follows, so that NaN in the first row stays and other NaN is
          ignored. A bag without rows gives 0. Rows are reduced in order, in float. It is an error if the first offset
          is not 0, if an offset is less than the one before it or greater than N, or if an index is not a row.)",
      .source = "`torch.nn.functional.embedding_bag`",
      .differences = "PyTorch accepts offsets that decrease, and does not define their result.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    if (inputs.size() > 3 && inputs[3].present && mode != Mode::kSum) {
      return InvalidArgument("'per_sample_weights': expected none, except in mode sum");
    }
    if (inputs[2].shape[0] >= include_last_offset) return Status::Ok();
    return InvalidArgument("'offsets': expected at least 1 element with include_last_offset, got shape [0]");
  }
};

}  // namespace polyop
