// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <utility>
#include <vector>

#include "ops/text/contour_expand/contour_expand.h"

namespace polyop {
namespace {

using Pixel = std::pair<int64_t, int64_t>;

template <class M>
Status ContourExpandReference(const ContourExpand& op, const Context&, Tensor<const M, 3> kernel_mask,
                              Tensor<const int32_t, 2> internal_kernel_label, Tensor<int32_t, 2> label) {
  const int64_t height = label.dim(0), width = label.dim(1);
  std::map<int32_t, int64_t> areas;
  for (int64_t i = 0; i < label.size(); ++i) ++areas[internal_kernel_label[i]];
  std::vector<Pixel> front;
  for (int64_t i = 0; i < label.size(); ++i) {
    const int32_t own = internal_kernel_label[i];
    label[i] = own > 0 && own <= label.size() && areas[own] >= op.min_kernel_area ? own : 0;
    if (label[i] > 0) front.emplace_back(i / width, i % width);
  }
  for (int64_t k = kernel_mask.dim(0) - 2; k >= 0; --k) {
    std::vector<Pixel> idle;
    while (!front.empty()) {  // one round: spreads from the pixels labelled in the round before
      std::vector<Pixel> reached;
      for (const auto& [y, x] : front) {
        const size_t before = reached.size();
        for (const auto& [to_y, to_x] : {Pixel{y - 1, x}, Pixel{y + 1, x}, Pixel{y, x - 1}, Pixel{y, x + 1}}) {
          if (to_y < 0 || to_y >= height || to_x < 0 || to_x >= width) continue;
          if (!kernel_mask[(k * height + to_y) * width + to_x] || label[to_y * width + to_x] > 0) continue;
          label[to_y * width + to_x] = label[y * width + x];
          reached.emplace_back(to_y, to_x);
        }
        if (reached.size() == before) idle.emplace_back(y, x);
      }
      front = std::move(reached);
    }
    front = std::move(idle);
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(ContourExpand, ContourExpandReference, uint8_t, bool);

}  // namespace
}  // namespace polyop
