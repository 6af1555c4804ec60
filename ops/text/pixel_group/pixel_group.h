// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/text/image_grid.h"

namespace polyop {

/// Assigns pixels of text to the kernel whose embedding they resemble.
struct PixelGroup {
  int64_t kernel_region_num = 1;
  float distance_threshold = 0;

  static constexpr const char* kName = "pixel_group";
  static constexpr Signature kSignature =
      "score: T[H, W], mask: M[H, W], embedding: T[H, W, D], kernel_label: i32[H, W], kernel_contour: M[H, W] -> "
      "label: i32[H, W], scores: T[kernel_region_num], counts: i32[kernel_region_num]";
  static constexpr NodeName kNodes[] = {"polyop::PixelGroup"};
  static constexpr std::tuple kAttributes = {
      Attr("kernel_region_num", &PixelGroup::kernel_region_num, "number of kernels plus 1 for the background")
          .AtLeast(1)
          .Required(),
      Attr("distance_threshold", &PixelGroup::distance_threshold,
           "maximum distance, exclusive, of the embedding of an added pixel from the kernel's mean")
          .Required(),
  };
  static constexpr Doc kDoc = {
      .summary = R"(Pixel aggregation: grows the kernels of text lines over the pixels of the mask whose embedding
          is near theirs (PAN).)",
      .semantics = R"(`kernel_label` numbers the kernels from 1 to kernel_region_num - 1; other labels belong to no
          kernel. The mean of a kernel is the mean embedding of its pixels. Labels spread breadth first from the
          pixels on the contours of all kernels at once. They spread to the neighbours above, below, left and right
          that are in the mask and whose Euclidean distance from the kernel's mean is below the threshold. The first
          label to reach a pixel keeps it.

          `scores` is the mean score of each label's pixels, 0 where there are none, and `counts` their number; both
          are 0 for the background. Means and distances are computed in fp64. kernel_region_num may be at most H * W
          + 1, since there can be no more labels than pixels.)",
      .source = R"(`mmcv.ops.pixel_group`; Wang et al., Efficient and Accurate Arbitrary-Shaped Text Detection with
          Pixel Aggregation Network, 2019)",
      .differences = R"(For each kernel, MMCV returns a list of its mean score, its number of pixels and their
          coordinates; the list can be computed from the labels. For tensors on a GPU, MMCV copies everything to the
          CPU; here a thread block spreads the labels, round by round, with the same result.)",
      .not_portable =
          "The number of rounds depends on the data, and the label of a pixel depends on which label reaches it first.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    POLYOP_RETURN_IF_ERROR(CheckPixels("kernel_label", inputs[3]));
    const int64_t pixels = inputs[3].shape[0] * inputs[3].shape[1];
    if (kernel_region_num <= pixels + 1) return Status::Ok();
    return InvalidArgument("attribute 'kernel_region_num': expected at most ", pixels + 1, " for the ", pixels,
                           " pixels of 'kernel_label', got ", kernel_region_num);
  }
};

}  // namespace polyop
