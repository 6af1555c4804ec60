// SPDX-License-Identifier: Apache-2.0
#include "ops/text/pixel_group/embedding_means.h"
#include "ops/text/pixel_group/pixel_group.h"
#include "ops/text/region_growing.h"

namespace polyop {
namespace {

template <class T, class M>
Status PixelGroupCpu(const PixelGroup& op, const Context& context, Tensor<const T, 2> score, Tensor<const M, 2> mask,
                     Tensor<const T, 3> embedding, Tensor<const int32_t, 2> kernel_label,
                     Tensor<const M, 2> kernel_contour, Tensor<int32_t, 2> label, Tensor<T, 1> scores,
                     Tensor<int32_t, 1> counts) {
  const ImageGrid grid{label.dim(0), label.dim(1)};
  // Without pixels the number of dimensions is arbitrary.
  const int64_t regions = op.kernel_region_num, dimensions = grid.size() > 0 ? embedding.dim(2) : 0;
  const Scratch<int32_t> queue = context.Allocate<int32_t>(grid.size());
  const Scratch<double> means = context.Allocate<double>(regions * dimensions);
  const Scratch<double> sums = context.Allocate<double>(regions);
  if (!queue || !means || !sums) return Internal("out of memory: ", regions, " kernels of ", grid.size(), " pixels");
  std::fill_n(means.data(), means.size(), 0.0);
  std::fill_n(sums.data(), sums.size(), 0.0);
  std::fill_n(counts.data(), regions, 0);

  RegionGrowing growing(grid, label.data(), queue.data());
  for (int64_t i = 0; i < grid.size(); ++i) {
    label[i] = kernel_label[i] > 0 && kernel_label[i] < regions ? kernel_label[i] : 0;
    if (label[i] == 0) continue;
    ++counts[label[i]];
    for (int64_t d = 0; d < dimensions; ++d) {
      means[label[i] * dimensions + d] += static_cast<double>(ToFloat(embedding[i * dimensions + d]));
    }
    if (kernel_contour[i] != 0) growing.Add(i);
  }
  for (int64_t r = 1; r < regions; ++r) {
    for (int64_t d = 0; d < dimensions; ++d) means[r * dimensions + d] /= std::max(counts[r], 1);
    counts[r] = 0;
  }
  growing.Spread(NearToMean<T, M>{mask.data(), embedding.data(), means.data(), dimensions,
                                  static_cast<double>(op.distance_threshold)});
  for (int64_t i = 0; i < grid.size(); ++i) {
    if (label[i] == 0) continue;
    ++counts[label[i]];
    sums[label[i]] += static_cast<double>(ToFloat(score[i]));
  }
  for (int64_t r = 0; r < regions; ++r) {
    scores[r] = FromFloat<T>(counts[r] > 0 ? static_cast<float>(sums[r] / counts[r]) : 0);
  }
  return Status::Ok();
}

POLYOP_PLAIN_CPU_KERNELS(PixelGroup, PixelGroupCpu, (float, uint8_t), (Half, uint8_t), (BFloat16, uint8_t),
                         (float, bool), (Half, bool), (BFloat16, bool));

}  // namespace
}  // namespace polyop
