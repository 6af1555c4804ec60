#include "families/rois/roi_pool_cuda.h"
#include "kernels/cuda/cuda.h"
#include "ops/roi_pool/roi_pool.h"
#include "ops/roi_pool/roi_pool_bins.h"

namespace polyop {
namespace {

// Each thread pools one bin of one channel. A RoI with an invalid batch index gives NaN.
template <class T>
Status RoiPoolCuda(const RoiPool& op, const CudaContext& cuda, Tensor<const T, 4> input, Tensor<const T, 2> rois,
                   Tensor<T, 4> output, Tensor<int32_t, 4> argmax) {
  const int64_t width = input.dim(3);
  const int64_t height = width > 0 ? input.dim(2) : 0;  // an image of width 0 may have billions of rows
  RoiPyramid<T> pyramid{{}, input.dim(0), input.dim(1)};
  pyramid.level[0] = {input.data(), height, width, 1.0};
  const T* const rows = rois.data();
  T* const to = output.data();
  int32_t* const indices = argmax.data();
  const Divider by_rows(op.output_height), by_columns(op.output_width), by_channels(input.dim(1));
  return ForEach(cuda, output.size(), [=] POLYOP_DEVICE(int64_t i) {
    int64_t column, row, c;
    const int64_t r = by_channels.Split(by_rows.Split(by_columns.Split(i, &column), &row), &c);
    const int64_t image = ImageOf(ToFloat(rows[5 * r]));
    indices[i] = -1;
    if (!pyramid.Has(image)) {
      to[i] = FromFloat<T>(NAN);
      return;
    }
    const RoiPoolBox box = RoiPoolBox::Of(op, rows + 5 * r);
    const PixelRange down = box.y.Bin(row, height), across = box.x.Bin(column, width);
    const T* const plane = pyramid.Plane(pyramid.level[0], image, c);
    float largest = -INFINITY;
    for (int64_t y = down.begin; y < down.end; ++y) {
      for (int64_t x = across.begin; x < across.end; ++x) {
        const float value = ToFloat(plane[y * width + x]);
        if (!(value > largest)) continue;
        largest = value;
        indices[i] = static_cast<int32_t>(y * width + x);
      }
    }
    to[i] = FromFloat<T>(indices[i] < 0 ? 0 : largest);
  });
}

POLYOP_CUDA_KERNELS(RoiPool, RoiPoolCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
