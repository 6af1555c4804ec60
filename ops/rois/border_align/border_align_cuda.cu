// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda.h"
#include "ops/rois/border_align/border_align.h"
#include "ops/rois/border_align/border_maxima_cuda.h"

namespace polyop {
namespace {

template <int kWide, class T>
Status WriteMaxima(const CudaContext& cuda, const BorderImages<T>& images, const Tensor<const T, 3>& boxes,
                   int64_t pool_size, T* output) {
  const int64_t channels = images.channels / kBorderSides, lines = boxes.dim(1) * kBorderSides;
  return ForBorderLines<kWide>(cuda, images, boxes, pool_size, [=] POLYOP_DEVICE(const BorderLine<kWide, T>& line) {
    const BorderMaxima<kWide> largest = line.FindMaxima();
    for (int c = 0; c < kWide; ++c) {
      const float value = largest.at[c] < 0 ? 0 : largest.value[c];
      output[(line.image * channels + line.channel + c) * lines + line.number] = FromFloat<T>(value);
    }
  });
}

template <class T>
Status BorderAlignCuda(const BorderAlign& op, const CudaContext& cuda, Tensor<const T, 4> input,
                       Tensor<const T, 3> boxes, Tensor<T, 4> output) {
  const BorderImages<T> images = BorderImages<T>::Allocate(cuda, input);
  const auto write = output.dim(1) % 4 == 0 ? WriteMaxima<4, T> : WriteMaxima<1, T>;
  return write(cuda, images, boxes, op.pool_size, output.data());
}

POLYOP_CUDA_KERNELS(BorderAlign, BorderAlignCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
