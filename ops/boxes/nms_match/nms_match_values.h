// SPDX-License-Identifier: Apache-2.0
// Checks of the thresholds, shared by the CPU kernel and the reference.
#pragma once

#include <cmath>

#include "core/status.h"

namespace polyop {

inline Status CheckThresholds(float iou, float score) {
  if (std::isnan(iou)) return InvalidArgument("'iou_threshold': expected a number, got NaN");
  if (std::isnan(score)) return InvalidArgument("'score_threshold': expected a number, got NaN");
  return Status::Ok();
}

}  // namespace polyop
