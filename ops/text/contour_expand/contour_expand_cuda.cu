// SPDX-License-Identifier: Apache-2.0
#include "ops/text/contour_expand/contour_expand.h"
#include "ops/text/region_growing_cuda.h"

namespace polyop {
namespace {

template <class M>
Status ContourExpandCuda(const ContourExpand& op, const CudaContext& cuda, Tensor<const M, 3> kernel_mask,
                         Tensor<const int32_t, 2> internal_kernel_label, Tensor<int32_t, 2> label) {
  const ImageGrid grid{label.dim(0), label.dim(1)};
  const int32_t* const initial = internal_kernel_label.data();
  int32_t* const labels = label.data();
  const int64_t min_area = op.min_kernel_area, pixels = grid.size();
  const auto label_of = [=] POLYOP_DEVICE(int64_t i) {
    return initial[i] > 0 && initial[i] <= pixels ? initial[i] : 0;
  };
  PixelsByLabel sorted;
  POLYOP_RETURN_IF_ERROR(PixelsByLabel::Sort(cuda, pixels, label_of, &sorted));
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, pixels, [=] POLYOP_DEVICE(int64_t i) {
    const int64_t own = label_of(i);
    const int64_t area = sorted.BeginOf(own + 1) - sorted.BeginOf(own);
    labels[i] = area >= min_area ? static_cast<int32_t>(own) : 0;
  }));
  RegionGrowingCuda growing;
  POLYOP_RETURN_IF_ERROR(
      RegionGrowingCuda::Start(cuda, grid, labels, [=] POLYOP_DEVICE(int64_t i) { return labels[i] > 0; }, &growing));
  for (int64_t k = kernel_mask.dim(0) - 2; k >= 0; --k) {
    const M* const mask = kernel_mask.data() + k * pixels;
    POLYOP_RETURN_IF_ERROR(
        growing.Spread(cuda, [=] POLYOP_DEVICE(int64_t pixel, int32_t) { return mask[pixel] != 0; }));
  }
  return Status::Ok();
}

POLYOP_CUDA_KERNELS(ContourExpand, ContourExpandCuda, uint8_t, bool);

}  // namespace
}  // namespace polyop
