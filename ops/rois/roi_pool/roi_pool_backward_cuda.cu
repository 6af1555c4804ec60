// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/atomic_add.h"
#include "ops/rois/batch_indices.h"
#include "ops/rois/roi_pool/roi_pool_backward.h"

namespace polyop {
namespace {

// Each thread adds the gradient of one bin of one channel to its pixel. An invalid batch index or pixel is skipped.
template <class T>
Status RoiPoolBackwardCuda(const RoiPoolBackward& op, const CudaContext& cuda, Tensor<const T, 4> grad_output,
                           Tensor<const T, 4> input, Tensor<const T, 2> rois, Tensor<const int32_t, 4> argmax,
                           Tensor<T, 4> grad_input) {
  const int64_t images = input.dim(0), channels = input.dim(1), pixels = input.dim(2) * input.dim(3);
  const int64_t count = rois.dim(0);
  const T *const rows = rois.data(), *const grads = grad_output.data();
  const int32_t* const largest = argmax.data();
  const Divider by_bins(op.output_height * op.output_width);
  return SumAtomically(cuda, images, channels, pixels, grad_input.data(), [&](const ChannelSums& sums) {
    const Divider by_channels(sums.count);
    return ForEach(cuda, count * sums.count * by_bins.divisor(), [=] POLYOP_DEVICE(int64_t i) {
      int64_t bin, channel;
      const int64_t r = by_channels.Split(by_bins.Split(i, &bin), &channel), c = sums.first + channel;
      const int64_t image = ImageOf(ToFloat(rows[5 * r])), at = (r * channels + c) * by_bins.divisor() + bin;
      const int64_t pixel = largest[at];
      if (image < 0 || image >= images || pixel < 0 || pixel >= pixels) return;
      AtomicAdd(sums.Plane(image, c) + pixel, ToFloat(grads[at]));
    });
  });
}

POLYOP_ATOMIC_CUDA_KERNELS(RoiPoolBackward, RoiPoolBackwardCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
