// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/sparse/sparse_rule.h"

namespace polyop {

/// Computes a sparse convolution's outputs and, for each of them, the input rows that contribute to it.
struct GetIndicePairsImplicitGemm : SparseConvRule {
  int64_t is_train = 0;
  bool do_sort = true;

  static constexpr const char* kName = "get_indice_pairs_implicit_gemm";
  static constexpr Signature kSignature =
      "indices: I[N, 4] -> out_indices: I[O<=" POLYOP_SPARSE_MAX_OUTPUTS
      ", 4], "
      "pair_fwd: i32[ksize[0] * ksize[1] * ksize[2], O], "
      "pair_mask: i32[O, ceil_div(ksize[0] * ksize[1] * ksize[2], 32)], mask_argsort: i32[O], num_act_out: i32[]";
  static constexpr NodeName kNodes[] = {"autoware::GetIndicePairsImplicitGemm", "polyop::GetIndicePairsImplicitGemm"};
  static constexpr auto kAttributes = std::tuple_cat(
      kSparseConvAttributes, std::tuple(Attr("is_train", &GetIndicePairsImplicitGemm::is_train, "must be 0"),
                                        Attr("do_sort", &GetIndicePairsImplicitGemm::do_sort, "no effect")));
  static constexpr Doc kDoc = {
      .summary = "Computes a sparse convolution's outputs and, for each of them, the input rows that contribute to it.",
      .semantics = R"(A row of `indices` is a voxel (batch index, z, y, x) of a batch of grids of `spatial_shape`. Voxel
          i contributes to output o at filter offset r if i = o * stride - padding + r * dilation on every axis;
          transposed, if o = i * stride - padding + r * dilation. The output's extent is (in + 2 * padding - dilation *
          (ksize - 1) - 1) / stride + 1, rounded down; transposed, (in - 1) * stride - 2 * padding + ksize +
          out_padding. With `subm`, the outputs are the inputs in their order; without it, there is an output wherever a
          voxel contributes, in ascending order of (batch index, z, y, x). pair_fwd[f, o] is the input row that
          contributes to output o at offset f = (rz * ksize[1] + ry) * ksize[2] + rx, or -1; with `subm`, that of the
          centre is o itself. Of several voxels at one position, the first is used. Bit f % 32 of pair_mask[o, f / 32]
          is set if there is such a row. mask_argsort is 0, 1, 2, …; num_act_out is the number of outputs. A voxel
          outside of its grid is an error.)",
      .source = kSparseConvSource,
      .differences = R"(spconv returns outputs in the order of a hash table, and uses any of several voxels at one
          position; its mask has 32 bits, which limits the filter to 32 offsets. autoware_tensorrt_plugins drops outputs
          beyond the first 256,000.)",
      .not_portable = "Standard operators cannot look up a voxel except by comparing all pairs of voxels.",
  };

  Status Check() const {
    if (is_train == 0) return SparseConvRule::Check();
    return InvalidArgument("attribute 'is_train': expected 0, got ", is_train,
                           "; pairs of the backward pass are not supported");
  }
  Status CheckInputs(std::span<const AnyTensor> inputs) const { return CheckRows(inputs[0]); }
};

}  // namespace polyop
