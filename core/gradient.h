// SPDX-License-Identifier: Apache-2.0
// The gradient of an operator: an operator itself, defined in the same folder.
//
//   struct RoiAlignBackward : GradientOf<RoiAlign> {      // ops/rois/roi_align/roi_align_backward.h
//     static constexpr const char* kName = "roi_align_backward";
//     static constexpr Signature kSignature =
//         "grad_output: T[R, C, (output_height), (output_width)], input: T[N, C, H, W], rois: T[R, 5] -> "
//         "grad_input: T[N, C, H, W]";
//   };
//
// The signature states what the gradient reads and writes. Inputs are gradients of outputs (`grad_` and the output's
// name), inputs of the operator and outputs of the operator, under their own names and in this order. Outputs are
// gradients of inputs (`grad_` and the input's name). If there are several outputs, each is optional (`grad_input?:`),
// and the attribute `output_mask` selects those to compute. All other attributes are the operator's. The gradient of a
// variadic input is one tensor of one dimension, `grad_feats: T[size(feats)]`, with the elements of one gradient after
// the other.
//
// A gradient has no node names. The library for PyTorch registers it as torch.ops.<library>.<name>, and the operator's
// autograd formula calls it. Everything else that holds for operators holds for gradients: the checks of core/call.h,
// random calls, instruction sets, sanitizers, fuzzing, emulated CUDA kernels and benchmarks.
#pragma once

#include <array>
#include <tuple>

#include "core/operator.h"

namespace polyop {

/// The base of a gradient's struct. `Forward` is the operator's struct. A CheckInputs() of the operator does not apply
/// to the gradient, whose inputs are others. An operator with several signatures needs a gradient with kSignatures.
template <class Forward>
struct GradientOf : Forward {
  using ForwardOperator = Forward;
  int64_t output_mask = -1;

  static constexpr std::array<NodeName, 0> kNodes{};
  static constexpr std::tuple kAttributes =
      std::tuple_cat(Forward::kAttributes,
                     std::tuple(Attr("output_mask", &GradientOf::output_mask, "bit i is set: output i is computed")));
  static constexpr Doc kDoc = {.summary = "The gradient of the operator that its name begins with."};
};

}  // namespace polyop
