// What the thresholds' values must satisfy: the CPU's kernel and the reference refuse the same.
#pragma once

#include <cmath>

#include "core/status.h"

namespace polyop {

inline Status CheckThresholds(float iou, float score) {
  if (std::isnan(iou)) return InvalidArgument("'iou_threshold' is NaN, wanted a number");
  if (std::isnan(score)) return InvalidArgument("'score_threshold' is NaN, wanted a number");
  return Status::Ok();
}

}  // namespace polyop
