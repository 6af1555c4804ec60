// SPDX-License-Identifier: Apache-2.0
// Pooling of axis-aligned RoIs, from one feature map or the levels of a pyramid. Rows and columns of samples have
// separate taps.
#pragma once

#include <span>

#include "core/context.h"
#include "kernels/cpu/quantized.h"
#include "ops/rois/roi_grid.h"

namespace polyop {

/// Pools `count` boxes to output [count, channels, rows, columns] on the CPU. Requires: batch indices are checked. T is
/// f32, f16 or bf16.
template <class T>
Status PoolRois(const Context& context, std::span<const RoiLevel<T>> levels, int64_t channels, int64_t count,
                const UprightRois<T>& rois, const RoiPooling& how, T* output);
/// Like PoolRois for quantized feature maps and results, with boxes in f32.
Status PoolQuantizedRois(const Context& context, const RoiLevel<Q8>& level, int64_t channels, int64_t count,
                         const UprightRois<float>& rois, const RoiPooling& how, const Requantize<Q8>& codes,
                         Q8* output);

}  // namespace polyop
