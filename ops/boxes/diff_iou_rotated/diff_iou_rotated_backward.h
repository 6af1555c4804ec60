// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/boxes/diff_iou_rotated/diff_iou_rotated.h"

namespace polyop {

/// The gradients of the IoU with respect to both boxes.
struct DiffIouRotatedBackward : GradientOf<DiffIouRotated> {
  static constexpr const char* kName = "diff_iou_rotated_backward";
  static constexpr Signature kSignature =
      "grad_iou: T[B, N], boxes_a: T[B, N, 2*dimensions + 1], boxes_b: T[B, N, 2*dimensions + 1] -> "
      "grad_boxes_a?: T[B, N, 2*dimensions + 1], grad_boxes_b?: T[B, N, 2*dimensions + 1]";
};

}  // namespace polyop
