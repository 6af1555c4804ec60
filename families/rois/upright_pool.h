// Pooling of axis-aligned regions, over one picture or the levels of a pyramid: rows and columns of samples have taps
// of their own.
#pragma once

#include <span>

#include "core/context.h"
#include "families/rois/roi_grid.h"

namespace polyop {

/// Pools `count` boxes to output [count, channels, rows, columns] on the CPU. Their pictures are checked. T: f32, f16,
/// bf16.
template <class T>
Status PoolRois(const Context& context, std::span<const RoiLevel<T>> levels, int64_t channels, int64_t count,
                const UprightRois<T>& rois, const RoiPooling& how, T* output);

}  // namespace polyop
