// SPDX-License-Identifier: Apache-2.0
// Pooling of rotated RoIs, from one feature map or the levels of a pyramid; always averages.
#pragma once

#include <span>

#include "core/context.h"
#include "ops/rois/roi_grid.h"

namespace polyop {

/// Like PoolRois, but for rotated boxes; averages bilinear samples.
template <class T>
Status PoolRotatedRois(const Context& context, std::span<const RoiLevel<T>> levels, int64_t channels, int64_t count,
                       const RotatedRois<T>& rois, const RoiPooling& how, T* output);

/// The gradient of PoolRotatedRois: like PoolRoisBackward, but for rotated boxes.
template <class T>
Status PoolRotatedRoisBackward(const Context& context, std::span<const RoiLevel<T>> levels, int64_t images,
                               int64_t channels, int64_t count, const RotatedRois<T>& rois, const RoiPooling& how,
                               const T* grad_output, T* grad_input);
/// PoolRotatedRoisBackward on one feature map, of gradients in f32 whatever T is, which are not rounded to T.
template <class T>
Status PoolRotatedRoisBackwardOfF32(const Context& context, const RoiLevel<T>& input, int64_t images, int64_t channels,
                                    int64_t count, const RotatedRois<T>& rois, const RoiPooling& how,
                                    const float* grad_output, T* grad_input);

}  // namespace polyop
