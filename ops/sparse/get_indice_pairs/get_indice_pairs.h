// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/sparse/sparse_rule.h"

namespace polyop {

/// Computes a sparse convolution's outputs and, for each filter offset, the pairs of input and output rows.
struct GetIndicePairs : SparseConvRule {
  static constexpr const char* kName = "get_indice_pairs";
  static constexpr Signature kSignature = "indices: I[N, 4] -> out_indices: I[O<=" POLYOP_SPARSE_MAX_OUTPUTS
                                          ", 4], "
                                          "indice_pairs: i32[2, ksize[0] * ksize[1] * ksize[2], N], "
                                          "indice_num_per_loc: i32[ksize[0] * ksize[1] * ksize[2]], num_act_out: i32[]";
  static constexpr NodeName kNodes[] = {"autoware::GetIndicePairs", "polyop::GetIndicePairs"};
  static constexpr auto kAttributes = kSparseConvAttributes;
  static constexpr Doc kDoc = {
      .summary = R"(Computes a sparse convolution's outputs and, for each filter offset, the pairs of input and output
          rows.)",
      .semantics = R"(Outputs and pairs are those of `get_indice_pairs_implicit_gemm`. For filter offset f, the first
          indice_num_per_loc[f] columns of indice_pairs[0, f] are input rows and those of indice_pairs[1, f] the output
          rows that they contribute to, in ascending order of the output; the remaining columns are -1. With `subm`,
          only offsets before the centre have counts: an offset behind it has the pairs of its mirror with input and
          output swapped, its own count is 0, and the mirror's count applies; the pairs of the centre are (0, 0), (1,
          1), …, and its count is 0. A voxel outside of its grid is an error.)",
      .source = kSparseConvSource,
      .differences = R"(spconv returns outputs and pairs in the order of a hash table, and uses any of several voxels at
          one position.)",
      .not_portable = "Standard operators cannot look up a voxel except by comparing all pairs of voxels.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return CheckRows(inputs[0]); }
};

}  // namespace polyop
