// SPDX-License-Identifier: Apache-2.0
// The gradient of pooling of axis-aligned regions with respect to the feature map.
#pragma once

#include <span>

#include "core/context.h"
#include "ops/rois/roi_grid.h"

namespace polyop {

/// Adds up the gradients of `count` pooled boxes, grad_output [count, channels, rows, columns], in grad_input [images,
/// channels, height, width], which is overwritten; with several levels, one after the other. The boxes' batch indices
/// are checked by the caller. `levels` give the extents; their data is read in mode max only, where the gradient of a
/// bin belongs to the first of its largest samples, or to the first of the largest weighted pixels. T: f32, f16, bf16.
/// Sums are in float and rounded once; they do not depend on the number of threads.
template <class T>
Status PoolRoisBackward(const Context& context, std::span<const RoiLevel<T>> levels, int64_t images, int64_t channels,
                        int64_t count, const UprightRois<T>& rois, const RoiPooling& how, const T* grad_output,
                        T* grad_input);

}  // namespace polyop
