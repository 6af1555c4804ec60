// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <type_traits>

#include "ops/rois/batch_indices.h"
#include "ops/rois/roi_pool/roi_pool_backward.h"

namespace polyop {
namespace {

// The sums of a plane of the input are accumulated in float, in the result itself if that is float.
template <class T>
Status RoiPoolBackwardCpu(const RoiPoolBackward& op, const Context& context, Tensor<const T, 4> grad_output,
                          Tensor<const T, 4> input, Tensor<const T, 2> rois, Tensor<const int32_t, 4> argmax,
                          Tensor<T, 4> grad_input) {
  constexpr bool kInPlace = std::is_same_v<T, float>;
  const int64_t channels = input.dim(1), pixels = input.dim(2) * input.dim(3), planes = input.dim(0) * channels;
  const int64_t bins = op.output_height * op.output_width, count = rois.dim(0);
  POLYOP_RETURN_IF_ERROR(CheckBatchIndices(rois, input.dim(0)));
  const int64_t grain = GrainFor(static_cast<double>(pixels) + static_cast<double>(bins * count)) / 2 + 1;
  std::atomic<bool> valid = true;
  const auto add = [&](float* memory, int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      const int64_t image = plane / channels, c = plane % channels;
      T* const to = grad_input.data() + plane * pixels;
      float* sums = memory;
      if constexpr (kInPlace) sums = to;
      std::fill_n(sums, pixels, 0.0f);
      for (int64_t r = 0; r < count; ++r) {
        if (ImageOf(ToFloat(rois[5 * r])) != image) continue;
        const T* const grads = grad_output.data() + (r * channels + c) * bins;
        const int32_t* const largest = argmax.data() + (r * channels + c) * bins;
        for (int64_t b = 0; b < bins; ++b) {
          if (largest[b] >= 0 && largest[b] < pixels) {
            sums[largest[b]] += ToFloat(grads[b]);
          } else if (largest[b] != -1) {
            valid = false;
          }
        }
      }
      for (int64_t p = 0; !kInPlace && p < pixels; ++p) to[p] = FromFloat<T>(sums[p]);
    }
  };
  if (!context.ParallelForWithScratch<float>(planes, grain, kInPlace ? 0 : pixels, add)) {
    return Internal("out of memory: planes of ", ToString(input.shape()));
  }
  return valid ? Status::Ok() : RoiPoolBackward::CheckArgmax(argmax, pixels);
}

POLYOP_PLAIN_CPU_KERNELS(RoiPoolBackward, RoiPoolBackwardCpu, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
