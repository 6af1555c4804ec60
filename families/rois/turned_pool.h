// Pooling of rotated regions, over one picture or the levels of a pyramid; always the average.
#pragma once

#include <span>

#include "core/context.h"
#include "families/rois/roi_grid.h"

namespace polyop {

/// As PoolRois, for turned boxes; the average of bilinear samples.
template <class T>
Status PoolRotatedRois(const Context& context, std::span<const RoiLevel<T>> levels, int64_t channels, int64_t count,
                       const TurnedRois<T>& rois, const RoiPooling& how, T* output);

}  // namespace polyop
