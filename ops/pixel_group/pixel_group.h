#pragma once

#include "core/operator.h"
#include "families/labels/picture_grid.h"

namespace polyop {

/// Pixels of text that join the kernel of the line they look like.
struct PixelGroup {
  int64_t kernel_region_num = 1;
  float distance_threshold = 0;

  static constexpr const char* kName = "pixel_group";
  static constexpr Signature kSignature =
      "score: T[H, W], mask: M[H, W], embedding: T[H, W, D], kernel_label: i32[H, W], kernel_contour: M[H, W] -> "
      "label: i32[H, W], scores: T[kernel_region_num], counts: i32[kernel_region_num]";
  static constexpr NodeName kNodes[] = {"polyop::PixelGroup"};
  static constexpr std::tuple kAttributes = {
      Attr("kernel_region_num", &PixelGroup::kernel_region_num, "kernels, and 1 for the background")
          .AtLeast(1)
          .Required(),
      Attr("distance_threshold", &PixelGroup::distance_threshold,
           "pixels join where their embedding is nearer than this to the kernel's mean")
          .Required(),
  };
  static constexpr Doc kDoc = {
      .summary =
          "Pixel aggregation: the kernels of text lines grow over the pixels of the mask whose embedding is near "
          "theirs (PAN).",
      .semantics =
          "`kernel_label` numbers the kernels, 1 to kernel_region_num - 1; other labels are none. A kernel's mean is "
          "that of its pixels' embeddings. From the pixels on the kernels' contour labels spread breadth first, from "
          "all kernels at once, to the neighbours above, below, left and right that the mask has and whose Euclidean "
          "distance from the kernel's mean is below the threshold: who comes first keeps a pixel. `scores` is the mean "
          "score of each label's pixels, 0 where there are none, and `counts` is how many they are; both are 0 of the "
          "background. Means and distances are found in fp64. There can be no more labels than pixels: "
          "kernel_region_num is at most H * W + 1.",
      .source =
          "`mmcv.ops.pixel_group`; Wang et al., Efficient and Accurate Arbitrary-Shaped Text Detection with Pixel "
          "Aggregation Network, 2019",
      .differences =
          "MMCV gives a list for each kernel of its mean score, its number of pixels and their coordinates, which is "
          "made from the labels. On a GPU it copies all to the CPU; here a block of threads spreads the labels, round "
          "by round, with the same result.",
      .not_portable = "How often labels spread is not known before, and a pixel's label hangs on who came first.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    POLYOP_RETURN_IF_ERROR(CheckPixels("kernel_label", inputs[3]));
    const int64_t pixels = inputs[3].shape[0] * inputs[3].shape[1];
    if (kernel_region_num <= pixels + 1) return Status::Ok();
    return InvalidArgument("'kernel_region_num' is ", kernel_region_num, ", wanted at most ", pixels + 1,
                           ": 'kernel_label' has ", pixels, " pixels");
  }
};

}  // namespace polyop
