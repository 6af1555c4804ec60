#pragma once

#include "core/operator.h"
#include "families/sparse/sparse_rule.h"

namespace polyop {

/// A sparse convolution's outputs, and for each place of the filter the pairs of rows that it joins.
struct GetIndicePairs : SparseConvRule {
  static constexpr const char* kName = "get_indice_pairs";
  static constexpr Signature kSignature = "indices: I[N, 4] -> out_indices: I[O<=" POLYOP_SPARSE_MOST_OUTPUTS
                                          ", 4], "
                                          "indice_pairs: i32[2, ksize[0] * ksize[1] * ksize[2], N], "
                                          "indice_num_per_loc: i32[ksize[0] * ksize[1] * ksize[2]], num_act_out: i32[]";
  static constexpr NodeName kNodes[] = {"autoware::GetIndicePairs", "polyop::GetIndicePairs"};
  static constexpr auto kAttributes = kSparseConvAttributes;
  static constexpr Doc kDoc = {
      .summary = "Finds a sparse convolution's outputs, and for each place of the filter the rows that feed outputs.",
      .semantics =
          "Outputs are those of get_indice_pairs_implicit_gemm, and fed in the same way. The first "
          "indice_num_per_loc[f] "
          "columns of indice_pairs[0, f] are rows of the input, those of indice_pairs[1, f] the rows of the output "
          "that "
          "they feed at place f of the filter, by rising output; the others are -1. With `subm`, counts are there for "
          "places before the centre alone: a place behind it has the pairs of its mirror, turned round, and the "
          "mirror's count; the centre's pairs are (0, 0), (1, 1), …, and its count is 0. A voxel outside of its grid "
          "is "
          "an error.",
      .source = kSparseConvSource,
      .differences =
          "spconv gives outputs and pairs in the order of a hash table, and any voxel of those at one place.",
      .not_portable = "standard operators have no search for a voxel but the comparison of each with each other",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return CheckRows(inputs[0]); }
};

}  // namespace polyop
