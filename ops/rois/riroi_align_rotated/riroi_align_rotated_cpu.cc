// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <type_traits>

#include "ops/rois/batch_indices.h"
#include "ops/rois/riroi_align_rotated/orientation_shift.h"
#include "ops/rois/riroi_align_rotated/riroi_align_rotated.h"
#include "ops/rois/rotated_pool.h"

namespace polyop {
namespace {

// Shifts the orientation channels of pooled [R, C, bins]. The output may be the same memory.
template <class T>
Status ShiftOrientations(const RiRoiAlignRotated& op, const Context& context, Tensor<const T, 2> rois, int64_t channels,
                         const float* pooled, T* output) {
  const int64_t orientations = op.num_orientations, features = channels / orientations;
  const int64_t bins = op.pooled_height * op.pooled_width, block = orientations * bins;
  const int64_t items = rois.dim(0) * features, grain = GrainFor(static_cast<double>(block));
  const Scratch<float> tiles = context.Allocate<float>(Context::NumTasks(items, grain) * block);
  if (!tiles) return Internal("out of memory: ", op.num_orientations, " orientations of ", bins, " bins");
  context.ParallelFor(items, grain, [&](int64_t task, int64_t begin, int64_t end) {
    float* const tile = tiles.data() + task * block;
    for (int64_t item = begin; item < end; ++item) {
      const auto shift = OrientationShift::Of(ToFloat(rois[6 * (item / features) + 5]), orientations);
      std::copy_n(pooled + item * block, block, tile);
      for (int64_t o = 0; o < orientations; ++o) {
        const float *const first = tile + shift.First(o) * bins, *const second = tile + shift.Second(o) * bins;
        T* const to = output + item * block + o * bins;
        for (int64_t b = 0; b < bins; ++b) {
          const float value = shift.part > 0 ? (1 - shift.part) * first[b] + shift.part * second[b] : first[b];
          to[b] = FromFloat<T>(shift.finite ? value : 0);
        }
      }
    }
  });
  return Status::Ok();
}

template <class T>
void ToFloats(const Context& context, const T* from, int64_t count, float* to) {
  context.ParallelFor(count, GrainFor(1.0), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = ToFloat(from[i]);
  });
}

// Pools boxes in float whatever T is, so that orientations are interpolated before results are rounded.
template <class T>
Status RiRoiAlignRotatedCpu(const RiRoiAlignRotated& op, const Context& context, Tensor<const T, 4> input,
                            Tensor<const T, 2> rois, Tensor<T, 4> output) {
  POLYOP_RETURN_IF_ERROR(CheckBatchIndices(rois, input.dim(0)));
  const auto pool = [&](const float* pixels, const float* rows, float* pooled) {
    const RoiLevel<float> level{pixels, input.dim(2), input.dim(3), op.spatial_scale};
    const RoiPooling how{op.pooled_height, op.pooled_width, op.num_samples, false, true};
    return PoolRotatedRois<float>(context, {&level, 1}, input.dim(1), rois.dim(0), {rows, op.clockwise}, how, pooled);
  };
  if constexpr (std::is_same_v<T, float>) {
    POLYOP_RETURN_IF_ERROR(pool(input.data(), rois.data(), output.data()));
    return ShiftOrientations(op, context, rois, input.dim(1), output.data(), output.data());
  } else {
    const Scratch<float> pixels = context.Allocate<float>(input.size());
    const Scratch<float> rows = context.Allocate<float>(rois.size());
    const Scratch<float> pooled = context.Allocate<float>(output.size());
    if (!pixels || !rows || !pooled) return Internal("out of memory: a copy of ", ToString(input.shape()));
    ToFloats(context, input.data(), input.size(), pixels.data());
    ToFloats(context, rois.data(), rois.size(), rows.data());
    POLYOP_RETURN_IF_ERROR(pool(pixels.data(), rows.data(), pooled.data()));
    return ShiftOrientations(op, context, rois, input.dim(1), pooled.data(), output.data());
  }
}

POLYOP_PLAIN_CPU_KERNELS(RiRoiAlignRotated, RiRoiAlignRotatedCpu, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
