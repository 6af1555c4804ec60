// SPDX-License-Identifier: Apache-2.0
#include "ops/text/pixel_group/embedding_means.h"
#include "ops/text/pixel_group/pixel_group.h"
#include "ops/text/region_growing_cuda.h"

namespace polyop {
namespace {

template <class T, class M>
Status PixelGroupCuda(const PixelGroup& op, const CudaContext& cuda, Tensor<const T, 2> score, Tensor<const M, 2> mask,
                      Tensor<const T, 3> embedding, Tensor<const int32_t, 2> kernel_label,
                      Tensor<const M, 2> kernel_contour, Tensor<int32_t, 2> label, Tensor<T, 1> scores,
                      Tensor<int32_t, 1> counts) {
  const ImageGrid grid{label.dim(0), label.dim(1)};
  // Without pixels the number of dimensions is arbitrary.
  const int64_t regions = op.kernel_region_num, dimensions = grid.size() > 0 ? embedding.dim(2) : 0;
  const int32_t* const input_labels = kernel_label.data();
  const T *const vectors = embedding.data(), *const values = score.data();
  const M* const contour = kernel_contour.data();
  int32_t *const labels = label.data(), *const sizes = counts.data();
  T* const to = scores.data();
  double* const means = cuda.Allocate<double>(regions * dimensions);
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, grid.size(), [=] POLYOP_DEVICE(int64_t i) {
    labels[i] = input_labels[i] > 0 && input_labels[i] < regions ? input_labels[i] : 0;
  }));
  // Sums visit the pixels of a label row by row, as on the CPU.
  const auto label_of = [=] POLYOP_DEVICE(int64_t i) { return labels[i]; };
  PixelsByLabel kernels, grown;
  POLYOP_RETURN_IF_ERROR(PixelsByLabel::Sort(cuda, grid.size(), label_of, &kernels));
  const Divider by_dimensions(std::max<int64_t>(dimensions, 1));
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, regions * dimensions, [=] POLYOP_DEVICE(int64_t element) {
    int64_t d;
    const int64_t r = by_dimensions.Split(element, &d);
    const int64_t begin = kernels.BeginOf(r), end = r == 0 ? begin : kernels.BeginOf(r + 1);
    double sum = 0;
    for (int64_t k = begin; k < end; ++k) {
      sum += static_cast<double>(ToFloat(vectors[kernels.pixels[k] * dimensions + d]));
    }
    means[element] = begin < end ? sum / static_cast<double>(end - begin) : 0;
  }));
  RegionGrowingCuda growing;
  POLYOP_RETURN_IF_ERROR(RegionGrowingCuda::Start(
      cuda, grid, labels, [=] POLYOP_DEVICE(int64_t i) { return labels[i] > 0 && contour[i] != 0; }, &growing));
  POLYOP_RETURN_IF_ERROR(growing.Spread(
      cuda, NearToMean<T, M>{mask.data(), vectors, means, dimensions, static_cast<double>(op.distance_threshold)}));
  POLYOP_RETURN_IF_ERROR(PixelsByLabel::Sort(cuda, grid.size(), label_of, &grown));
  return ForEach(cuda, regions, [=] POLYOP_DEVICE(int64_t r) {
    const int64_t begin = grown.BeginOf(r), end = r == 0 ? begin : grown.BeginOf(r + 1);
    double sum = 0;
    for (int64_t k = begin; k < end; ++k) sum += static_cast<double>(ToFloat(values[grown.pixels[k]]));
    sizes[r] = static_cast<int32_t>(end - begin);
    to[r] = FromFloat<T>(begin < end ? static_cast<float>(sum / static_cast<double>(end - begin)) : 0);
  });
}

POLYOP_CUDA_KERNELS(PixelGroup, PixelGroupCuda, (float, uint8_t), (Half, uint8_t), (BFloat16, uint8_t), (float, bool),
                    (Half, bool), (BFloat16, bool));

}  // namespace
}  // namespace polyop
