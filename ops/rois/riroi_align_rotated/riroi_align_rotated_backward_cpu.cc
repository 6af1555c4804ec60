// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/batch_indices.h"
#include "ops/rois/riroi_align_rotated/orientation_shift.h"
#include "ops/rois/riroi_align_rotated/riroi_align_rotated_backward.h"
#include "ops/rois/rotated_pool.h"

namespace polyop {
namespace {

// Sets `pooled` to the gradients of the pooled bins before their orientation channels are shifted.
template <class T>
void UnshiftOrientations(const RiRoiAlignRotated& op, const Context& context, const Tensor<const T, 2>& rois,
                         const Tensor<const T, 4>& grad_output, float* pooled) {
  const int64_t orientations = op.num_orientations, features = grad_output.dim(1) / orientations;
  const int64_t bins = op.pooled_height * op.pooled_width, block = orientations * bins;
  const int64_t items = rois.dim(0) * features;
  context.ParallelFor(items, GrainFor(static_cast<double>(block)), [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const auto shift = OrientationShift::Of(ToFloat(rois[6 * (item / features) + 5]), orientations);
      const float in_first = shift.finite ? 1 - shift.part : 0, in_second = shift.finite ? shift.part : 0;
      for (int64_t o = 0; o < orientations; ++o) {
        const T* const first = grad_output.data() + item * block + shift.OfFirst(o) * bins;
        const T* const second = grad_output.data() + item * block + shift.OfSecond(o) * bins;
        float* const to = pooled + item * block + o * bins;
        // A gradient whose weight is 0 adds nothing, even if it is NaN.
        for (int64_t b = 0; b < bins; ++b) to[b] = in_first > 0 ? in_first * ToFloat(first[b]) : 0;
        for (int64_t b = 0; in_second > 0 && b < bins; ++b) to[b] += in_second * ToFloat(second[b]);
      }
    }
  });
}

template <class T>
Status RiRoiAlignRotatedBackwardCpu(const RiRoiAlignRotatedBackward& op, const Context& context,
                                    Tensor<const T, 4> grad_output, Tensor<const T, 4> input, Tensor<const T, 2> rois,
                                    Tensor<T, 4> grad_input) {
  POLYOP_RETURN_IF_ERROR(CheckBatchIndices(rois, input.dim(0)));
  const Scratch<float> pooled = context.Allocate<float>(grad_output.size());
  if (!pooled) return Internal("out of memory: a copy of ", ToString(grad_output.shape()));
  UnshiftOrientations(op, context, rois, grad_output, pooled.data());
  const RoiLevel<T> level{input.data(), input.dim(2), input.dim(3), op.spatial_scale};
  const RoiPooling how{op.pooled_height, op.pooled_width, op.num_samples, false, true};
  return PoolRotatedRoisBackwardOfF32<T>(context, level, input.dim(0), input.dim(1), rois.dim(0),
                                         {rois.data(), op.clockwise}, how, pooled.data(), grad_input.data());
}

POLYOP_PLAIN_CPU_KERNELS(RiRoiAlignRotatedBackward, RiRoiAlignRotatedBackwardCpu, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
