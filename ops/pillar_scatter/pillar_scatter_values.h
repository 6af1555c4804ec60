// What the values of counts and places must satisfy: the CPU's kernel and the reference refuse the same.
#pragma once

#include "core/status.h"
#include "core/tensor.h"

namespace polyop {

/// How many of `count` pillars are used.
inline Status CheckUsed(int64_t used, int64_t count) {
  if (used >= 0 && used <= count) return Status::Ok();
  return InvalidArgument("'num' is ", used, ", wanted a value in [0, ", count, "]");
}

/// The place of pillar number `pillar` on the canvas.
inline Status CheckPlace(int64_t pillar, int64_t picture, int64_t y, int64_t x, const Shape& canvas) {
  if (picture >= 0 && picture < canvas[0] && y >= 0 && y < canvas[2] && x >= 0 && x < canvas[3]) return Status::Ok();
  return InvalidArgument("'coords': pillar ", pillar, " is at (", picture, ", ", y, ", ", x,
                         "), wanted a picture, row and column of a canvas of shape ", ToString(canvas));
}

}  // namespace polyop
