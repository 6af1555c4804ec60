// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/attention/neighborhood_attention/neighborhood.h"

namespace polyop {

/// Attention of each position of a sequence, an image or a volume to the positions around it.
struct NeighborhoodAttention {
  List<int64_t, 3> kernel_size;
  List<int64_t, 3> dilation = {{1}, 1};
  List<int64_t, 3> is_causal = {{0}, 1};
  float scale = 0;

  static constexpr const char* kName = "neighborhood_attention";
  static constexpr Signature kSignature =
      "query: T[batch, ...S, heads, depth], key: T[batch, ...S, heads, depth], value: T[batch, ...S, heads, columns] "
      "-> "
      "output: T[batch, ...S, heads, columns]";
  static constexpr NodeName kNodes[] = {"polyop::NeighborhoodAttention"};
  static constexpr std::tuple kAttributes = {
      Attr("kernel_size", &NeighborhoodAttention::kernel_size,
           "positions of a window along each axis; a single value applies to all axes")
          .Between(1, 1 << 20)
          .Required(),
      Attr("dilation", &NeighborhoodAttention::dilation, "distance between neighbouring positions of a window")
          .Between(1, 1 << 20),
      Attr("is_causal", &NeighborhoodAttention::is_causal,
           "1: a window ends at its position along the axis, and has fewer positions at the start")
          .Between(0, 1),
      Attr("scale", &NeighborhoodAttention::scale, "factor of the products of queries and keys; 0: 1 / sqrt(depth)")
          .AtLeast(0),
  };
  static constexpr Doc kDoc = {
      .summary = "Neighborhood attention (NAT, DiNAT): each position attends to the positions of a window around it.",
      .semantics = R"(S has one to three axes. Along an axis, a position attends only to positions at multiples of
          `dilation` from it. Among these, numbered from 0, the window of number i begins at i - kernel_size / 2 (rounded
          down), but is moved so that it lies inside: every query has the same number of keys. On a causal axis it begins
          at i - kernel_size + 1, or at 0, and ends at i. The output is the sum of the window's values, weighted by the
          softmax of scale * query * key. Computed in fp32. A query whose products contain NaN or +infinity gets NaN. In
          PyTorch, differentiable with respect to all inputs.)",
      .source = R"(A. Hassani et al., Neighborhood Attention Transformer, 2023; A. Hassani, H. Shi, Dilated Neighborhood
          Attention Transformer, 2022; `natten.functional.na1d`, `na2d`, `na3d`)",
      .differences = "NATTEN also has strides, and keys outside of the image.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    Neighborhood neighborhood;
    return Neighborhood::Of(*this, inputs[0].shape, &neighborhood);
  }
};

}  // namespace polyop
