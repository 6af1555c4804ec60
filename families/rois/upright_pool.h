// Pooling of axis-aligned RoIs, from one feature map or the levels of a pyramid. Rows and columns of samples have
// separate taps.
#pragma once

#include <span>

#include "core/context.h"
#include "families/rois/roi_grid.h"

namespace polyop {

/// Pools `count` boxes to output [count, channels, rows, columns] on the CPU. Requires: batch indices are checked. T is
/// f32, f16 or bf16.
template <class T>
Status PoolRois(const Context& context, std::span<const RoiLevel<T>> levels, int64_t channels, int64_t count,
                const UprightRois<T>& rois, const RoiPooling& how, T* output);

}  // namespace polyop
