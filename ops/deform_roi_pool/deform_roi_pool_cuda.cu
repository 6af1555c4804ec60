#include "families/rois/pool_bins_cuda.h"
#include "ops/deform_roi_pool/deform_roi_pool.h"
#include "ops/deform_roi_pool/deform_roi_pool_bins.h"

namespace polyop {
namespace {

template <class T>
Status DeformRoiPoolCuda(const DeformRoiPool& op, const CudaContext& cuda, Tensor<const T, 4> input,
                         Tensor<const T, 2> rois, std::optional<Tensor<const T, 4>> offset, Tensor<T, 4> output) {
  const T *const row = rois.data(), *const offsets = offset ? offset->data() : nullptr;
  const int64_t height = input.dim(2), width = input.dim(3);
  return PoolBinsCuda(cuda, input, rois, output, [=] POLYOP_DEVICE(int64_t r, int64_t bin, const T* plane) {
    const auto bins = MovedBins<T>::Make(op, row + 5 * r, offsets, r);
    RoiAxis down, across;
    bins.AxesOf(bin, &down, &across);
    const int64_t i_row = bin / bins.columns, i_column = bin % bins.columns;
    int64_t y_begin, y_end, x_begin, x_end;
    down.Inside(i_row, height, &y_begin, &y_end);
    across.Inside(i_column, width, &x_begin, &x_end);
    float sum = 0;
    for (int64_t iy = y_begin; iy < y_end; ++iy) {
      const LinearTaps y = RoiTaps(down.Position(i_row, iy), height);
      for (int64_t ix = x_begin; ix < x_end; ++ix) {
        sum += RoiSample{y, RoiTaps(across.Position(i_column, ix), width)}.Of(plane, width);
      }
    }
    const double samples = bins.samples();
    return samples > 0 ? static_cast<float>(sum / samples) : 0.0f;
  });
}

POLYOP_CUDA_KERNEL(DeformRoiPool, DeformRoiPoolF32, DeformRoiPoolCuda<float>);
POLYOP_CUDA_KERNEL(DeformRoiPool, DeformRoiPoolF16, DeformRoiPoolCuda<Half>);
POLYOP_CUDA_KERNEL(DeformRoiPool, DeformRoiPoolBF16, DeformRoiPoolCuda<BFloat16>);

}  // namespace
}  // namespace polyop
