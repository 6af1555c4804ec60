// SPDX-License-Identifier: Apache-2.0
#include <deque>
#include <utility>
#include <vector>

#include "ops/text/pixel_group/pixel_group.h"

namespace polyop {
namespace {

template <class M>
Status PixelGroupReference(const PixelGroup& op, const Context&, Tensor<const double, 2> score, Tensor<const M, 2> mask,
                           Tensor<const double, 3> embedding, Tensor<const int32_t, 2> kernel_label,
                           Tensor<const M, 2> kernel_contour, Tensor<int32_t, 2> label, Tensor<double, 1> scores,
                           Tensor<int32_t, 1> counts) {
  const int64_t height = label.dim(0), width = label.dim(1), dimensions = embedding.dim(2);
  std::vector<std::vector<int64_t>> pixels(static_cast<size_t>(op.kernel_region_num));
  std::deque<std::pair<int64_t, int64_t>> queue;
  for (int64_t i = 0; i < label.size(); ++i) {
    const int32_t region = kernel_label[i];
    label[i] = region >= 1 && region < op.kernel_region_num ? region : 0;
    if (label[i] == 0) continue;
    pixels[static_cast<size_t>(region)].push_back(i);
    if (kernel_contour[i]) queue.emplace_back(i / width, i % width);
  }
  const auto distance = [&](int64_t pixel, const std::vector<int64_t>& kernel) {
    double squared = 0;
    for (int64_t d = 0; d < dimensions; ++d) {
      double sum = 0;
      for (int64_t i : kernel) sum += embedding[i * dimensions + d];
      const double difference = embedding[pixel * dimensions + d] - sum / static_cast<double>(kernel.size());
      squared += difference * difference;
    }
    return squared;
  };
  const double threshold = static_cast<double>(op.distance_threshold);
  while (!queue.empty()) {
    const auto [y, x] = queue.front();
    queue.pop_front();
    const int32_t region = label[y * width + x];
    const std::pair<int64_t, int64_t> neighbours[4] = {{y - 1, x}, {y + 1, x}, {y, x - 1}, {y, x + 1}};
    for (const auto& [to_y, to_x] : neighbours) {
      if (to_y < 0 || to_y >= height || to_x < 0 || to_x >= width) continue;
      const int64_t to = to_y * width + to_x;
      if (!mask[to] || label[to] > 0 || !(distance(to, pixels[static_cast<size_t>(region)]) < threshold * threshold)) {
        continue;
      }
      label[to] = region;
      queue.emplace_back(to_y, to_x);
    }
  }
  for (int32_t r = 0; r < op.kernel_region_num; ++r) {
    double sum = 0;
    counts[r] = 0;
    for (int64_t i = 0; r > 0 && i < label.size(); ++i) {
      if (label[i] != r) continue;
      sum += score[i];
      ++counts[r];
    }
    scores[r] = counts[r] > 0 ? sum / counts[r] : 0;
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(PixelGroup, PixelGroupReference, uint8_t, bool);

}  // namespace
}  // namespace polyop
