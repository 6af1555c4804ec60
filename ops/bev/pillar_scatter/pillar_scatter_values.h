// SPDX-License-Identifier: Apache-2.0
// Checks of counts and positions, shared by the CPU kernel and the reference.
#pragma once

#include "core/status.h"
#include "core/tensor.h"

namespace polyop {

/// Checks the number of pillars that are used, out of `count`.
inline Status CheckUsed(int64_t used, int64_t count) {
  if (used >= 0 && used <= count) return Status::Ok();
  return InvalidArgument("'num': expected a value in [0, ", count, "], got ", used);
}

/// Checks the position of pillar number `pillar` on the canvas.
inline Status CheckPosition(int64_t pillar, int64_t image, int64_t y, int64_t x, const Shape& canvas) {
  if (image >= 0 && image < canvas[0] && y >= 0 && y < canvas[2] && x >= 0 && x < canvas[3]) return Status::Ok();
  return InvalidArgument("'coords': expected an (image, row, column) within a canvas of shape ", ToString(canvas),
                         ", got (", image, ", ", y, ", ", x, ") for pillar ", pillar);
}

}  // namespace polyop
