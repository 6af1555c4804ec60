#pragma once

#include "core/operator.h"
#include "families/sparse/sparse_rule.h"

namespace polyop {

/// A sparse convolution's outputs, and for each of them the rows that feed it.
struct GetIndicePairsImplicitGemm : SparseConvRule {
  int64_t is_train = 0;
  bool do_sort = true;

  static constexpr const char* kName = "get_indice_pairs_implicit_gemm";
  static constexpr Signature kSignature =
      "indices: I[N, 4] -> out_indices: I[O<=" POLYOP_SPARSE_MOST_OUTPUTS
      ", 4], "
      "pair_fwd: i32[ksize[0] * ksize[1] * ksize[2], O], "
      "pair_mask: i32[O, ceil_div(ksize[0] * ksize[1] * ksize[2], 32)], mask_argsort: i32[O], num_act_out: i32[]";
  static constexpr NodeName kNodes[] = {"autoware::GetIndicePairsImplicitGemm", "polyop::GetIndicePairsImplicitGemm"};
  static constexpr auto kAttributes = std::tuple_cat(
      kSparseConvAttributes, std::tuple(Attr("is_train", &GetIndicePairsImplicitGemm::is_train, "must be 0"),
                                        Attr("do_sort", &GetIndicePairsImplicitGemm::do_sort, "without effect")));
  static constexpr Doc kDoc = {
      .summary = "Finds a sparse convolution's outputs, and for each of them the rows of the input that feed it.",
      .semantics =
          "A row of indices is a voxel (picture, z, y, x) of a batch of grids of `spatial_shape`. Output o is fed by "
          "voxel i at place r of the filter where i = o * stride - padding + r * dilation on every axis; transposed, "
          "where o = i * stride - padding + r * dilation. The output's extent is (in + 2 * padding - dilation * (ksize "
          "- 1) - 1) / stride + 1, rounded down; transposed, (in - 1) * stride - 2 * padding + ksize + out_padding. "
          "With "
          "`subm` outputs are the inputs, in their order; else there is an output wherever a voxel feeds one, in "
          "rising order of (picture, z, y, x). pair_fwd[f, o] is the row that feeds output o at place f = (rz * "
          "ksize[1] + ry) * ksize[2] + rx, or -1; the centre of a `subm` is o itself. Of voxels at one place the first "
          "feeds. Bit f % 32 of pair_mask[o, f / 32] is set where there is such a row. mask_argsort is 0, 1, 2, …; "
          "num_act_out is the number of outputs. A voxel outside of its grid is an error.",
      .source = kSparseConvSource,
      .differences =
          "spconv gives outputs in the order of a hash table, and any voxel of those at one place; its mask has 32 "
          "bits, "
          "so more places of the filter than that are not possible there. autoware_tensorrt_plugins drops outputs "
          "beyond the 256,000th.",
      .not_portable = "standard operators have no search for a voxel but the comparison of each with each other",
  };

  Status Check() const {
    if (is_train == 0) return SparseConvRule::Check();
    return InvalidArgument("attribute 'is_train' is ", is_train, ", wanted 0: pairs of the backward pass are not made");
  }
  Status CheckInputs(std::span<const AnyTensor> inputs) const { return CheckRows(inputs[0]); }
};

}  // namespace polyop
