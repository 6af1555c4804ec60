// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/text/image_grid.h"

namespace polyop {

/// Expands the kernels of text lines to their full size.
struct ContourExpand {
  int64_t min_kernel_area = 0;

  static constexpr const char* kName = "contour_expand";
  static constexpr Signature kSignature =
      "kernel_mask: M[K, H, W], internal_kernel_label: i32[H, W] -> label: i32[H, W]";
  static constexpr NodeName kNodes[] = {"polyop::ContourExpand"};
  static constexpr std::tuple kAttributes = {
      Attr("min_kernel_area", &ContourExpand::min_kernel_area, "kernels of fewer pixels are dropped")
          .AtLeast(0)
          .Required(),
  };
  static constexpr Doc kDoc = {
      .summary = R"(Progressive scale expansion: grows the labels of the smallest kernels of text lines over the larger
          kernels (PSENet).)",
      .semantics = R"(Masks are ordered from the largest kernels to the smallest. `internal_kernel_label` labels the
          smallest kernels with 1 to H * W; other values mean no label. Labels of at least `min_kernel_area` pixels
          spread over mask K - 2, then over mask K - 3, and so on to mask 0; the last mask is ignored. Within a mask,
          labels spread breadth first, from all kernels at once, to the neighbours above, below, left and right, in this
          order; the first label to reach a pixel keeps it. The queue starts with the kernels' pixels in row-major
          order, and for each further mask with the pixels that did not spread. Pixels that no label reaches are 0.)",
      .source = R"(`mmcv.ops.contour_expand`; Wang et al., Shape Robust Text Detection with Progressive Scale Expansion
          Network, 2019)",
      .differences = R"(MMCV's function takes the number of masks as an additional argument and returns a list of lists.
          On a GPU it copies all data to the CPU; polyop runs the same algorithm in one block of threads, round by
          round, with the same result.)",
      .not_portable = R"(The number of rounds is not known in advance, and the label of a pixel depends on which label
          reaches it first.)",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    return CheckPixels("internal_kernel_label", inputs[1]);
  }
};

}  // namespace polyop
