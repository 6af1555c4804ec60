// What the values of indices must satisfy: the CPU's kernel and the reference refuse the same.
#pragma once

#include "core/status.h"

namespace polyop {

/// Element number `element` of 'indices' against the rows of 'data'.
inline Status CheckRow(int64_t element, int64_t index, int64_t num_rows) {
  if (index >= 0 && index < num_rows) return Status::Ok();
  return InvalidArgument("'indices': element ", element, " is ", index, ", wanted a value in [0, ", num_rows,
                         "), a row of 'data'");
}

}  // namespace polyop
