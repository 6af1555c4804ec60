// SPDX-License-Identifier: Apache-2.0
#include "ops/text/contour_expand/contour_expand.h"
#include "ops/text/region_growing.h"

namespace polyop {
namespace {

template <class M>
Status ContourExpandCpu(const ContourExpand& op, const Context& context, Tensor<const M, 3> kernel_mask,
                        Tensor<const int32_t, 2> internal_kernel_label, Tensor<int32_t, 2> label) {
  const ImageGrid grid{label.dim(0), label.dim(1)};
  const Scratch<int32_t> queue = context.Allocate<int32_t>(grid.size());
  const Scratch<int32_t> areas = context.Allocate<int32_t>(grid.size() + 1);
  if (!queue || !areas) return Internal("out of memory: a queue of ", grid.size(), " pixels");
  const auto is_label = [&](int32_t own) { return own > 0 && own <= grid.size(); };
  std::fill_n(areas.data(), areas.size(), 0);
  for (int64_t i = 0; i < grid.size(); ++i) {
    if (is_label(internal_kernel_label[i])) ++areas[internal_kernel_label[i]];
  }
  RegionGrowing growing(grid, label.data(), queue.data());
  for (int64_t i = 0; i < grid.size(); ++i) {
    const int32_t own = internal_kernel_label[i];
    label[i] = is_label(own) && areas[own] >= op.min_kernel_area ? own : 0;
    if (label[i] > 0) growing.Add(i);
  }
  for (int64_t k = kernel_mask.dim(0) - 2; k >= 0; --k) {
    const M* const mask = kernel_mask.data() + k * grid.size();
    growing.Spread([=](int64_t pixel, int32_t) { return mask[pixel] != 0; });
  }
  return Status::Ok();
}

POLYOP_PLAIN_CPU_KERNELS(ContourExpand, ContourExpandCpu, uint8_t, bool);

}  // namespace
}  // namespace polyop
