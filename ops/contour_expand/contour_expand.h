#pragma once

#include "core/operator.h"
#include "families/labels/picture_grid.h"

namespace polyop {

/// Kernels of text lines that grow to the lines' whole size.
struct ContourExpand {
  int64_t min_kernel_area = 0;

  static constexpr const char* kName = "contour_expand";
  static constexpr Signature kSignature =
      "kernel_mask: M[K, H, W], internal_kernel_label: i32[H, W] -> label: i32[H, W]";
  static constexpr NodeName kNodes[] = {"polyop::ContourExpand"};
  static constexpr std::tuple kAttributes = {
      Attr("min_kernel_area", &ContourExpand::min_kernel_area, "kernels of fewer pixels are left out")
          .AtLeast(0)
          .Required(),
  };
  static constexpr Doc kDoc = {
      .summary =
          "Progressive scale expansion: the labels of text lines' smallest kernels grow over the larger ones "
          "(PSENet).",
      .semantics =
          "Masks lie from the largest kernels to the smallest; `internal_kernel_label` numbers the smallest ones, 1 to "
          "H * W, and other labels are none. Those of at least min_kernel_area pixels spread over the mask K - 2, then "
          "over K - 3, and so on to mask 0; the last mask is not looked at. Within a mask labels spread breadth first, "
          "from all kernels at once, to the neighbours above, below, left and right: who comes first keeps a pixel. "
          "First in the queue are the kernels' pixels row by row, for the next mask those from which nothing spread. 0 "
          "is where nothing came.",
      .source =
          "`mmcv.ops.contour_expand`; Wang et al., Shape Robust Text Detection with Progressive Scale Expansion "
          "Network, 2019",
      .differences =
          "MMCV's function takes the number of masks beside them, and gives a list of lists. On a GPU it copies all to "
          "the CPU; here a block of threads does the same, round by round, with the same result.",
      .not_portable = "How often labels spread is not known before, and a pixel's label hangs on who came first.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    return CheckPixels("internal_kernel_label", inputs[1]);
  }
};

}  // namespace polyop
