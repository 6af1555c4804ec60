// SPDX-License-Identifier: Apache-2.0
// Random values for the inputs of a model whose meaning an operator states: boxes, RoIs, image indices, points.
#pragma once

#include <cstdint>

#include "platform/exported.h"

/// Writes `rows` rows of a role of core/input_role.h, and returns their number of columns: 1 for roles of single
/// elements, and 0, without writing, if there is no such role. Coordinates are below 64, a usual size of feature maps;
/// image indices are below `integer_bound`, at least 1. Equal seeds give equal values on every machine. With `values`
/// null, nothing is written.
extern "C" POLYOP_EXPORTED int polyop_draw_rows(const char* role, int64_t rows, int64_t integer_bound, uint32_t seed,
                                                double* values);
